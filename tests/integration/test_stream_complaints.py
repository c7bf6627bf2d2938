"""Complaints about streams in other tools, through generation().stream(): spans, times, tokens, memory."""

import asyncio
import gc
import logging

import pytest
from opentelemetry import trace

import turntrace as tt
from otel.fakes import MS, FakeClock
from recordings import Recorded

ROLE = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
TEXT = {"choices": [{"delta": {"content": "word"}}]}
CALL = {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}}]}


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the test moves, the SDK's too."""
    fake = FakeClock()
    monkeypatch.setattr("opentelemetry.sdk.trace.time_ns", fake.wall_ns)
    return fake


def chunks(clock, *steps):
    """Items, each after so many ms of the provider's time."""
    for wait_ms, item in steps:
        clock.wait(wait_ms)
        yield item


def generation(turn):
    """The only model call of a turn."""
    (found,) = [span for span in turn.spans if span.phase == "generation"]
    return found


def test_complaint_11_r12_a_slow_consumer_is_no_model_time(tmp_path, clock):
    """Five chunks 50 ms apart from 200 ms on, the caller works 100 ms after each: the two are told apart."""
    with (
        Recorded(tmp_path / "t.ndjson", clock=clock) as recorded,
        tt.turn("a"),
        tt.generation(model="m") as call,
    ):
        for _ in call.stream(chunks(clock, (200, TEXT), *[(50, TEXT)] * 4)):
            clock.wait(100)
    (block,) = recorded.blocks()
    span = generation(block.turn)
    assert span.attributes["turntrace.stream.await_ms"] == 400
    assert span.attributes["turntrace.stream.consume_ms"] == 500
    assert span.attributes["turntrace.first_token_ms"] == 200
    exclusive_ms = {times.phase: 0 for times in block.attribution.spans}
    for times in block.attribution.spans:
        exclusive_ms[times.phase] += times.exclusive_ns // MS
    assert exclusive_ms == {"generation": 400, "stream_consume": 500}
    assert (span.end_ns - span.start_ns) // MS == 900


@pytest.mark.parametrize("first", [TEXT, CALL])
def test_complaint_12_r11_an_opening_chunk_is_no_first_token(tmp_path, clock, first):
    """The role comes at 10 ms, content at 400: the one is first_chunk, the other first_token."""
    with (
        Recorded(tmp_path / "t.ndjson", clock=clock) as recorded,
        tt.turn("a"),
        tt.generation(model="m") as call,
    ):
        for _ in call.stream(chunks(clock, (10, ROLE), (390, first))):
            pass
    (block,) = recorded.blocks()
    span = generation(block.turn)
    assert span.attributes["gen_ai.response.time_to_first_chunk"] == pytest.approx(0.010)
    assert span.attributes["turntrace.first_token_ms"] == 400
    assert (block.turn.first_token_ns - block.turn.started_ns) // MS == 400


def test_complaint_12_an_answer_in_one_piece_has_no_first_token(tmp_path, clock):
    """Nothing was streamed: null, not the whole time."""
    with (
        Recorded(tmp_path / "t.ndjson", clock=clock) as recorded,
        tt.turn("a"),
        tt.generation(model="m") as call,
    ):
        clock.wait(300)
        call.usage(input_tokens=1, output_tokens=1)
    (block,) = recorded.blocks()
    assert (block.turn.first_token_ns, block.turn.first_chunk_ns) == (None, None)
    assert "turntrace.first_token_ms" not in generation(block.turn).attributes


def test_complaint_13_a_span_lasts_as_long_as_its_stream(tmp_path, clock):
    """Ten times 100 ms: the span is a second long and has its children inside."""
    with (
        Recorded(tmp_path / "t.ndjson", clock=clock) as recorded,
        tt.turn("a"),
        tt.generation(model="m") as call,
    ):
        for number, _ in enumerate(call.stream(chunks(clock, *[(100, TEXT)] * 10))):
            if number == 4:
                with tt.tool("inner"):
                    clock.wait(5)
    (block,) = recorded.blocks()
    span = generation(block.turn)
    (inner,) = [one for one in block.turn.spans if one.tool == "inner"]
    assert (span.end_ns - span.start_ns) // MS == 1005
    assert inner.parent_id == span.span_id
    assert span.start_ns <= inner.start_ns <= inner.end_ns <= span.end_ns


