"""A live turn in memory: counts, marks, the answer; and a nested turn inside it."""

import pytest

import turntrace as tt
from otel.fakes import CHAT, MS, START_NS, TOOL, Exported, FakeClock, an_agent
from recordings import Recorded
from turntrace.core.live import LiveTotals
from turntrace.core.model import Usage
from turntrace.otel import memory_log
from turntrace.otel.answer import answer
from turntrace.otel.live_counts import LiveCounts
from turntrace.otel.live_turn import LiveTurn, NestedTurn, OpenSpan
from turntrace.otel.memory_log import MemoryLog
from turntrace.otel.turn_identity import TurnIdentity


def live():
    """A turn that is kept in memory, and its clock."""
    clock = FakeClock()
    who = TurnIdentity(run_id="run_1", trace_id=1, root_id=2, agent="a", labels={"k": "v"})
    turn = LiveTurn(who, clock, START_NS)
    turn.log = MemoryLog(turn, None)
    return turn, clock


def test_a_turns_time_is_monotonic():
    """A step of the wall clock does not move the turn's time; the bare clock and the anchor are the same."""
    turn, clock = live()
    clock.wait(5)
    clock.step(-1000)
    assert turn.now_ns() == START_NS + 5 * MS == turn.monotonic_ns() + turn.anchor_ns


def test_counts_and_marks_are_in_the_record():
    """Counters add up; of a mark the first moment counts for the turn, all are kept."""
    turn, _ = live()
    for amount in (1, 0, 2):
        turn.count("retry_count", amount)
    turn.mark("first_visible", START_NS + 7, 0xAB)
    turn.mark("first_visible", START_NS + 9, None)
    turn.warn("odd", "something", 0xAB)
    turn.warn("odd", "else", None)
    record = turn.log.record()
    assert record.counters == {"model_requests": 0, "tool_calls": 0, "retry_count": 3}
    assert record.first_visible_ns == turn.first_ns("first_visible") == START_NS + 7
    assert [(mark.at_ns, mark.span_id) for mark in record.marks] == [
        (START_NS + 7, f"{0xAB:016x}"),
        (START_NS + 9, None),
    ]
    assert [(warning.code, warning.span_ids) for warning in record.warnings] == [
        ("odd", (f"{0xAB:016x}",)),
        ("odd", ()),
    ]
    assert (record.status, record.completed_ns, record.agent, record.labels) == (
        "interrupted",
        None,
        "a",
        {"k": "v"},
    )


def test_a_closed_turn_takes_nothing_more():
    """What comes late is left out, and there is no second answer."""
    turn, _ = live()
    turn.closed = True
    turn.count("retry_count", 1)
    turn.mark("first_visible", 1, None)
    assert turn.finish("ok", START_NS) == {}
    record = turn.log.record()
    assert "retry_count" not in record.counters
    assert record.marks == ()


def test_the_first_end_of_a_turn_counts():
    """To finish again gives the same answer: status and end are what they were first."""
    turn, clock = live()
    clock.wait(10)
    first = turn.finish("error", turn.now_ns())
    clock.wait(10)
    assert turn.finish("ok", turn.now_ns()) == first
    assert (turn.status, turn.end_ns) == ("error", START_NS + 10 * MS)
    assert first["turntrace.turn.status"] == "error"
    assert first["turntrace.wall.unattributed_ms"] == 10.0


def test_a_nested_turn_counts_on_the_outer_one_and_has_rounds_of_its_own():
    """Its clock, counters, marks and warnings are the outer turn's; it has no answer."""
    turn, clock = live()
    nested = NestedTurn(turn, "run_2")
    assert (nested.next_round(), nested.next_round(), turn.next_round()) == (1, 2, 1)
    clock.wait(3)
    assert nested.now_ns() == turn.now_ns()
    nested.count("retry_count", 2)
    nested.mark("first_visible", START_NS, None)
    nested.warn("odd", "w", None)
    assert nested.finish("error", START_NS) == {}
    assert turn.end_ns is None
    assert (nested.turn, nested.root_id, nested.candidate) == (turn, -1, False)
    record = turn.log.record()
    assert record.counters["retry_count"] == 2
    assert (len(record.marks), len(record.warnings)) == (1, 1)
    assert not nested.closed
    turn.closed = True
    assert nested.closed


def test_a_span_never_ends_before_it_began():
    """An end before the start is the start."""
    turn, _ = live()
    opened = OpenSpan(turn, 3, None, "s", None, START_NS)
    opened.ended(START_NS - 5, "unset", "ok", {})
    assert opened.end_ns == START_NS


