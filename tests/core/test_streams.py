"""Rules of the stream recorder, of outcomes and of what counts as content."""

import asyncio
from types import SimpleNamespace as Item
from unittest.mock import MagicMock, Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.core.chunks import content_kind
from turntrace.core.streams import (
    MAX_PAUSES,
    NOT_IDLE,
    PAUSE_NS,
    StreamRecorder,
    outcome_of,
    stream_protocol,
)

MS = 1_000_000


def record(*pulls, end=None, outcome="ok"):
    """A recorder fed with pulls (begin, end, kind) and, unless it is None, the last pull (begin, end)."""
    recorder = StreamRecorder()
    for begin, at, kind in pulls:
        recorder.pull(begin)
        recorder.item(at)
        if recorder.searching:
            recorder.look(at, kind)
    if end is not None:
        recorder.pull(end[0])
        recorder.finish(end[1], outcome)
    return recorder


class TestTimes:
    def test_pull_is_await_and_gap_is_consume(self):
        """Time inside pulls is the provider's, time between them the consumer's."""
        summary = record((10, 15, None), (18, 30, None), end=(31, 40)).summary(99)

        assert (summary.await_ns, summary.consume_ns, summary.chunks) == (26, 4, 2)
        assert (summary.started_ns, summary.ended_ns, summary.outcome) == (10, 40, "ok")

    def test_slow_provider_and_slow_consumer(self):
        """Three items after 30 ms each, 200 ms of work after each: exactly 90 ms are awaited."""
        pulls = [(start, start + 30 * MS, None) for start in (0, 230 * MS, 460 * MS)]

        summary = record(*pulls, end=(690 * MS, 690 * MS)).summary(0)

        assert (summary.await_ns, summary.consume_ns) == (90 * MS, 600 * MS)

    def test_role_chunk_is_not_the_first_token(self):
        """R11: a role-only chunk at 10 ms and content at 400 ms are two different firsts."""
        role = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
        text = {"choices": [{"delta": {"content": "Hi"}}]}

        summary = record(
            (0, 10 * MS, content_kind(role)),
            (10 * MS, 400 * MS, content_kind(text)),
            end=(400 * MS, 400 * MS),
        ).summary(0)

        assert (summary.first_chunk_ns, summary.first_token_ns) == (10 * MS, 400 * MS)
        assert summary.first_visible_ns == 400 * MS

    def test_consumer_work_is_not_model_time(self):
        """R12: five chunks 50 ms apart from 200 ms on, 100 ms of work after each."""
        sent = [(200 + 50 * i) * MS for i in range(5)]
        now, pulls = 0, []
        for at in sent:
            pulls.append((now, max(now, at), "visible"))
            now = max(now, at) + 100 * MS

        summary = record(*pulls, end=(now, now)).summary(0)

        assert summary.ended_ns - summary.started_ns == 700 * MS
        assert (summary.await_ns, summary.consume_ns) == (200 * MS, 500 * MS)
        assert summary.first_token_ns == 200 * MS

    def test_visible_can_come_later_than_all_awaiting(self):
        """First visible is wall-clock: metadata at 20 ms, 100 ms of pause, text 30 ms after the next pull."""
        summary = record(
            (0, 20 * MS, None), (120 * MS, 150 * MS, "visible"), end=(150 * MS, 150 * MS)
        ).summary(0)

        assert (
            summary.first_chunk_ns,
            summary.first_visible_ns,
            summary.await_ns,
        ) == (20 * MS, 150 * MS, 50 * MS)

    def test_empty_stream_has_no_firsts(self):
        """A stream that ends at once has awaited, and None for all that never came."""
        summary = record(end=(5, 9)).summary(0)

        assert (summary.await_ns, summary.consume_ns, summary.chunks) == (4, 0, 0)
        assert (
            summary.first_chunk_ns,
            summary.first_token_ns,
            summary.first_visible_ns,
        ) == (None, None, None)

    def test_reasoning_only_stream_is_never_visible(self):
        """Without visible text first_visible stays None and first_token is set."""
        summary = record((0, 3, "token"), end=(4, 5)).summary(0)

        assert (summary.first_token_ns, summary.first_visible_ns) == (3, None)

    def test_never_pulled(self):
        """A stream that is dropped before its first pull took no time, and has no start until then."""
        recorder = StreamRecorder()

        assert recorder.summary(3).started_ns is None
        summary = recorder.finish(7, "abandoned")
        assert (summary.started_ns, summary.ended_ns, summary.await_ns, summary.consume_ns) == (7, 7, 0, 0)

    def test_summary_before_the_end(self):
        """A summary on the way is incomplete and holds up to the moment asked about."""
        recorder = record((0, 10, None))

        assert (
            (so_far := recorder.summary(14)).outcome,
            so_far.ended_ns,
            so_far.await_ns,
            so_far.consume_ns,
        ) == ("incomplete", 14, 10, 4)
        recorder.pull(20)
        assert ((so_far := recorder.summary(25)).await_ns, so_far.consume_ns) == (15, 10)

    def test_the_end_is_final(self):
        """After the first finish neither a second one nor later pulls change the summary."""
        recorder = record((0, 5, "token"), end=(6, 8))
        final = recorder.summary(0)

        recorder.pull(50)
        recorder.item(60)

        assert final is recorder.finish(99, "error")
        assert final is recorder.summary(99)
        assert not recorder.searching

    def test_pulling(self):
        """A recorder knows whether a pull is under way."""
        recorder = StreamRecorder()
        states = [recorder.pulling]
        recorder.pull(1)
        states.append(recorder.pulling)
        recorder.idle(2)
        states.append(recorder.pulling)

        assert states == [False, True, False]

    def test_idle_counts_no_chunk(self):
        """A pull that brings no item (an enter) is awaited and not counted."""
        recorder = StreamRecorder()
        recorder.pull(0)
        recorder.idle(4)

        summary = recorder.finish(5, "abandoned")
        assert (summary.await_ns, summary.consume_ns, summary.chunks) == (4, 1, 0)

    def test_overlapping_pulls_are_one(self):
        """A pull that starts within another one adds no consumer time."""
        recorder = StreamRecorder()
        recorder.pull(0)
        recorder.pull(5)
        recorder.item(8)
        recorder.item(12)

        summary = recorder.finish(20, "ok")
        assert (summary.await_ns, summary.consume_ns, summary.chunks) == (12, 8, 2)

    @given(st.lists(st.integers(0, 1000), min_size=3, max_size=9))
    def test_a_clock_that_steps_back_makes_nothing_negative(self, times):
        """Whatever the clock says, no sum is negative once the stream is finished."""
        recorder = StreamRecorder()
        for begin, end in zip(times[::2], times[1::2], strict=False):
            recorder.pull(begin)
            recorder.item(max(begin, end))

        summary = recorder.finish(times[-1], "ok")
        assert min(summary.await_ns, summary.consume_ns) >= 0
        assert summary.await_ns + summary.consume_ns == summary.ended_ns - summary.started_ns


