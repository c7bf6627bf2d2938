"""Which live turn a span belongs to."""

import pytest
from opentelemetry.context import Context
from opentelemetry.trace import SpanContext

from otel.fakes import START_NS, FakeClock
from turntrace.otel.live_turn import LiveTurn, OpenSpan
from turntrace.otel.slot import TURN_KEY
from turntrace.otel.turn_identity import TurnIdentity
from turntrace.otel.turns import TurnTable


def live(trace_id=1, source="api"):
    """A live turn with one open span."""
    who = TurnIdentity(run_id="r", trace_id=trace_id, root_id=trace_id, turn_source=source)
    turn = LiveTurn(who, FakeClock(), START_NS)
    turn.open_spans[trace_id] = OpenSpan(turn, trace_id, None, "root", None, START_NS)
    return turn


@pytest.fixture
def table():
    """An empty table."""
    return TurnTable()


def added(table, *turns):
    """Enter turns and their spans."""
    for turn in turns:
        table.add(turn)
        table.open_spans.update(turn.open_spans)
    return turns


def test_the_turn_of_a_trace_is_the_one_that_opened_last(table):
    """Of two turns in one trace the later is meant; when it is gone, the earlier again."""
    first, second = added(table, live(), live())
    assert table.of_trace(1) is second
    table.remove(second)
    assert table.of_trace(1) is first
    table.remove(first)
    assert table.of_trace(1) is None
    assert table.live == set()


def test_a_removed_turn_takes_its_open_spans_along(table):
    """A span that never ended is forgotten with its turn; to remove a turn twice is no error."""
    first, second = added(table, live(1), live(2))
    table.remove(first)
    table.remove(first)
    assert set(table.open_spans) == {2}
    assert table.live == {second}


def test_the_only_turn_is_one_that_runs_and_is_no_mere_local_root(table):
    """A bare thread joins a turn only when there is exactly one, candidates and ended ones apart."""
    assert table.only_turn() is None
    (first,) = added(table, live(1))
    added(table, live(2, "local_root"), live(3, "run"))
    assert table.only_turn() is first
    (second,) = added(table, live(4))
    assert table.only_turn() is None
    second.end_ns = START_NS
    assert table.only_turn() is first


def test_a_context_leads_to_the_turn_that_it_carries_while_that_is_live(table):
    """A closed turn in an old context takes no more spans."""
    turn = live()
    assert table.in_context(None) is None
    assert table.in_context(Context()) is None
    assert table.in_context(Context({TURN_KEY: turn})) is turn
    turn.closed = True
    assert table.in_context(Context({TURN_KEY: turn})) is None


def test_a_fork_leaves_the_table_empty_and_remembers_whose_spans_are_copies(table):
    """In a child the parent's turns are closed and known by trace, over generations of children."""
    (turn,) = added(table, live(1))
    assert not table.is_inherited(SpanContext(1, 1, False))
    table.after_fork()
    assert turn.closed
    assert table.inherited == {turn}
    assert table.live == set()
    assert table.open_spans == {}
    assert table.of_trace(1) is None
    assert table.is_inherited(SpanContext(1, 1, False))
    assert not table.is_inherited(SpanContext(1, 9, False))
    assert not table.is_inherited(None)
    added(table, live(2))
    table.after_fork()
    assert table.inherited_traces == table.inherited_spans == {1, 2}
