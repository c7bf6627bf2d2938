"""When a turn ends: its block, its lingering spans, its fragments, its bounds."""

import contextvars
import sys
import threading

import pytest
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context

import turntrace as tt
from otel.fakes import AGENT, CHAT, MS, START_NS, TOOL, a_chat, a_tool, an_agent
from recordings import Recorded, blocks_of
from turntrace.core.codec.journal import read_journal
from turntrace.files.out import parts_of
from turntrace.otel import span_start
from turntrace.otel.processor import TurnSpanProcessor

HOUR_MS = 3_600_000


def remote(trace_id, span_id=0xDEF):
    """A context whose current span lives in another process."""
    there = SpanContext(trace_id, span_id, True, TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(there), Context())


def settle(recorded):
    """Let the writer do what is due by its clock."""
    recorded.processor.force_flush()
    recorded.processor.closer.tick()
    recorded.processor.force_flush()


@pytest.fixture(params=["sync", "thread", "off"])
def recorded(request, tmp_path, clock):
    """A recording into a file, in each journal mode."""
    with Recorded(tmp_path / "t.ndjson", clock=clock, journal=request.param) as recording:
        yield recording


def agent_with_late_tool(recorded, clock):
    """An agent span that has ended after 10 ms while a tool of it is still open."""
    tracer = recorded.tracer()
    with an_agent(tracer):
        tool = tracer.start_span("execute_tool bash", attributes=TOOL)
        clock.wait(10)
    return tool


def test_a_turn_is_written_when_its_last_span_ends(recorded, clock):
    """The block does not wait for the linger time when nothing is open any more."""
    tool = agent_with_late_tool(recorded, clock)
    settle(recorded)
    assert not recorded.out.exists()
    clock.wait(5)
    tool.end()
    settle(recorded)
    (block,) = recorded.blocks()
    (span,) = block.turn.spans
    assert (span.outcome, span.end_ns) == ("ok", START_NS + 15 * MS)
    assert block.turn.completed_ns == START_NS + 10 * MS
    assert block.turn.status == "ok"
    recorded.processor.shutdown()
    assert parts_of(recorded.out) == []


def test_a_turn_lingers_a_second_for_spans_that_outlive_its_root(recorded, clock):
    """What is open when the time is up ends then, incomplete; the window is the root's."""
    agent_with_late_tool(recorded, clock)
    clock.wait(999)
    settle(recorded)
    assert not recorded.out.exists()
    clock.wait(1)
    settle(recorded)
    (block,) = recorded.blocks()
    (span,) = block.turn.spans
    assert (span.outcome, span.end_ns) == ("incomplete", START_NS + 1010 * MS)
    assert block.turn.completed_ns == START_NS + 10 * MS


def test_a_turn_waits_for_the_last_of_its_late_spans(recorded, clock):
    """One of two late spans that ends leaves the turn open for the other."""
    tracer = recorded.tracer()
    with an_agent(tracer):
        late = [tracer.start_span(f"execute_tool {name}", attributes=TOOL) for name in "ab"]
    for span, is_last in zip(late, (False, True), strict=True):
        assert not recorded.out.exists()
        clock.wait(1)
        span.end()
        settle(recorded)
        assert recorded.out.exists() is is_last
    assert {span.outcome for span in recorded.blocks()[0].turn.spans} == {"ok"}


def test_a_span_that_ends_after_its_turn_was_written_changes_nothing(recorded, clock):
    """A late end is let through; the block stands."""
    tool = agent_with_late_tool(recorded, clock)
    clock.wait(1000)
    settle(recorded)
    tool.end()
    settle(recorded)
    assert [span.outcome for span in recorded.blocks()[0].turn.spans] == ["incomplete"]
    assert recorded.guard.dropped["unseen_start"] == 1


def test_a_span_that_starts_below_a_written_turn_is_no_part_of_it(recorded, clock):
    """After the block a span of the old trace opens a turn of its own, if it is a phase."""
    with an_agent(recorded.tracer()) as root:
        context = set_span_in_context(root, Context())
    settle(recorded)
    recorded.tracer().start_span("chat m-1", context, attributes=CHAT).end()
    settle(recorded)
    assert [block.turn.turn_source for block in recorded.blocks()] == ["dialect", "local_root"]


