"""The log of a turn on disk: what a disk that is slow or full does to it."""

import errno
import time
from collections import deque

import orjson
import pytest
from opentelemetry.context import Context
from opentelemetry.trace import set_span_in_context

import turntrace as tt
from otel.fakes import AGENT, CHAT, TOOL
from recordings import Recorded
from turntrace.files.journal import JournalFile
from turntrace.files.out import parts_of
from turntrace.otel import file_log


@pytest.fixture(params=["sync", "thread"])
def recorded(request, tmp_path, clock):
    """A recording with a journal in each mode."""
    with Recorded(tmp_path / "t.ndjson", clock=clock, journal=request.param) as recording:
        yield recording


def agent(recorded):
    """An agent span and its turn."""
    span = recorded.tracer().start_span("invoke_agent coder", attributes=AGENT)
    return span, recorded.processor.sink(set_span_in_context(span, Context()))


def test_every_line_is_on_disk_while_the_turn_runs(recorded):
    """Header, starts, ends, counters, marks, usage and warnings: what a kill would leave behind."""
    span, turn = agent(recorded)
    context = set_span_in_context(span, Context())
    turn.count("retry_count", 1)
    turn.mark("first_visible", turn.now_ns(), None)
    turn.warn("odd", "something", None)
    recorded.tracer().start_span("chat m-1", context, attributes=CHAT).end()
    assert recorded.processor.force_flush()
    text = b"".join(part.read_bytes() for part in parts_of(recorded.out)).decode()
    for kind in ("trace", "span_start", "counter", "mark", "warning", "span", "usage"):
        assert f'"type":"{kind}"' in text
    assert not recorded.out.exists()
    span.end()


def test_only_allowed_attributes_reach_the_file(tmp_path, clock):
    """Prompts stay out; names that the user keeps come in; strings are cut."""
    out = tmp_path / "t.ndjson"
    with Recorded(out, clock=clock, keep_attributes=frozenset({"mine"})) as recorded:
        attributes = {**CHAT, "mine": 1, "gen_ai.prompt": "secret", "server.address": "h" * 300}
        recorded.tracer().start_span("chat m-1", attributes=attributes).end()
    (span,) = recorded.blocks()[0].turn.spans
    assert span.attributes["mine"] == 1
    assert len(span.attributes["server.address"]) == 256
    assert b"secret" not in out.read_bytes()


def test_a_slow_disk_moves_the_journal_to_the_thread(tmp_path, clock, monkeypatch, capsys):
    """The second write beyond 100 ms is said once; from then on no span waits for the disk."""
    monkeypatch.setattr(file_log, "_SLOW_NS", -1)
    with Recorded(tmp_path / "t.ndjson", clock=clock, journal="sync") as recorded:
        recording = recorded.processor.recording
        recording.calls._again_ns = 2**62  # it is known to be slow
        span, turn = agent(recorded)
        assert recording.slow_disk
        assert turn.log._is_sync is False
        monkeypatch.undo()
        recorded.tracer().start_span("chat", set_span_in_context(span, Context()), attributes=CHAT).end()
        span.end()
    assert recorded.guard.dropped == {"slow_disk": 1}
    assert capsys.readouterr().err.count("the disk is slow") == 1
    assert [span.name for span in recorded.blocks()[0].turn.spans] == ["chat"]


