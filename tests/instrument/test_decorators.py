"""Decorated functions, coroutines and generators: inside the block, otherwise as they were."""

import asyncio
import contextlib
import gc
import inspect
import logging

import pytest
from opentelemetry.context import get_current
from opentelemetry.trace import get_current_span

import turntrace as tt
from recordings import Recorded


@pytest.fixture
def recorded(caplog):
    """A recording inside a turn; nothing may be logged and no block end in another context."""
    with Recorded() as recording:
        with tt.turn("a") as turn:
            yield recording
            gc.collect()
            report = turn.report()
        assert [warning.code for warning in report.turn.warnings] == []
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
        names = [span.name for span in recording.exporter.get_finished_spans()]
        assert len(names) == len(set(names)), "a span ended twice"


def span_id():
    """The id of the current span."""
    return get_current_span().get_span_context().span_id


def outcome(recording, name="verification"):
    """How the block of ``name`` ended."""
    return recording.spans()[name].attributes["turntrace.outcome"]


@tt.phase.wrap("verification")
def counting(limit=3):
    """Yield the numbers below ``limit`` and tell what was sent."""
    sent = []
    for number in range(limit):
        with contextlib.suppress(KeyError):
            with tt.phase("retrieval"):
                pass
            sent.append((yield number))
    return sent


@tt.phase.wrap("verification")
async def counting_later(limit=3):
    """As counting, without an answer."""
    for number in range(limit):
        with contextlib.suppress(KeyError):
            await asyncio.sleep(0)
            yield number


def test_kind_name_and_signature_stay():
    """Frameworks that look at a function see the one that was decorated."""

    async def one(x: int) -> str:
        """Doc."""

    decorated = tt.tool.wrap()(one)
    assert inspect.iscoroutinefunction(decorated)
    assert inspect.isgeneratorfunction(counting)
    assert inspect.isasyncgenfunction(counting_later)
    assert (decorated.__name__, decorated.__doc__) == ("one", "Doc.")
    assert inspect.signature(decorated) == inspect.signature(one)


def test_a_function_runs_inside_its_block(recorded):
    """Arguments, result and exception pass; the span is the function's parent."""

    @tt.tool.wrap()
    def look(path, *, deep):
        return path, deep, span_id()

    before = span_id()
    path, deep, inside = look("p", deep=True)
    assert (path, deep) == ("p", True)
    assert inside == recorded.spans()["execute_tool look"].context.span_id
    assert span_id() == before


async def test_a_coroutine_runs_inside_its_block(recorded):
    """The block lasts as long as the coroutine, and what it raises passes through."""

    @tt.generation.wrap(model="m")
    async def ask(error=None):
        await asyncio.sleep(0.001)
        if error is not None:
            raise error
        return span_id()

    assert await ask() == recorded.spans()["chat m"].context.span_id
    recorded.exporter.clear()
    with pytest.raises(KeyError):
        await ask(KeyError())
    assert outcome(recorded, "chat m") == "error"


def test_decorating_before_configure_records_after_it():
    """The decision is made at each call."""

    @tt.turn.wrap("agent")
    def run():
        return span_id()

    assert run() == 0
    with Recorded() as recording:
        assert run() == recording.spans()["invoke_agent agent"].context.span_id
    assert run() == 0


def test_a_generator_is_inside_its_block_and_its_consumer_is_not(recorded):
    """Between pulls the context is the consumer's own, the same object."""
    before = get_current()
    for _ in counting():
        assert get_current() is before
        with tt.phase("plan"):
            recorded.exporter.clear()
        assert recorded.spans()["plan"].parent.span_id == span_id()
    assert get_current() is before
    assert outcome(recorded) == "ok"


def test_what_the_body_opens_hangs_on_the_block(recorded):
    """A phase inside the body is a child of the generator's, in whichever context it is pulled."""
    pulls = counting(1)
    assert list(pulls) == [0]
    spans = recorded.spans()
    assert spans["retrieval"].parent.span_id == spans["verification"].context.span_id


def test_sent_values_and_the_answer_come_through(recorded):
    """A decorated generator can be spoken to as before."""
    pulls = counting(2)
    assert pulls.send(None) == 0
    assert pulls.send("x") == 1
    with pytest.raises(StopIteration) as end:
        pulls.send("y")
    assert end.value.value == ["x", "y"]
    with pytest.raises(StopIteration):
        next(pulls)
    recorded.exporter.clear()

    def outer():
        return (yield from counting(1))

    assert list(outer()) == [0]


def test_thrown_errors_reach_the_body(recorded):
    """One that the body handles goes on; one that it does not ends the block, the same object."""
    pulls = counting()
    next(pulls)
    recorded.exporter.clear()
    assert pulls.throw(KeyError()) == 1
    recorded.exporter.clear()
    error = ValueError("secret")
    with pytest.raises(ValueError, match="secret") as caught:
        pulls.throw(error)
    assert caught.value is error
    assert outcome(recorded) == "error"
    recorded.exporter.clear()

    def outer():
        yield from counting()

    delegating = outer()
    next(delegating)
    recorded.exporter.clear()
    assert delegating.throw(KeyError()) == 1
    delegating.close()