def test_the_end_of_the_recording_closes_every_turn(recorded, clock):
    """A root that never ended leaves an interrupted turn without a window; its open spans are incomplete."""
    tracer = recorded.tracer()
    with an_agent(tracer, end_on_exit=False):
        tracer.start_span("execute_tool bash", attributes=TOOL)
        clock.wait(3)
        tracer.start_span("chat m-1", attributes=CHAT).end()
    recorded.processor.shutdown()
    (block,) = recorded.blocks()
    assert (block.turn.status, block.turn.completed_ns) == ("interrupted", None)
    assert {span.name: span.outcome for span in block.turn.spans} == {
        "execute_tool bash": "incomplete",
        "chat m-1": "ok",
    }


def test_closing_twice_writes_one_block(recorded, clock):
    """Whoever closes a turn second finds it done."""
    span = recorded.tracer().start_span("invoke_agent coder", attributes=AGENT)
    turn = recorded.processor.sink(set_span_in_context(span, Context()))
    span.end()
    settle(recorded)
    recorded.processor.closer.close(turn)
    recorded.processor.closer.roll_over(turn)
    recorded.processor.closer._leave(turn)
    recorded.processor.shutdown()
    assert len(recorded.blocks()) == 1
    before = recorded.processor.record_of(turn)
    assert before == recorded.processor.record_of(turn)
    assert before[0].completed_ns == START_NS


def test_what_comes_after_the_block_is_counted_not_kept(tmp_path, clock):
    """Counts, marks and warnings of a closed turn change nothing."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        span = recorded.tracer().start_span("invoke_agent coder", attributes=AGENT)
        turn = recorded.processor.sink(set_span_in_context(span, Context()))
        span.end()
        settle(recorded)
        turn.count("retry_count", 1)
        turn.mark("first_visible", START_NS, None)
        turn.warn("late", "nobody hears it", None)
    assert recorded.guard.dropped == {"late": 1}
    assert parts_of(recorded.out) == []


def test_a_turn_with_too_many_spans_goes_on_under_a_new_run_id(recorded, clock, monkeypatch):
    """Beyond the bound the turn so far is an interrupted block; the rest is another run of the same root."""
    monkeypatch.setattr(span_start, "MAX_SPANS", 4)
    tracer = recorded.tracer()
    with an_agent(tracer):
        for _ in range(3):
            clock.wait(1)
            with a_tool(tracer):
                clock.wait(1)
            settle(recorded)
        with a_chat(tracer):
            clock.wait(1)
    recorded.processor.shutdown()
    first, second = (block.turn for block in recorded.blocks())
    assert first.run_id != second.run_id
    assert first.span_id == second.span_id
    assert (first.status, second.status) == ("interrupted", "ok")
    assert [span.name for span in first.spans][:3] == ["execute_tool bash"] * 3
    assert [span.name for span in second.spans] == ["chat m-1"]
    assert recorded.guard.dropped == {}


def test_a_turn_that_is_open_for_more_than_a_day_is_cut_too(tmp_path, clock):
    """After 24 hours the next span closes the turn so far; an open span goes on in the new run."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with an_agent(tracer), a_chat(tracer):
            clock.wait(24 * HOUR_MS)
            tracer.start_span("execute_tool a", attributes=TOOL).end()
            settle(recorded)
            assert not recorded.out.exists()
            clock.wait(1)
            tracer.start_span("execute_tool b", attributes=TOOL).end()
            settle(recorded)
            assert len(blocks_of(recorded.out)) == 1
    first, second = (block.turn for block in recorded.blocks())
    assert first.status == "interrupted"
    assert {span.name for span in second.spans} == {"chat m-1"}
    assert len(recorded.blocks()) == 2


def test_a_rollover_without_a_file_keeps_the_turn_alive(clock, monkeypatch):
    """In memory the rows start anew; nothing is written and the turn ends as it would have."""
    monkeypatch.setattr(span_start, "MAX_SPANS", 2)
    with Recorded(clock=clock) as recorded:
        tracer = recorded.tracer()
        with an_agent(tracer) as root:
            turn = recorded.processor.sink(set_span_in_context(root, Context()))
            run_id = turn.run_id
            tracer.start_span("execute_tool bash", attributes=TOOL).end()
            settle(recorded)
            assert turn.run_id != run_id
            tracer.start_span("chat m-1", attributes=CHAT).end()
            record, _ = recorded.processor.record_of(turn)
    assert [span.name for span in record.spans] == ["chat m-1"]