@pytest.mark.parametrize(
    ("reports", "complete", "tokens_in"),
    [
        ([Usage(span_id="1", input_tokens=3), Usage(span_id="2", input_tokens=0)], True, 3),
        ([Usage(span_id="1", input_tokens=3), None], False, None),
        ([Usage(span_id="1", input_tokens=3), Usage(span_id="2", output_tokens=1)], True, None),
        ([Usage(span_id="1", provenance="missing")], False, None),
        ([], None, None),
    ],
)
def test_a_total_with_an_unknown_part_is_unknown(reports, complete, tokens_in):
    """A sum of tokens is told only when every call reported it; without a call there is nothing to tell."""
    counts = LiveCounts()
    for usage in reports:
        counts.model_called(usage)
    facts = counts.facts("r", "ok", 0)
    assert facts.usage_complete is complete
    assert facts.tokens.get("input_tokens") == tokens_in
    assert facts.model_requests == len(reports)


def test_the_answer_names_what_happened(clock):
    """One flag a finding, and the first token as an offset from the start."""
    with Recorded(clock=clock) as recorded, Exported(recorded) as exported:
        tracer = recorded.tracer()
        with an_agent(tracer) as root:
            turn = recorded.processor.recording.table.open_spans[root.get_span_context().span_id].turn
            turn.count("retry_count", 1)
            turn.count("compaction_count", 2)
            clock.wait(4)
            turn.mark("first_token", turn.now_ns(), None)
            one = tracer.start_span("execute_tool a", attributes=TOOL)
            two = tracer.start_span("execute_tool b", attributes=TOOL)
            clock.wait(96)
            one.end()
            two.end()
        told = exported.spans()["invoke_agent coder"].attributes
    flags = {
        name: told[f"turntrace.flag.{name}"] for name in ("retry", "compaction", "serial_tools", "detached")
    }
    assert flags == {"retry": True, "compaction": True, "serial_tools": False, "detached": False}
    assert told["turntrace.turn.first_token_ms"] == 4.0
    assert told["turntrace.turn.compactions"] == 2
    assert "turntrace.turn.usage_complete" not in told
    assert told["turntrace.flag.low_coverage"] is False
    assert told["turntrace.turn.coverage"] == 0.96


def test_a_phase_without_time_has_no_attribute():
    """The answer names the phases that took time, and unattributed always."""
    facts = LiveCounts().facts("run_1", "ok", 0)
    totals = LiveTotals(wall_ns=5, wall_ns_by_phase={"generation": 0}, unattributed_ns=5, active_ns=5)
    walls = [name for name in answer(totals, facts) if name.startswith("turntrace.wall.")]
    assert walls == ["turntrace.wall.unattributed_ms"]


def test_a_child_that_outlives_its_parent_is_flagged(clock):
    """What ended after the span above it did is told on the turn."""
    with Recorded(clock=clock) as recorded, Exported(recorded) as exported:
        tracer = recorded.tracer()
        with an_agent(tracer):
            with tracer.start_as_current_span("node"):
                late = tracer.start_span("chat m-1", attributes=CHAT)
                clock.wait(1)
            clock.wait(1)
            late.end()
        told = exported.spans()["invoke_agent coder"].attributes
    assert told["turntrace.flag.detached"] is True
    assert told["turntrace.wall.generation_ms"] == 2.0


def test_too_many_spans_in_memory_are_a_warning(monkeypatch):
    """The record says that it is not whole."""
    from turntrace.otel import span_table

    for module in (span_table, memory_log):
        monkeypatch.setattr(module, "MAX_SPANS", 1)
    with Recorded(), tt.turn("a") as turn:
        for _ in range(2):
            with tt.tool("x"):
                pass
        report = turn.report()
    assert [warning.code for warning in report.turn.warnings] == ["too_many_spans"]
    assert report.spans == ()


def test_usage_in_memory_is_in_the_record():
    """What a call reported is there without a file."""
    with Recorded(), tt.turn("a") as turn:
        with tt.generation(model="m") as call:
            call.usage(input_tokens=3)
        report = turn.report()
    assert [usage.input_tokens for usage in report.turn.usage] == [3]


def test_an_own_span_that_ends_after_its_turn_still_knows_its_time(clock):
    """A phase that is left after the turn was written ends once and says its exclusive time."""
    with Recorded(clock=clock) as recorded:
        root = tt.turn("a")
        root.__enter__()
        late = tt.phase("verification")
        late.__enter__()
        clock.wait(5)
        recorded.processor.shutdown()
        clock.wait(2)
        late.__exit__(None, None, None)
        root.__exit__(None, None, None)
    assert recorded.spans()["verification"].attributes["turntrace.exclusive_ms"] == 7.0
    assert "turntrace.turn.status" not in recorded.spans()["invoke_agent a"].attributes
