"""Every figure of attribution against a count nanosecond by nanosecond."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from core.forests import forests, moved, windows
from core.oracle import Oracle
from turntrace.core.attribution import MIN_GAP_NS, attribute

cases = given(spans=forests(), window=windows())


def both(spans, window):
    low, high = window
    return attribute(spans, started_ns=low, completed_ns=high, root_id="root"), Oracle(spans, low, high)


@settings(max_examples=400)
@cases
def test_span_values(spans, window):
    """Exclusive time, wall share, phase and phase parent of each span are what counting gives."""
    result, oracle = both(spans, window)
    shares = oracle.shares()
    assert [times.span.span_id for times in result.spans] == oracle.order
    for times in result.spans:
        key = times.span.span_id
        assert times.phase == oracle.phase[key]
        assert times.parent_id == (oracle.parent[key] or "root")
        assert times.phase_parent_id == oracle.phase_parent(key)
        assert times.exclusive_ns == oracle.exclusive(key)
        assert times.wall_share_ns == shares[key]


@cases
def test_wall_shares_are_exact_up_to_rounding(spans, window):
    """A wall share is within one nanosecond of the true fraction."""
    result, oracle = both(spans, window)
    for times in result.spans:
        exact = oracle.exact_share(times.span.span_id, oracle.frontier)
        assert abs(times.wall_share_ns - exact) <= 1


@settings(max_examples=300)
@cases
def test_turn_values(spans, window):
    """Wall, attributed, unattributed, busy, active and the root's own time are what counting gives."""
    result, oracle = both(spans, window)
    assert result.wall_ns == oracle.wall
    assert result.attributed_ns == oracle.attributed()
    assert result.unattributed_ns == oracle.wall - oracle.attributed()
    assert result.active_ns == oracle.active_ns()
    assert result.root_exclusive_ns == oracle.root_exclusive()
    assert result.busy_ns == sum(oracle.busy(key) for key in oracle.order if oracle.phase[key])


@settings(max_examples=300)
@cases
def test_critical_path(spans, window):
    """The sections of the critical path are those of the rule followed recursively."""
    result, oracle = both(spans, window)
    expected = [(key or "root", start, end) for key, start, end in oracle.critical_path()]
    assert [(part.span_id, part.start_ns, part.end_ns) for part in result.critical_path] == expected
    for times in result.spans:
        assert times.critical_ns == sum(e - s for key, s, e in expected if key == times.span.span_id)
    assert result.root_critical_ns == sum(e - s for key, s, e in expected if key == "root")
    assert result.critical_path_ns == oracle.wall - result.root_critical_ns


@cases
def test_unattributed(spans, window):
    """Time without a phase is shared among the innermost structure, never more than there is."""
    result, oracle = both(spans, window)
    found = {part.span_id: part.ns for part in result.unattributed}
    for key in oracle.order:
        assert abs(found.get(key, 0) - oracle.exact_share(key, oracle.structure_frontier)) <= 1
    assert sum(found.values()) == sum(bool(oracle.structure_frontier(moment)) for moment in oracle.moments)
    assert sum(found.values()) <= result.unattributed_ns
    assert list(found.values()) == sorted(found.values(), reverse=True)


@cases
def test_phases(spans, window):
    """Totals of a phase are sums over its spans, inclusive time their union, in order of wall share."""
    result, oracle = both(spans, window)
    assert {totals.name for totals in result.phases} == {phase for phase in oracle.phase.values() if phase}
    for totals in result.phases:
        mine = [times for times in result.spans if times.phase == totals.name]
        keys = {times.span.span_id for times in mine}
        exclusive = sorted(times.exclusive_ns for times in mine)
        assert totals.count == len(mine)
        assert totals.inclusive_ns == sum(bool(keys & set(active)) for active in oracle.active.values())
        assert totals.busy_ns == sum(oracle.busy(key) for key in keys)
        assert totals.wall_share_ns == sum(times.wall_share_ns for times in mine)
        assert totals.critical_ns == sum(times.critical_ns for times in mine)
        assert totals.exclusive_p50_ns == exclusive[(len(mine) + 1) // 2 - 1]
        assert totals.exclusive_p95_ns == exclusive[-(-len(mine) * 95 // 100) - 1]
        assert result.max_concurrency[totals.name] == oracle.max_concurrency(totals.name)
    shares = [totals.wall_share_ns for totals in result.phases]
    assert shares == sorted(shares, reverse=True)


@cases
def test_gaps(spans, window):
    """Gaps are the maximal stretches without a phase of at least a millisecond, with their neighbours."""
    step = MIN_GAP_NS // 2
    low, high = window
    result = attribute(moved(spans, step), started_ns=low * step, completed_ns=high * step, root_id=None)
    oracle = Oracle(spans, low, high)
    assert [(gap.start_ns // step, gap.end_ns // step) for gap in result.gaps] == oracle.gaps(2)
    phases = {times.span.span_id: times.span for times in result.spans if times.phase}
    for gap in result.gaps:
        ended = [
            key for key, span in phases.items() if span.start_ns < span.end_ns == gap.start_ns > low * step
        ]
        begun = [
            key for key, span in phases.items() if gap.end_ns == span.start_ns < min(span.end_ns, high * step)
        ]
        assert gap.after in ended if ended else gap.after is None
        assert gap.before in begun if begun else gap.before is None


@cases
def test_flags(spans, window):
    """Detached is a span that outlives its parent, on the top level the window."""
    result, oracle = both(spans, window)
    ends = {key: max(span.start_ns, span.end_ns) for key, span in oracle.spans.items()}
    for times in result.spans:
        parent = oracle.parent[times.span.span_id]
        limit = oracle.high if parent is None else ends[parent]
        assert times.detached == (ends[times.span.span_id] > limit)


@cases
def test_without_window(spans, window):
    """Without a window nothing is cut, counts and exclusive times stand, the rest is None."""
    whole = Oracle(spans, -3, 16)
    result = attribute(spans, started_ns=window[0], completed_ns=None, root_id=None)
    assert [times.exclusive_ns for times in result.spans] == [whole.exclusive(key) for key in whole.order]
    assert {times.wall_share_ns for times in result.spans} <= {None}
    assert {times.critical_ns for times in result.spans} <= {None}
    assert result.busy_ns == sum(whole.busy(key) for key in whole.order if whole.phase[key])
    for totals in result.phases:
        assert totals.wall_share_ns is None
        assert totals.critical_ns is None
        assert totals.count == sum(phase == totals.name for phase in whole.phase.values())
        assert result.max_concurrency[totals.name] == whole.max_concurrency(totals.name)
    empty = replace(result, spans=(), busy_ns=0, phases=(), max_concurrency={}, warnings=())
    assert empty == type(result)()


@pytest.mark.parametrize("window", [(None, 5), (0, None), (None, None)])
def test_half_a_window_is_none(window):
    """A window needs both its ends."""
    started_ns, completed_ns = window
    result = attribute([], started_ns=started_ns, completed_ns=completed_ns, root_id="r")
    assert result.wall_ns is None
    assert result.coverage is None