def test_one_slow_write_is_no_slow_disk(tmp_path, clock):
    """A disk may hesitate once."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        recorded.processor.recording.disk_was_slow()
        assert not recorded.processor.recording.slow_disk


def test_a_full_disk_costs_lines_not_the_agent(tmp_path, clock, monkeypatch, capsys):
    """The first failed write is a line on stderr, all are counted, and spans go on."""
    with Recorded(tmp_path / "t.ndjson", clock=clock, journal="sync") as recorded:
        with monkeypatch.context() as full:

            def refuse(self, data):
                raise OSError(errno.ENOSPC, "No space left on device")

            full.setattr(JournalFile, "write", refuse)
            span, _ = agent(recorded)
            tool = recorded.tracer().start_span(
                "execute_tool bash", set_span_in_context(span, Context()), attributes=TOOL
            )
        tool.end()
        span.end()
    assert capsys.readouterr().err.count("No space left on device; the agent goes on") == 1
    assert recorded.guard.dropped["write_failed"] >= 2
    (block,) = recorded.blocks()
    assert [span.tool for span in block.turn.spans] == ["bash"]


def test_a_disk_that_takes_no_batch_is_counted_too(tmp_path, clock, monkeypatch, capsys):
    """In thread mode the lines of all turns fail together, once."""
    with Recorded(tmp_path / "t.ndjson", clock=clock, journal="thread") as recorded:
        intake = recorded.processor.recording.intake

        def refuse():
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as full:
            full.setattr(type(intake), "flush", lambda self: refuse())
            recorded.processor.recording.flush_intake()
            recorded.processor.recording.flush_intake()
    assert recorded.guard.dropped["write_failed"] == 2
    assert capsys.readouterr().err.count("No space left") == 1


def own_kinds(recorded):
    """Type and phase of each line that is on disk by now, of our own spans."""
    lines = b"".join(part.read_bytes() for part in parts_of(recorded.out)).splitlines()
    told = [orjson.loads(line) for line in lines]
    return [(line["type"], line["name"]) for line in told if line["type"] in {"span_start", "span"}]


def test_what_may_kill_the_process_is_on_disk_when_it_begins(tmp_path):
    """In sync mode at once: a crash of a tool names the tool."""
    with Recorded(tmp_path / "t.ndjson", journal="sync") as recorded, tt.turn("a"):
        for begun in (
            tt.tool("bash"),
            tt.generation(model="m"),
            tt.phase("process_wait"),
            tt.phase("verification"),
        ):
            with begun:
                assert own_kinds(recorded)[-1] == ("span_start", begun.phase)


@pytest.mark.parametrize("journal", ["sync", "thread"])
def test_a_short_phase_has_one_line(tmp_path, journal):
    """Its end says all that its start would have said."""
    with Recorded(tmp_path / "t.ndjson", journal=journal) as recorded, tt.turn("a"):
        with (
            tt.phase("prompt_build"),
            recorded.processor.recording.writer.paused(),
            tt.phase("tool_planning"),
        ):
            pass
        recorded.processor.force_flush()
        kinds = own_kinds(recorded)
        assert ("span", "tool_planning") in kinds
        assert ("span_start", "tool_planning") not in kinds


def test_what_is_above_a_line_is_told_with_it(tmp_path):
    """Whatever is on disk, its parents are, in the order in which they began."""
    with (
        Recorded(tmp_path / "t.ndjson", journal="sync") as recorded,
        tt.turn("a"),
        recorded.processor.recording.writer.paused(),
        tt.phase("prompt_build"),
        tt.phase("tool_queue"),
    ):
        assert ("span_start", "prompt_build") not in own_kinds(recorded)
        with tt.tool("bash"):
            told = own_kinds(recorded)[-3:]
    assert told == [("span_start", name) for name in ("prompt_build", "tool_queue", "tool_execution")]


@pytest.mark.parametrize("journal", ["sync", "thread"])
def test_a_phase_that_lasts_is_on_disk_soon(tmp_path, journal):
    """Nobody has to end anything for it: the writer's thread tells what began."""
    with Recorded(tmp_path / "t.ndjson", journal=journal) as recorded, tt.turn("a"), tt.phase("prompt_build"):
        deadline_s = time.monotonic() + 10
        while ("span_start", "prompt_build") not in own_kinds(recorded):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)


def test_starts_that_another_thread_took_are_told_by_that(tmp_path):
    """Two threads that end spans of a turn share what began."""

    class Taken(deque):
        def popleft(self):
            self.clear()
            return super().popleft()

    with Recorded(tmp_path / "t.ndjson", journal="sync"), tt.turn("a") as turn:
        turn._sink.log._begun = Taken()
        with tt.phase("prompt_build"), tt.tool("bash"):
            pass
    assert turn.report().phases["prompt_build"].count == 1