class TestPauses:
    def test_a_long_pause_is_told_as_it_ends(self):
        """A pause of exactly 20 ms is one, a nanosecond less is not; both are consumer time."""
        recorder = StreamRecorder()
        recorder.pull(0)
        recorder.item(5)

        assert recorder.pull(5 + PAUSE_NS) == (5, 5 + PAUSE_NS)
        recorder.item(40 * MS)
        assert recorder.pull(40 * MS + PAUSE_NS - 1) is None

        summary = recorder.finish(70 * MS, "ok")
        assert summary.pauses == ((5, 5 + PAUSE_NS),)
        assert summary.consume_ns == 2 * PAUSE_NS - 1

    def test_the_pause_before_the_end_counts(self):
        """The time between the last item and the close is a pause as any other."""
        summary = record((0, 5, None)).finish(5 + PAUSE_NS, "abandoned")

        assert summary.pauses == ((5, 5 + PAUSE_NS),)

    def test_only_the_first_pauses_are_kept(self):
        """After 256 pauses further ones are summed but neither kept nor told."""
        recorder = StreamRecorder()
        told = []
        for start in range(0, 300 * PAUSE_NS, PAUSE_NS):
            told.append(recorder.pull(start))
            recorder.item(start)

        summary = recorder.finish(300 * PAUSE_NS, "ok")
        assert MAX_PAUSES == len(summary.pauses) == len([pause for pause in told if pause])
        assert summary.consume_ns == 300 * PAUSE_NS