def test_a_local_root_that_never_ended_is_a_turn_if_a_phase_was_open_in_it(recorded):
    """What is cut at the end counts for the decision as what had ended."""
    tracer = recorded.tracer()
    with tracer.start_as_current_span("POST /chat", kind=SpanKind.SERVER, end_on_exit=False):
        tracer.start_span("chat m-1", attributes=CHAT)
    recorded.processor.shutdown()
    (block,) = recorded.blocks()
    assert [(span.phase, span.outcome) for span in block.turn.spans] == [("generation", "incomplete")]


def test_a_remote_root_whose_turn_is_unknown_is_a_turn(tmp_path, clock):
    """A request from another process with a model call below is a turn where nobody holds its root."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        tracer = recorded.tracer()
        with tracer.start_as_current_span("POST /chat", remote(0xABC), kind=SpanKind.SERVER):
            tracer.start_span("chat m-1", attributes=CHAT).end()
    (block,) = recorded.blocks()
    assert (block.turn.turn_source, block.turn.trace_id) == ("local_root", f"{0xABC:032x}")
    assert parts_of(recorded.out) == []


def test_a_remote_root_of_a_known_turn_is_a_fragment(tmp_path, clock):
    """Where another process's journal beside the file holds the root, the spans wait for it there."""
    out = tmp_path / "t.ndjson"
    with Recorded(out, clock=clock) as other:
        span = other.tracer().start_span("invoke_agent coder", attributes=AGENT)
        root = span.get_span_context()
        with Recorded(out, clock=clock) as recorded:
            recorded.processor.recording.pid += 1  # another process
            parent = remote(root.trace_id, root.span_id)
            recorded.tracer().start_span("execute_tool bash", parent, attributes=TOOL).end()
        assert not out.exists()
        (fragment,) = (part for part in parts_of(out) if f"{root.trace_id:032x}" in part.name)
        read = read_journal(fragment.read_bytes().splitlines(keepends=True))
        assert read.fragment
        assert [span.name for span in read.turn.spans] == ["execute_tool bash"]
        span.end()
    (block,) = other.blocks()
    assert [span.tool for span in block.turn.spans] == ["bash"]
    assert parts_of(out) == []


def test_a_span_that_begins_before_the_writer_closes_its_turn_is_told_whole(tmp_path, clock):
    """A server answers one request after the other, each a root below the same process: none is cut."""
    with Recorded(tmp_path / "t.ndjson", clock=clock, journal="thread") as recorded:
        tracer = recorded.tracer()
        with recorded.processor.recording.writer.paused():
            tracer.start_span(
                "tools/list", context=remote(1), attributes={"mcp.method.name": "tools/list"}
            ).end()
            tool = tracer.start_span("execute_tool bash", context=remote(1), attributes=TOOL)
        settle(recorded)
        clock.wait(500)
        tool.end()
    (block,) = recorded.blocks()
    assert [(one.phase, one.outcome, one.end_ns - one.start_ns) for one in block.turn.spans] == [
        ("tool_execution", "ok", 500 * MS)
    ]


def test_a_remote_root_of_the_parents_trace_is_a_fragment(tmp_path, clock):
    """In a forked child, spans of a turn of the parent are a fragment, whatever lies beside the file."""
    out = tmp_path / "t.ndjson"
    with Recorded(out, clock=clock) as recorded:
        recorded.processor.recording.table.inherited_traces = frozenset({0xABC})
        recorded.tracer().start_span("execute_tool bash", remote(0xABC), attributes=TOOL).end()
    assert not out.exists()
    (fragment,) = parts_of(out)
    assert f"{0xABC:032x}" in fragment.name


def test_under_run_all_local_roots_of_a_trace_are_one_turn(tmp_path, clock):
    """With the run's trace, roots are spans of a turn that lasts to the end, over its phases."""
    with Recorded(tmp_path / "t.ndjson", clock=clock, run_trace=0xABC) as recorded:
        tracer = recorded.tracer()
        for name in ("chat a", "chat b"):
            clock.wait(10)
            with tracer.start_as_current_span(name, remote(0xABC), attributes=CHAT):
                clock.wait(5)
            settle(recorded)
        assert not recorded.out.exists()
    (block,) = recorded.blocks()
    assert [span.name for span in block.turn.spans] == ["chat a", "chat b"]
    assert block.turn.turn_source == "run"
    assert (block.turn.started_ns, block.turn.completed_ns) == (START_NS + 10 * MS, START_NS + 30 * MS)


