"""Attribution as Gitlawb/zero 0.8 computes it, to check headers that zero wrote.

Kept for comparison only; where it is wrong (parents guessed by containment, sums that exceed the wall)
it is wrong here too. Source: the recorder of Gitlawb/zero 0.8, measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from turntrace.core.containment import containers
from turntrace.core.exclusive import exclusive_ns
from turntrace.core.intervals import union_ns

__all__ = ["ZeroAttribution", "ZeroSpan", "ZeroTimes", "zero_attribution"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroSpan:
    """A span as zero stores it; without both bounds it is a bare duration."""

    name: str
    duration_ns: int
    start_ns: int | None = None
    end_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroTimes:
    """What zero says of one span: its exclusive time and its parent, by row and by name ("" is none)."""

    parent_row: int | None
    parent: str
    exclusive_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroAttribution:
    """What zero says of a trace. ``attributed_ns`` is a sum and may exceed the wall."""

    spans: tuple[ZeroTimes, ...]
    attributed_ns: int
    coverage: float


def zero_attribution(spans: Sequence[ZeroSpan], *, wall_ns: int) -> ZeroAttribution:
    """Compute parents, exclusive times, attributed and coverage of spans in commit order.

    A span without an interval, or with one that ends before it starts, is top level and exclusive as a
    whole. Nothing is cut to the window; coverage hides the excess behind a cap at 1.

    >>> inner = ZeroSpan(name="provider_connect", start_ns=5, end_ns=45, duration_ns=40)
    >>> outer = ZeroSpan(name="generation", start_ns=0, end_ns=100, duration_ns=100)
    >>> result = zero_attribution([inner, outer], wall_ns=110)
    >>> [(times.parent, times.exclusive_ns) for times in result.spans], result.attributed_ns
    ([('generation', 40), ('', 60)], 100)
    """
    rows = [row for row, span in enumerate(spans) if _interval(span) is not None]
    intervals = [interval for span in spans if (interval := _interval(span)) is not None]
    starts = [start for start, _ in intervals]
    ends = [end for _, end in intervals]
    parents = containers(starts, ends, range(len(rows)))
    times = [ZeroTimes(parent_row=None, parent="", exclusive_ns=max(span.duration_ns, 0)) for span in spans]
    for row, parent, exclusive in zip(rows, parents, exclusive_ns(parents, starts, ends), strict=True):
        times[row] = ZeroTimes(
            parent_row=rows[parent] if parent >= 0 else None,
            parent=spans[rows[parent]].name if parent >= 0 else "",
            exclusive_ns=exclusive,
        )
    attributed_ns = sum(
        max(span.duration_ns, 0) for span, time in zip(spans, times, strict=True) if time.parent_row is None
    )
    covered = union_ns(intervals) / wall_ns if wall_ns > 0 else 0.0
    return ZeroAttribution(spans=tuple(times), attributed_ns=attributed_ns, coverage=min(1.0, covered))


def _interval(span: ZeroSpan) -> tuple[int, int] | None:
    if span.start_ns is None or span.end_ns is None or span.end_ns < span.start_ns:
        return None
    return span.start_ns, span.end_ns