def test_complaint_14_ten_thousand_streams_that_nobody_finishes_leave_nothing(tmp_path):
    """Left after a chunk, or never begun: no span stays open, each ends once as abandoned, nothing grows."""

    def leave(count):
        for number in range(count):
            with tt.generation(model="m") as call:
                stream = call.stream(iter([TEXT, TEXT, TEXT]))
                if number % 2:
                    next(iter(stream))

    def objects(recorded):
        """How many live, what the test's own exporter keeps left out."""
        recorded.exporter.clear()
        recorded.processor.force_flush()
        gc.collect()
        return len(gc.get_objects())

    with Recorded(tmp_path / "t.ndjson", journal="thread") as recorded, tt.turn("a") as turn:
        leave(500)
        before = objects(recorded)
        leave(10_000)
        assert objects(recorded) - before < 500
        assert set(recorded.processor.recording.table.open_spans) == {turn._sink.root_id}
        recorded.exporter.clear()
        leave(100)
        ended = recorded.exporter.get_finished_spans()
        assert {span.status.status_code for span in ended} == {trace.StatusCode.UNSET}
        assert [span.attributes["turntrace.outcome"] for span in ended].count("abandoned") >= 50
        recorded.exporter.clear()


async def test_r71_a_cancelled_stream_has_its_chunks_and_no_tokens(tmp_path):
    """Two of six came: chunks 2, tokens unknown, and the time up to the cancellation."""
    reached = asyncio.Event()

    async def six():
        for number in range(6):
            if number == 2:
                reached.set()
                await asyncio.sleep(60)
            yield TEXT

    async def agent():
        async with tt.turn("a"), tt.generation(model="m") as call:
            async for _ in call.stream(six()):
                pass

    with Recorded(tmp_path / "t.ndjson") as recorded:
        task = asyncio.create_task(agent())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (block,) = recorded.blocks()
    span = generation(block.turn)
    assert (span.outcome, span.attributes["turntrace.stream.chunks"]) == ("cancelled", 2)
    (usage,) = block.turn.usage
    assert (usage.provenance, usage.input_tokens, usage.output_tokens) == ("missing", None, None)
    assert block.turn.status == "cancelled"


def test_r14_a_generator_that_is_left_early_hands_its_parent_back(tmp_path, caplog):
    """Ten items, left after three: the generator's span ends, and what comes next hangs on the caller's."""

    @tt.turn.wrap("agent")
    async def ten():
        for number in range(10):
            with tt.phase("prompt_build"):
                pass
            yield number

    async def caller(recorded):
        tracer = recorded.tracer()
        with tracer.start_as_current_span("caller") as outer:
            async for number in ten():
                if number == 2:
                    break
            with tracer.start_as_current_span("next") as following:
                assert following.parent.span_id == outer.get_span_context().span_id
        gc.collect()

    with caplog.at_level(logging.WARNING), Recorded(tmp_path / "t.ndjson") as recorded:
        asyncio.run(caller(recorded))
    assert [record for record in caplog.records if record.name != "asyncio"] == []
    turns = {block.turn.agent: block.turn for block in recorded.blocks()}
    assert [span.phase for span in turns["agent"].spans].count("prompt_build") == 3


def test_complaint_22_many_attributes_of_the_callers_push_out_none_of_ours(tmp_path):
    """A request with 500 of them: model, tokens, phase and ids are all there."""
    attributes = {f"app.message.{number}": number for number in range(500)}
    with (
        Recorded(tmp_path / "t.ndjson") as recorded,
        tt.turn("a"),
        tt.generation(model="m-1", provider="p", attributes=attributes) as call,
    ):
        call.usage(input_tokens=10, output_tokens=3)
    (span,) = [one for one in recorded.exporter.get_finished_spans() if one.name == "chat m-1"]
    for name, value in {
        "turntrace.phase": "generation",
        "turntrace.outcome": "ok",
        "turntrace.round": 1,
        "gen_ai.request.model": "m-1",
        "gen_ai.provider.name": "p",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 3,
    }.items():
        assert span.attributes[name] == value
    assert "turntrace.exclusive_ms" in span.attributes
    (block,) = recorded.blocks()
    assert "many_attributes" in {warning.code for warning in block.turn.warnings}
