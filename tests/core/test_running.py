"""A turn while it runs: open spans last until now, and what it does now is the innermost of them."""

from report.turns import MS, START_NS, span, turn
from turntrace.core.attribution import attributed
from turntrace.core.model import Turn
from turntrace.core.running import open_spans, running


def opened(span_id, phase, start, parent="root", **more):
    """A span that had started when the turn was read."""
    return span(span_id, phase, start, start, parent, outcome="incomplete", **more)


def test_open_spans_last_until_now():
    """What has ended stays as it was; the turn's window ends now."""
    record = turn([span("a", "plan", 0, 10), opened("b", "generation", 10)], 0, status="interrupted")
    found = running(record, START_NS + 50 * MS)
    assert [one.end_ns - START_NS for one in found.turn.spans] == [10 * MS, 50 * MS]
    assert attributed(found.turn).phases[0].wall_share_ns == 40 * MS
    assert [one.span_id for one in open_spans(record)] == ["b"]


def test_the_innermost_open_phases_are_current():
    """A tool in which a person is asked is not what runs; structure never is."""
    record = turn(
        [
            opened("t", "tool_execution", 0),
            opened("n", None, 1, "t"),
            opened("p", "permission_wait", 2, "n"),
            opened("q", "tool_execution", 1),
            opened("s", None, 3),
        ],
        0,
    )
    assert [one.span_id for one in running(record, START_NS).current] == ["q", "p"]


def test_a_clock_that_is_behind_never_ends_a_span_before_it_starts():
    """Now is at least the last moment that is known; without a start the first span's is taken."""
    record = Turn(run_id="r", spans=(opened("a", "plan", 5),))
    found = running(record, 0)
    assert found.now_ns == START_NS + 5 * MS
    assert found.turn.started_ns == found.turn.completed_ns == START_NS + 5 * MS
    assert running(Turn(run_id="r"), 7).turn.started_ns == 7


def test_a_ring_of_open_spans_ends():
    """Parents that form a ring are followed once."""
    record = turn([opened("a", "plan", 0, "b"), opened("b", "plan", 0, "a")], 0)
    assert running(record, START_NS).current == ()