@pytest.mark.parametrize("fails", [False, True])
def test_a_context_manager_made_of_one_works(recorded, fails):
    """contextlib throws into the generator; the error leaves the with statement as it was."""

    @contextlib.contextmanager
    @tt.phase.wrap("verification")
    def managed():
        yield 1

    with pytest.raises(LookupError) if fails else contextlib.nullcontext(), managed() as one:
        assert one == 1
        if fails:
            raise LookupError
    assert outcome(recorded) == ("error" if fails else "ok")


@tt.phase.wrap("verification")
def holding():
    """Hold a phase of its own across its yields."""
    with tt.phase("retrieval"):
        yield 1
        yield 2


@pytest.mark.parametrize("leave", ["close", "drop"])
def test_a_generator_that_is_left_ends_its_blocks_inside_out(recorded, leave):
    """Closed, broken out of or dropped: abandoned, once, the body's own phases first."""
    before = get_current()
    pulls = holding()
    for _ in pulls:
        if leave == "close":
            pulls.close()
            pulls.close()
        break
    del pulls
    gc.collect()
    assert get_current() is before
    assert [span.name for span in recorded.exporter.get_finished_spans()] == ["retrieval", "verification"]
    assert (outcome(recorded), outcome(recorded, "retrieval")) == ("abandoned", "abandoned")


def test_a_generator_that_never_began_is_no_span(recorded):
    """Without a pull there is no block, closed or dropped."""
    counting().close()
    counting()
    assert recorded.exporter.get_finished_spans() == ()


def test_an_error_at_close_is_the_outcome(recorded):
    """What the body raises while it is closed leaves close() and fails the block."""

    @tt.phase.wrap("verification")
    def failing():
        try:
            yield 1
        finally:
            raise LookupError

    pulls = failing()
    next(pulls)
    with pytest.raises(LookupError):
        pulls.close()
    assert outcome(recorded) == "error"


def test_an_error_at_the_first_pull_ends_the_block(recorded):
    """The block is left with the error, and the generator is over."""

    @tt.phase.wrap("verification")
    def failing():
        raise LookupError
        yield

    pulls = failing()
    with pytest.raises(LookupError):
        next(pulls)
    assert list(pulls) == []
    assert outcome(recorded) == "error"


async def test_an_async_generator_is_inside_its_block_and_its_consumer_is_not(recorded):
    """As for generators, across awaits."""
    before = get_current()
    found = []
    async for number in counting_later():
        assert get_current() is before
        found.append(number)
    assert found == [0, 1, 2]
    assert get_current() is before
    assert outcome(recorded) == "ok"


async def test_an_async_generator_can_be_spoken_to(recorded):
    """asend, athrow and aclose do what they did."""
    pulls = counting_later()
    assert await pulls.asend(None) == 0
    assert await pulls.athrow(KeyError()) == 1
    with pytest.raises(ValueError, match="x"):
        await pulls.athrow(ValueError("x"))
    assert outcome(recorded) == "error"
    with pytest.raises(StopAsyncIteration):
        await anext(pulls)
    recorded.exporter.clear()
    with contextlib.suppress(LookupError):
        async with contextlib.asynccontextmanager(counting_later)(1):
            raise LookupError
    assert outcome(recorded) == "error"


@pytest.mark.parametrize("leave", ["aclose", "drop"])
async def test_an_async_generator_that_is_left_ends_its_blocks_inside_out(recorded, leave):
    """Closed in another task or collected by the loop: abandoned, once, without a word."""

    @tt.phase.wrap("verification")
    async def holding_later():
        with tt.phase("retrieval"):
            yield 1
            yield 2

    before = get_current()
    pulls = holding_later()
    assert await anext(pulls) == 1
    if leave == "aclose":
        await asyncio.create_task(pulls.aclose())
    del pulls
    gc.collect()
    await asyncio.sleep(0.01)
    assert get_current() is before
    assert [span.name for span in recorded.exporter.get_finished_spans()] == ["retrieval", "verification"]
    assert outcome(recorded) == "abandoned"


async def test_cancellation_passes_through_an_async_generator(recorded):
    """A task cancelled in a pull is cancelled, and so is the block."""

    @tt.phase.wrap("verification")
    async def waiting():
        yield 1
        await asyncio.sleep(60)

    async def consume():
        async for _ in waiting():
            pass

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert outcome(recorded) == "cancelled"


def test_a_decorated_tool_stamps_its_arguments():
    """Calls with the same arguments can be told, the arguments cannot; a stateful argument has no stamp."""

    @tt.tool.wrap()
    def search(query, *, deep=False):
        return query, deep

    @tt.tool.wrap("other")
    def other(query):
        return query

    with Recorded() as recorded, tt.turn("a"):
        for arguments in (("secret",), ("secret",), ("else",), (object(),)):
            search(*arguments)
        other("secret")
    spans = [span for span in recorded.exporter.get_finished_spans() if span.name.startswith("execute_tool")]
    stamps = [dict(span.attributes).get("turntrace.call_hash") for span in spans]
    assert stamps[0] == stamps[1] != stamps[2]
    assert stamps[3] is None
    assert len({*stamps}) == 4
    assert "secret" not in str(stamps)


def test_a_stamp_that_fails_is_no_matter_of_the_tool(recorded, monkeypatch):
    """The tool runs and is recorded."""

    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr("turntrace.instrument.stamps.call_stamp", fail)

    @tt.tool.wrap()
    def search():
        return 5

    assert search() == 5
    assert recorded.guard is not None
