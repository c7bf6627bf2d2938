"""Half-open intervals [start, end) of integer nanoseconds: clip, merge, measure, subtract."""

from collections.abc import Iterable, Iterator

__all__ = ["Interval", "clip", "gaps", "merge", "union_ns"]

Interval = tuple[int, int]
"""(start_ns, end_ns); empty unless start < end."""


def clip(interval: Interval, window: Interval | None) -> Interval:
    """Cut ``interval`` to ``window``; what lies outside becomes empty, an end before its start too.

    >>> clip((-5, 7), (0, 10)), clip((12, 15), (0, 10)), clip((4, 2), None)
    ((0, 7), (10, 10), (4, 4))
    """
    start, end = interval
    if window is not None:
        low, high = window
        start = min(max(start, low), high)
        end = min(end, high)
    return start, max(start, end)


def merge(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """Merge what overlaps or touches; the disjoint rest comes in order of time, without empty ones.

    >>> list(merge([(4, 6), (0, 3), (3, 5), (9, 9)]))
    [(0, 6)]
    """
    low = high = None
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if low is None or high is None:
            low, high = start, end
        elif start > high:
            yield low, high
            low, high = start, end
        elif end > high:
            high = end
    if low is not None and high is not None:
        yield low, high


def union_ns(intervals: Iterable[Interval]) -> int:
    """Measure the union in ns: an instant that several intervals cover counts once.

    >>> union_ns([(0, 60), (40, 100)])
    100
    """
    return sum(end - start for start, end in merge(intervals))


def gaps(window: Interval, intervals: Iterable[Interval]) -> Iterator[Interval]:
    """Subtract ``intervals`` from ``window``: the maximal parts of it that none of them covers.

    >>> list(gaps((0, 10), [(2, 3), (3, 5), (9, 20)]))
    [(0, 2), (5, 9)]
    """
    low, high = window
    for start, end in merge(intervals):
        if start >= high:
            break
        if start > low:
            yield low, start
        low = max(low, end)
    if low < high:
        yield low, high
