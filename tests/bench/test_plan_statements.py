"""Statements A1 to A8 and B1 to B4 of the plan, on the streams that agents of a benchmark read.

What is measured of them is what stands in a row as ``model_elapsed_ns``.
"""

import asyncio

import pytest

from turntrace.instrument.streams import stream

MS = 1_000_000
META = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
TEXT = {"choices": [{"delta": {"content": "Hi"}}]}


class Clock:
    """A listener whose clock moves only when it is moved."""

    def __init__(self):
        self.now = 0
        self.summary = None

    def now_ns(self):
        return self.now

    def pause(self, start_ns, end_ns):
        """Of no interest here."""

    def first_chunk(self, at_ns):
        """It stands in the summary."""

    first_token = first_visible = first_chunk

    def finished(self, summary):
        self.summary = summary

    def since_start_ms(self, name):
        """A moment of the summary, in ms after the first pull."""
        at_ns = getattr(self.summary, name)
        return None if at_ns is None else (at_ns - self.summary.started_ns) / MS


@pytest.fixture
def clock():
    """A fake clock."""
    return Clock()


def provider(clock, *steps):
    """Wait each number of ms, yield all else, raise errors."""
    for step in steps:
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, int):
            clock.now += step * MS
        else:
            yield step


def drain(clock, source, *, consumer_ms=0):
    """Read to the end, so slowly; what was read."""
    items = []
    for item in stream(source, clock):
        items.append(item)
        clock.now += consumer_ms * MS
    return items


def test_a1_a7_the_consumers_pauses_are_not_the_models_time(clock):
    """Three items after 30 ms each, 200 ms of work after each: exactly 90.0 ms by a fake clock."""
    drain(clock, provider(clock, 30, TEXT, 30, TEXT, 30, TEXT), consumer_ms=200)
    assert clock.summary.await_ns / MS == 90.0
    assert (clock.summary.ended_ns - clock.summary.started_ns) / MS > 600


def test_a2_without_pauses_it_is_the_wall(clock):
    """Nothing is taken away."""
    drain(clock, provider(clock, 30, TEXT, 30, TEXT))
    assert clock.summary.await_ns == clock.summary.ended_ns - clock.summary.started_ns == 60 * MS


def test_a3_what_raises_was_waited_for(clock):
    """The same exception object goes on."""
    error = OSError("gone")
    with pytest.raises(OSError) as raised:
        drain(clock, provider(clock, 50, error))
    assert raised.value is error
    assert clock.summary.await_ns == 50 * MS


def test_a4_a_consumer_that_stops_closes_once(clock):
    """The pulls made until then count."""
    closed = []

    def source():
        try:
            yield from provider(clock, 30, TEXT, 30, TEXT)
        finally:
            closed.append(True)

    traced = stream(source(), clock)
    next(traced)
    clock.now += 500 * MS
    traced.close()
    traced.close()
    assert closed == [True]
    assert clock.summary.await_ns == 30 * MS


async def test_a5_a_cancelled_pull_counts(clock):
    """And the cancellation goes on."""

    async def source():
        clock.now += 40 * MS
        await asyncio.Event().wait()
        yield TEXT

    async def read():
        async for _ in stream(source(), clock):
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.summary.await_ns == 40 * MS


def test_a6_two_streams_share_nothing():
    """Read in turns."""
    one, two = Clock(), Clock()
    first = stream(provider(one, 10, TEXT, 10, TEXT), one)
    second = stream(provider(two, 70, TEXT, 70, TEXT), two)
    for _ in zip(first, second, strict=True):
        pass
    next(second, None)
    assert (one.summary.await_ns, two.summary.await_ns) == (20 * MS, 140 * MS)


def test_a8_items_are_the_same_objects(clock):
    """In their order."""
    sent = [META, TEXT, {"choices": []}]
    got = drain(clock, iter(sent))
    assert [id(item) for item in got] == [id(item) for item in sent]


def test_b1_first_visible_may_be_later_than_all_the_models_time(clock):
    """Metadata at 20 ms, a pause of 100, text 30 ms after the next pull: 20, 150, and 50 elapsed."""
    drain(clock, provider(clock, 20, META, 30, TEXT), consumer_ms=100)
    assert clock.since_start_ms("first_chunk_ns") == 20
    assert clock.since_start_ms("first_visible_ns") == 150
    assert clock.summary.await_ns == 50 * MS


def test_b2_without_visible_text_there_is_no_first_visible(clock):
    """The first chunk is known all the same."""
    drain(clock, provider(clock, 20, META))
    assert (clock.since_start_ms("first_chunk_ns"), clock.since_start_ms("first_visible_ns")) == (20, None)


def test_b3_an_empty_stream_has_neither(clock):
    """Null, not 0."""
    drain(clock, provider(clock, 20))
    assert (clock.summary.first_chunk_ns, clock.summary.first_visible_ns) == (None, None)


@pytest.mark.parametrize("items", [(META, TEXT), (TEXT,), (TEXT, META)])
def test_b4_the_first_chunk_is_never_later(clock, items):
    """Whatever comes first."""
    drain(clock, provider(clock, 5, *items), consumer_ms=7)
    assert clock.summary.first_chunk_ns <= clock.summary.first_visible_ns