class TestMarks:
    def test_each_mark_is_told_once(self):
        """An item is told the marks that it is the first to reach, in order."""
        recorder = StreamRecorder()

        assert [
            recorder.look(at, kind) for at, kind in enumerate((None, "token", "token", "visible", "visible"))
        ] == [("first_chunk",), ("first_token",), (), ("first_visible",), ()]
        assert not recorder.searching

    def test_text_reaches_all(self):
        """Visible text as the first item is chunk, token and visible at once."""
        assert StreamRecorder().look(1, "visible") == ("first_chunk", "first_token", "first_visible")


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**12)), max_size=30),
    st.integers(0, 10**18),
    st.integers(0, 10**12),
    st.sampled_from(["ok", "error", "cancelled", "abandoned"]),
)
def test_await_and_consume_add_up(steps, start, tail, outcome):
    """Awaited plus consumed time is the time from the first pull to the end, for every course."""
    recorder, now, awaited = StreamRecorder(), start, 0
    for wait, work in steps:
        recorder.pull(now)
        recorder.item(now + wait)
        awaited += wait
        now += wait + work

    summary = recorder.finish(now + tail, outcome)

    assert summary.await_ns + summary.consume_ns == summary.ended_ns - summary.started_ns
    assert awaited == summary.await_ns
    assert all(end - begin >= PAUSE_NS for begin, end in summary.pauses)


@given(st.lists(st.tuples(st.integers(0, PAUSE_NS - 1), st.integers(0, 10**9)), max_size=30))
def test_the_inlined_pull_is_the_recorders(steps):
    """The few sums that a wrapper does itself on a short pause are what pull and item do."""
    by_methods, inlined, now = StreamRecorder(), StreamRecorder(), 5
    for gap, wait in steps:
        now += gap
        by_methods.pull(now)
        if (since := now - inlined.idle_since_ns) < PAUSE_NS:
            inlined.consume_ns += since
        else:
            inlined.pull(now)
        inlined.idle_since_ns = NOT_IDLE
        now += wait
        by_methods.item(now)
        inlined.idle_since_ns = now
        inlined.chunks += 1

    assert by_methods.finish(now, "ok") == inlined.finish(now, "ok")


class Cancelled(BaseException):
    """As trio names it."""


class Interrupted(KeyboardInterrupt):
    """A subclass of a cancellation is one."""


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (StopIteration(), "ok"),
        (StopAsyncIteration(), "ok"),
        (asyncio.CancelledError(), "cancelled"),
        (Cancelled(), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
        (Interrupted(), "cancelled"),
        (SystemExit(1), "cancelled"),
        (GeneratorExit(), "abandoned"),
        (ValueError(), "error"),
        (TimeoutError(), "error"),
        (BaseException(), "error"),
        (BaseExceptionGroup("several", [KeyboardInterrupt()]), "error"),
    ],
)
def test_outcome_of_an_error(error, outcome):
    """The exception that leaves a pull says how the stream ended."""
    assert outcome == outcome_of(error)


class Awaitable:
    def __await__(self):
        yield


class Both:
    def __iter__(self):
        yield

    async def __aiter__(self):
        yield


class AsyncManager:
    async def __aenter__(self): ...


class Manager(AsyncManager):
    def __enter__(self): ...


async def agen():
    yield


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        (list, "sync"),
        (type(iter([])), "sync"),
        (type(agen()), "async"),
        (Both, "both"),
        (Awaitable, "awaitable"),
        (asyncio.Future, "awaitable"),
        (AsyncManager, "async"),
        (Manager, "sync"),
        (int, None),
    ],
)
def test_stream_protocol(kind, protocol):
    """How an object is iterated is read off its class; a Future is awaited although it has __iter__."""
    assert protocol == stream_protocol(kind)


def objects(value):
    """The same chunk as objects with attributes, as SDKs hand them over."""
    if isinstance(value, dict):
        return Item(**{name: objects(inner) for name, inner in value.items()})
    return [objects(inner) for inner in value] if isinstance(value, list) else value


def chat(**delta):
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}], "usage": None}


def block(kind, **fields):
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **fields}}


def gemini(*parts):
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}}]}


