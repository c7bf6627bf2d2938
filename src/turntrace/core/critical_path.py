"""The critical path: from the end of the window back, always in what ended last.

The rule is that of CRISP and Jaeger with two repairs: a child that ends exactly where the next one starts
is on the path (phases that abut are the normal case), and a child cut away by its parent is not.
"""

from collections.abc import Sequence

from turntrace.core.intervals import Interval
from turntrace.core.tree import NO_ROW, Forest

__all__ = ["Section", "critical_path"]

Section = tuple[int, int, int]
"""(row, start_ns, end_ns); the root's row is -1."""


def critical_path(
    forest: Forest, starts: Sequence[int], ends: Sequence[int], window: Interval
) -> list[Section]:
    """Compute the sections of the path, from the end of ``window`` to its start, without empty ones.

    Their lengths sum to that of the window. ``starts`` and ``ends`` are clipped to it.
    """
    low, high = window
    cut_starts, cut_ends = _cut(forest, starts, ends)
    next_child, next_sibling = _latest_first(forest, cut_starts, cut_ends)
    sections: list[Section] = []
    row, now = NO_ROW, high
    while True:
        child = next_child[row]
        while child >= 0 and cut_ends[child] > now:
            child = next_sibling[child]
        if child >= 0:
            next_child[row] = next_sibling[child]
            since, entered = cut_ends[child], child
        else:
            since = cut_starts[row] if row >= 0 else low
            entered = forest.parents[row] if row >= 0 else NO_ROW
        if since < now:
            sections.append((row, since, now))
        if child < 0 and row < 0:
            return sections
        row, now = entered, since


def _cut(forest: Forest, starts: Sequence[int], ends: Sequence[int]) -> tuple[list[int], list[int]]:
    """Each interval cut to its parent's cut interval; whatever becomes empty stays so further down."""
    cut_starts, cut_ends = list(starts), list(ends)
    for row in forest.order:
        parent = forest.parents[row]
        if parent >= 0:
            cut_starts[row] = max(cut_starts[row], cut_starts[parent])
            cut_ends[row] = min(cut_ends[row], cut_ends[parent])
    return cut_starts, cut_ends


def _latest_first(forest: Forest, starts: Sequence[int], ends: Sequence[int]) -> tuple[list[int], list[int]]:
    """First child and next sibling by latest end, then later start, then smaller id; empty ones left out.

    The last slot of the children is the root's, which row -1 reaches.
    """
    ids = [span.span_id for span in forest.spans]
    rows = [row for row in range(len(forest)) if starts[row] < ends[row]]
    rows.sort(key=ids.__getitem__, reverse=True)
    rows.sort(key=starts.__getitem__)
    rows.sort(key=ends.__getitem__)
    first_child = [NO_ROW] * (len(forest) + 1)
    next_sibling = [NO_ROW] * len(forest)
    # Linking puts each row before those linked earlier, so the best one comes last.
    for row in rows:
        parent = forest.parents[row]
        next_sibling[row] = first_child[parent]
        first_child[parent] = row
    return first_child, next_sibling
