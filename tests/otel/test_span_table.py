"""Spans packed in 40 bytes, and back."""

import pytest

from otel.fakes import START_NS, FakeClock
from turntrace.core.model import Span
from turntrace.otel import span_table
from turntrace.otel.live_turn import LiveTurn, OpenSpan
from turntrace.otel.span_table import SpanTable
from turntrace.otel.turn_identity import TurnIdentity

TURN = LiveTurn(TurnIdentity(run_id="r", trace_id=1, root_id=1), FakeClock(), START_NS)


def ended(span_id, parent_id=None, name="s", phase=None, **facts):
    """An ended span."""
    opened = OpenSpan(TURN, span_id, parent_id, name, phase, START_NS)
    opened.ended(START_NS + 5, facts.pop("status", "unset"), facts.pop("outcome", "ok"), {})
    for field, value in facts.items():
        setattr(opened, field, value)
    return opened


def test_a_span_comes_out_as_it_went_in():
    """Ids, times, names, status, outcome and round survive; None stays None."""
    table = SpanTable()
    table.add(ended(2**64 - 1, 7, "execute_tool x", "tool_execution", tool="x", round=3, inferred=True))
    table.add(ended(7, None, "chat", "generation", model="m", status="error", outcome="cancelled"))
    table.add(ended(8, 7, "invoke_agent b", None, agent="b", run_id="run_2"))
    common = {"start_ns": START_NS, "end_ns": START_NS + 5}
    assert list(table.spans()) == [
        Span(
            span_id="f" * 16, parent_id=f"{7:016x}", name="execute_tool x", phase="tool_execution", tool="x",
            round=3, parent_source="inferred", **common,
        ),
        Span(
            span_id=f"{7:016x}", parent_id=None, name="chat", phase="generation", model="m", status="error",
            outcome="cancelled", **common,
        ),
        Span(
            span_id=f"{8:016x}", parent_id=f"{7:016x}", name="invoke_agent b", phase=None, agent="b",
            run_id="run_2", **common,
        ),
    ]  # fmt: skip
    assert table.count == 3


@pytest.mark.parametrize("status", ["unset", "ok", "error"])
@pytest.mark.parametrize("outcome", ["ok", "error", "cancelled", "abandoned", "incomplete"])
@pytest.mark.parametrize("inferred", [False, True])
def test_status_and_outcome_share_two_bytes_without_mixing(status, outcome, inferred):
    """Each of their values comes out whatever the others are."""
    table = SpanTable()
    table.add(ended(1, status=status, outcome=outcome, inferred=inferred))
    (span,) = table.spans()
    assert (span.status, span.outcome) == (status, outcome)
    assert span.parent_source == ("inferred" if inferred else "otel")


def test_a_span_takes_40_bytes():
    """The bound on the memory of a turn without a file: what spans have in common is stored once."""
    table = SpanTable()
    for number in range(100):
        table.add(ended(number + 1, 1, "execute_tool x", "tool_execution"))
    assert len(table._rows) == 100 * 40
    assert len(table._facts) == 1


def test_a_round_beyond_what_fits_is_the_largest_that_does():
    """A number is cut, never wrapped around."""
    table = SpanTable()
    table.add(ended(1, round=70_000))
    assert next(table.spans()).round == 65_535


def test_beyond_the_bound_spans_are_counted_only(monkeypatch):
    """A record that cannot be whole is given up; the count goes on."""
    monkeypatch.setattr(span_table, "MAX_SPANS", 2)
    table = SpanTable()
    for number in range(4):
        table.add(ended(number + 1))
    assert table.count == 4
    assert list(table.spans()) == []


def test_names_beyond_the_bound_are_lost_and_spans_are_not(monkeypatch):
    """The table of names has an end; a name that was known before stays known, and phases always are."""
    monkeypatch.setattr(span_table, "_MAX_FACTS", 4)
    monkeypatch.setattr(span_table, "_NAMELESS", 2)
    table = SpanTable()
    for number, name in enumerate(("a", "b", "c", "a", "d")):
        table.add(ended(number + 1, name=name, phase="verification", status="error", tool=name))
    spans = list(table.spans())
    assert [span.name for span in spans] == ["a", "b", "", "a", ""]
    assert [span.tool for span in spans] == ["a", "b", None, "a", None]
    assert {(span.phase, span.status) for span in spans} == {("verification", "error")}