def test_report_of_a_live_turn_counts_open_spans_up_to_now():
    """A report may be asked for at any time; what is open is incomplete."""
    with Recorded(), tt.turn("a") as turn, tt.tool("bash"):
        report = turn.report()
    assert [(times.span.name, times.span.outcome) for times in report.spans] == [
        ("execute_tool bash", "incomplete")
    ]
    assert report.turn.status == "interrupted"


def test_report_inside_a_nested_turn_is_the_outer_turns():
    """A nested turn has no record of its own while it lives."""
    with Recorded(), tt.turn("outer") as outer, tt.turn("inner") as inner, tt.tool("bash"):
        assert inner.report().turn.run_id == outer.run_id


def test_blocks_that_wait_for_a_locked_file_are_tried_again(tmp_path, clock):
    """While another process writes to the file, the writer goes on ticking and journals stay."""
    from turntrace.files.lock import FileLock

    out = tmp_path / "t.ndjson"
    with Recorded(out, clock=clock) as recorded:
        closer = recorded.processor.closer
        with FileLock(tmp_path / "t.ndjson.lock"), recorded.processor.recording.writer.paused():
            recorded.tracer().start_span("invoke_agent coder", attributes=AGENT).end()
            recorded.processor.recording.writer.drain()
            assert closer.tick()
            assert not out.exists()
            assert len(parts_of(out)) == 1
        settle(recorded)
        assert len(recorded.blocks()) == 1
        assert not closer.tick()


def test_turns_without_a_file_leave_no_block(clock):
    """Recording without a file keeps what report() needs and writes nothing."""
    with Recorded(clock=clock) as recorded:
        span = recorded.tracer().start_span("invoke_agent coder", attributes=AGENT)
        turn = recorded.processor.sink(set_span_in_context(span, Context()))
        span.end()
        settle(recorded)
        record, attribution = recorded.processor.record_of(turn)
    assert record.status == "ok"
    assert attribution.wall_ns == 0
    assert isinstance(recorded.processor, TurnSpanProcessor)


def test_turns_beyond_what_the_writer_can_hold_stay_in_their_journals(tmp_path, clock, monkeypatch):
    """Too many turns at once, or no time at exit: no block, but the whole journal, and a count."""
    from turntrace.otel import writer

    monkeypatch.setattr(writer, "LATER_LIMIT", 0)
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        recorded.tracer().start_span("invoke_agent a", attributes=AGENT).end()
        settle(recorded)
        assert recorded.guard.dropped == {"unclosed": 1}
        assert not recorded.out.exists()
        monkeypatch.undo()
        open_span = recorded.tracer().start_span("invoke_agent b", attributes=AGENT)
        recorded.processor.closer.close_all(0.0)
        assert recorded.guard.dropped == {"unclosed": 2}
        open_span.end()
    turns = [
        read_journal(part.read_bytes().splitlines(keepends=True)).turn for part in parts_of(recorded.out)
    ]
    assert sorted(turn.root_name for turn in turns) == ["invoke_agent a", "invoke_agent b"]
    assert sorted(turn.status for turn in turns) == ["interrupted", "ok"]


@pytest.mark.parametrize("journal", ["sync", "thread"])
def test_spans_that_end_with_their_turn_are_all_told(tmp_path, journal):
    """Three threads end a span as the root ends: none is lost, none incomplete, and nothing is left beside."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Recorded(tmp_path / "t.ndjson", journal=journal) as recorded:
            for _ in range(150):
                _race()
    finally:
        sys.setswitchinterval(interval)
    blocks = recorded.blocks()
    assert len(blocks) == 150
    for block in blocks:
        assert [span.outcome for span in block.turn.spans] == ["ok"] * 3
        assert "lines_lost" not in {warning.code for warning in block.turn.warnings}
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def _race():
    go = threading.Barrier(4)

    def work():
        with tt.phase("tool_queue"):
            go.wait()

    with tt.turn("a"):
        threads = [threading.Thread(target=contextvars.copy_context().run, args=(work,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        go.wait()
    for thread in threads:
        thread.join()
