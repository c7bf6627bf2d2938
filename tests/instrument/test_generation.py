"""generation(): what a model call tells of itself and of its streams."""

import asyncio
import gc
import logging
import time

import pytest

import turntrace as tt
from recordings import Recorded
from turntrace.core.streams import PAUSE_NS
from turntrace.instrument.model_calls import GenerationStream

CHUNKS = [{"choices": [{"delta": {"role": "assistant"}}]}, "Hello ", "world"]


class Broken:
    """A source whose every attribute raises."""

    def __getattribute__(self, name):
        raise RuntimeError("secret")


@pytest.fixture
def recorded(tmp_path):
    """A recording into a file."""
    with Recorded(tmp_path / "t.ndjson") as recording:
        yield recording


def chat(recording):
    """The attributes of the generation's span."""
    return recording.spans()["chat m"].attributes


def in_file(recording):
    """The generation as it stands in the file."""
    recording.processor.force_flush()
    [block] = recording.blocks()
    return next(span for span in block.turn.spans if span.phase == "generation")


def test_a_stream_is_measured_onto_the_span(recorded):
    """Moments, waiting, chunks and the outcome are attributes; the turn has the moments."""
    with tt.turn("a") as turn:
        with tt.generation(
            model="m", provider="p", operation="chat", attributes={"turntrace.reason": "x"}
        ) as g:
            assert list(g.stream(iter(CHUNKS))) == CHUNKS
        report = turn.report()
    attributes = chat(recorded)
    assert attributes["gen_ai.request.stream"] is True
    assert attributes["turntrace.stream.chunks"] == 3
    assert attributes["turntrace.outcome"] == "ok"
    first_chunk_ms = attributes["gen_ai.response.time_to_first_chunk"] * 1000
    assert (
        0
        <= first_chunk_ms
        <= attributes["turntrace.first_token_ms"]
        <= attributes["turntrace.first_visible_ms"]
    )
    assert attributes["turntrace.stream.await_ms"] >= 0
    assert report.turn.first_chunk_ns <= report.turn.first_token_ns <= report.turn.first_visible_ns


@pytest.mark.parametrize(
    ("end", "outcome"),
    [(None, "ok"), (ValueError, "error"), (KeyboardInterrupt, "cancelled"), ("break", "abandoned")],
)
def test_how_the_stream_ended_is_how_the_call_ended(recorded, end, outcome):
    """On the span and in the file alike, even when the agent swallowed the error."""

    def source():
        yield "a"
        if isinstance(end, type):
            raise end
        yield "b"

    with tt.turn("a"), tt.generation(model="m") as g:
        try:
            for _ in g.stream(source()):
                if end == "break":
                    break
        except (ValueError, KeyboardInterrupt):
            pass
    assert chat(recorded)["turntrace.outcome"] == outcome
    assert in_file(recorded).outcome == outcome


def test_a_stream_that_is_still_held_ends_with_its_block(recorded):
    """The generation does not wait for the garbage collector, and later pulls change nothing."""
    with tt.turn("a"):
        with tt.generation(model="m") as g:
            stream = g.stream(iter("abc"))
            next(stream)
        assert chat(recorded)["turntrace.outcome"] == "abandoned"
        assert list(stream) == ["b", "c"]
    assert chat(recorded)["turntrace.stream.chunks"] == 1


def test_an_error_of_the_block_wins_over_its_streams(recorded):
    """What left the block is its outcome; a stream that was read to its end ended well."""

    def call():
        with tt.generation(model="m") as g:
            list(g.stream(iter("ab")))
            raise LookupError

    with tt.turn("a"), pytest.raises(LookupError):
        call()
    assert chat(recorded)["turntrace.outcome"] == "error"
    assert chat(recorded)["turntrace.stream.chunks"] == 2


def test_a_stream_that_nobody_pulled_says_nothing(recorded):
    """A request that was not read is abandoned, with no moment."""
    with tt.turn("a"), tt.generation(model="m") as g:
        stream = g.stream(iter("ab"))
        assert stream is not None
    assert "gen_ai.response.time_to_first_chunk" not in chat(recorded)
    assert chat(recorded)["turntrace.stream.chunks"] == 0


@pytest.mark.parametrize("make", [Broken, int, list, object, lambda: None])
def test_a_source_that_is_no_stream_never_raises(recorded, make, caplog):
    """The agent learns it from its own pull, as without us; what is lost is said without the message."""
    with tt.turn("a"), tt.generation(model="m") as g:
        given = g.stream(make())
        del given
        gc.collect()
    assert "secret" not in caplog.text
    assert recorded.spans()["chat m"].end_time is not None


def test_a_source_that_cannot_be_wrapped_is_given_back(recorded, caplog):
    """The very same object, the loss counted and logged once."""
    source = Broken()
    with tt.turn("a"), tt.generation(model="m") as g:
        assert g.stream(source) is source
    assert recorded.guard.dropped["error"] == 1
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


async def test_an_async_stream_is_measured_alike(recorded):
    """Awaited items count as pulled ones."""

    async def source():
        for text in CHUNKS:
            await asyncio.sleep(0)
            yield text

    async with tt.turn("a"), tt.generation(model="m") as g:
        assert [item async for item in g.stream(source())] == CHUNKS
    assert chat(recorded)["turntrace.stream.chunks"] == 3


def test_a_long_pause_of_the_caller_is_a_phase_of_its_own(recorded):
    """The time between two pulls is the agent's: a span below the generation, outside its own time."""
    with tt.turn("a"), tt.generation(model="m") as g:
        stream = g.stream(iter("ab"))
        next(stream)
        time.sleep(2 * PAUSE_NS / 1e9)
        next(stream)
    pause = recorded.spans()["stream_consume"]
    assert pause.parent.span_id == recorded.spans()["chat m"].context.span_id
    assert pause.end_time - pause.start_time >= 2 * PAUSE_NS
    assert pause.attributes["turntrace.phase"] == "stream_consume"


def test_what_comes_after_the_block_is_nothing(recorded):
    """A pause or a fact told to a generation that is over changes no span."""
    with tt.turn("a"):
        with tt.generation(model="m") as g:
            pass
        g.paused(1, 2)
        g.usage(input_tokens=1)
        g.finish_reasons("stop")
        assert g.stream(CHUNKS) is CHUNKS
    assert "stream_consume" not in recorded.spans()
    assert "gen_ai.usage.input_tokens" not in chat(recorded)


def test_a_pause_after_the_generation_was_dropped_is_nothing(recorded):
    """A stream that outlives its generation keeps neither it nor its span."""
    with tt.turn("a") as turn:
        with tt.generation(model="m") as g:
            listener = GenerationStream(g, g._span, turn._sink)
        del g
        gc.collect()
        listener.pause(1, 2)
        assert listener.outcome == "ok"
    assert "stream_consume" not in recorded.spans()


def test_rounds_count_generations(recorded):
    """Each model call begins a round; what comes before it belongs to it already."""
    with tt.turn("a"):
        for _ in range(2):
            with tt.phase("prompt_build"):
                pass
            with tt.generation(model="m"):
                pass
            with tt.tool("t"):
                pass
    rounds = [span.attributes.get("turntrace.round") for span in recorded.exporter.get_finished_spans()]
    assert rounds[:-1] == [1, 1, 1, 2, 2, 2]
