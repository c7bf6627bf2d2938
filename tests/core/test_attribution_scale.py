"""Depth and size: no recursion, no quadratic work, in the final values and live."""

import pytest

from core.forests import make, nested_turn
from turntrace.core.attribution import attribute
from turntrace.core.containment import containers
from turntrace.core.exclusive import exclusive_by_id
from turntrace.core.live import LiveAttribution

pytestmark = pytest.mark.slow

MILLION = 1_000_000
DEEP = 100_000


def chain(size, start, end):
    """Each span the child of the one before; ``start`` and ``end`` give the times by depth."""
    return [
        make(f"{depth:07d}", start(depth), end(depth), parent=f"{depth - 1:07d}" if depth else None)
        for depth in range(size)
    ]


def leaves(size, parent, start):
    """Short spans one after another under ``parent``."""
    return [
        make(f"x{number:06d}", start + number, start + number + 1, parent=parent, phase="memory")
        for number in range(size)
    ]


def test_a_chain_a_million_deep():
    """A million spans, each inside the one before."""
    spans = chain(MILLION, start=lambda depth: depth, end=lambda depth: 2 * MILLION - depth)
    result = attribute(spans, started_ns=0, completed_ns=2 * MILLION, root_id=None)
    assert {times.exclusive_ns for times in result.spans} == {2}
    assert {times.wall_share_ns for times in result.spans} == {2}
    assert result.max_concurrency == {"generation": 1}
    assert len(result.critical_path) == 2 * MILLION - 1


def test_a_million_spans():
    """A million spans, parallel, overlapping and detached, add up."""
    spans = nested_turn(MILLION)
    result = attribute(spans, started_ns=0, completed_ns=MILLION, root_id=None)
    assert sum(times.wall_share_ns for times in result.spans) == result.attributed_ns
    assert sum(part.end_ns - part.start_ns for part in result.critical_path) == MILLION


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "not-begun"])
def test_leaves_under_a_deep_chain_that_is_not_active(ended):
    """A chain that has ended, or not begun, costs the leaves under it nothing."""
    below = f"{DEEP - 1:07d}"
    offset = 0 if ended else 2 * DEEP
    spans = chain(DEEP, start=lambda depth: offset + depth, end=lambda _: offset + DEEP)
    spans += leaves(DEEP, below, start=DEEP if ended else 0)
    result = attribute(spans, started_ns=0, completed_ns=4 * DEEP, root_id=None)
    shares = {totals.name: totals.wall_share_ns for totals in result.phases}
    assert shares == {"memory": DEEP, "generation": DEEP}
    assert result.attributed_ns == 2 * DEEP


def test_many_at_once():
    """A hundred thousand spans that all run at once."""
    spans = [make(f"{number:06d}", number, DEEP + number) for number in range(DEEP)]
    result = attribute(spans, started_ns=0, completed_ns=2 * DEEP, root_id=None)
    assert result.max_concurrency == {"generation": DEEP}
    assert result.attributed_ns == 2 * DEEP - 1


def test_containment_and_ids_at_size():
    """Containment of a deep nest and exclusive time from ids are not quadratic."""
    starts, ends = list(range(DEEP)), [3 * DEEP - row for row in range(DEEP)]
    assert containers(starts, ends, range(DEEP)) == list(range(-1, DEEP - 1))
    assert exclusive_by_id(starts, range(-1, DEEP - 1), starts, ends)[:-1] == [2] * (DEEP - 1)


def test_live_chain_a_million_deep():
    """A million open spans, each inside the one before, and their ends."""
    live = LiveAttribution(0)
    open_spans = []
    span = None
    for now_ns in range(MILLION):
        span = live.start(span, now_ns, "generation")
        open_spans.append(span)
    exclusive = {live.end(open_spans.pop(), MILLION + now_ns, "generation") for now_ns in range(MILLION)}
    totals = live.totals(2 * MILLION)
    assert exclusive == {1, 2}
    assert totals.wall_ns_by_phase == {"generation": 2 * MILLION - 1}


@pytest.mark.parametrize("top_first", [True, False])
@pytest.mark.parametrize("phase", ["generation", None])
def test_live_leaves_under_a_deep_chain_that_has_ended(top_first, phase):
    """Leaves that start under an ended chain, or were open when it ended, find the phase above at once."""
    live = LiveAttribution(0)
    top = live.start(None, 0, "plan")
    spans = [top]
    for _ in range(DEEP):
        spans.append(live.start(spans[-1], 0, phase))
    waiting = [live.start(spans[-1], 0, "memory") for _ in range(DEEP)]
    for span in spans[1:] if top_first else spans[:0:-1]:
        live.end(span, 1, phase)
    for number, span in enumerate(waiting, 2):
        live.end(span, number, "memory")
        live.end(live.start(spans[-1], number, "retrieval"), number, "retrieval")
    live.end(top, 2 * DEEP, "plan")
    totals = live.totals(2 * DEEP)
    assert sum(totals.wall_ns_by_phase.values()) == 2 * DEEP
    assert totals.wall_ns_by_phase["memory"] == DEEP + 1
    assert totals.wall_ns_by_phase["plan"] == DEEP - 1