CHUNKS = {
    "visible": [
        chat(content="Hi"),
        chat(refusal="No"),
        chat(content=" ", reasoning_content="hm"),
        {"choices": [{"text": "Hi"}]},
        {"type": "response.output_text.delta", "delta": "Hi"},
        {"type": "response.refusal.delta", "delta": "No"},
        {"type": "content.delta", "delta": "Hi"},
        block("text_delta", text="Hi"),
        gemini({"text": "Hi"}),
        gemini({"text": "hm", "thought": True}, {"text": "Hi"}),
        gemini({"functionCall": {"name": "f"}}, {"text": "Hi"}),
    ],
    "token": [
        chat(reasoning_content="hm"),
        chat(reasoning="hm", content=None),
        chat(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]),
        chat(tool_calls=[{"index": 1, "function": {"arguments": '{"a'}}]),
        chat(function_call={"name": "f", "arguments": ""}),
        chat(function_call={"arguments": "{"}),
        {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
        {"type": "response.function_call_arguments.delta", "delta": "{"},
        {"type": "tool_calls.function.arguments.delta", "arguments_delta": "{"},
        {"type": "response.output_item.added", "item": {"type": "function_call", "name": "f"}},
        {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "f"}},
        {"type": "content_block_start", "content_block": {"type": "server_tool_use", "name": "f"}},
        block("thinking_delta", thinking="hm"),
        block("input_json_delta", partial_json='{"a'),
        gemini({"text": "hm", "thought": True}),
        gemini({"functionCall": {"name": "f", "args": {}}}),
        gemini({"function_call": {"name": "f"}}),
    ],
    None: [
        chat(role="assistant", content=""),
        chat(role="assistant", content=None, tool_calls=None, function_call=None),
        chat(tool_calls=[]),
        chat(function_call={"name": None, "arguments": ""}),
        chat(),
        {"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 3}},
        {"choices": None},
        {"type": "ping"},
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_start", "content_block": None},
        {"type": "content_block_stop", "index": 0},
        block("text_delta", text=""),
        block("signature_delta", signature="s"),
        {"type": "content_block_delta", "delta": None},
        {"type": "response.created", "response": {}},
        {"type": "response.output_item.added", "item": {"type": "message"}},
        {"type": "response.output_text.delta", "delta": ""},
        {"type": "response.completed", "response": {"usage": {"input_tokens": 1}}},
        {"type": 7},
        gemini({"text": ""}),
        gemini(),
        {"candidates": [{"content": None}]},
        {"candidates": []},
        {"usageMetadata": {"totalTokenCount": 1}},
        {},
    ],
}


@pytest.mark.parametrize(
    ("kind", "chunk"), [(kind, chunk) for kind, chunks in CHUNKS.items() for chunk in chunks], ids=str
)
def test_chunks_of_providers(kind, chunk):
    """Text is visible, reasoning and tool calls are tokens, the rest is nothing; dicts and objects alike."""
    assert kind == content_kind(chunk)
    assert kind == content_kind(objects(chunk))


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("Hi", "visible"),
        ("\n", "visible"),
        ("data: it is text", "visible"),
        ("", None),
        (b"Hi", "visible"),
        (bytearray(b"Hi"), "visible"),
        (b"", None),
        (b"\r\n\r\n", None),
        (b": keep-alive\n\n", None),
        (b'event: ping\ndata: {"type": "ping"}\n\n', None),
        (b"data: [DONE]\n\n", None),
        (b'data: {"choices":[{"delta":{"content":"Hi"}}]}\r\n\r\n', "visible"),
        (b'data: {"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}\n\ndata: {"choices":[]}\n\n', "token"),
        (
            b'data: {"choices":[{"delta":{"reasoning":"hm"}}]}\n\ndata: {"choices":[{"delta":{"content":"x"}}]}\n\n',
            "visible",
        ),
        (b'data: {"choices":[{"del', None),
        (b"data: 7\n\n", None),
        (None, None),
        (7, None),
        ([], None),
        (object(), None),
    ],
    ids=repr,
)
def test_strings_and_other_items(item, kind):
    """A string is text; bytes are server-sent events or text; what is neither carries no content."""
    assert kind == content_kind(item)


class Hostile:
    """Every attribute raises."""

    def __getattr__(self, name):
        raise RuntimeError(name)


class Endless:
    """Every attribute is the object itself, which is neither empty nor a string."""

    def __getattr__(self, name):
        return self

    def __getitem__(self, key):
        return self

    def __bool__(self):
        return True


@pytest.mark.parametrize(
    "item",
    [Hostile(), Endless(), Mock(), MagicMock(), {"choices": 7}, {"choices": {"a": 1}}],
    ids=["hostile", "endless", "mock", "magic", "number", "mapping"],
)
def test_hostile_items_carry_no_content(item):
    """Whatever an item does when it is looked at, nothing is raised and nothing is claimed."""
    assert content_kind(item) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "content", "type", "candidates", "parts", "text", "tool_calls"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON | st.binary())
def test_anything_can_be_a_chunk(item):
    """No decoded JSON and no bytes make content_kind raise."""
    assert content_kind(item) in {None, "token", "visible"}


def test_a_real_interrupt_is_not_swallowed():
    """Only errors of the item are kept back; an interrupt that arrives meanwhile is the caller's."""

    class Interrupting:
        @property
        def choices(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        content_kind(Interrupting())
