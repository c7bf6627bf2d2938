"""Parents for files without ids: the tightest interval that contains a span, bounds included.

A guess: parallel spans that contain each other by chance get a false parent. It is used only where
nothing better is known, and its results say so.
"""

from collections.abc import Sequence
from dataclasses import replace

from turntrace.core.model import Span

__all__ = ["contain", "containers"]


def contain(spans: Sequence[Span]) -> list[Span]:
    """Give each span the tightest other span that contains it as its parent, in the given order.

    Of several the outer one is the earlier-started, then the longer, then the one with the smaller id.
    """
    starts = [span.start_ns for span in spans]
    ends = [max(span.start_ns, span.end_ns) for span in spans]
    ranked = sorted(range(len(spans)), key=lambda row: (starts[row], -ends[row], spans[row].span_id))
    ranks = [0] * len(spans)
    for rank, row in enumerate(ranked):
        ranks[row] = rank
    parents = containers(starts, ends, ranks)
    return [
        replace(
            span,
            parent_id=spans[parent].span_id if parent >= 0 else None,
            parent_source="containment",
        )
        for span, parent in zip(spans, parents, strict=True)
    ]


def containers(starts: Sequence[int], ends: Sequence[int], ranks: Sequence[int]) -> list[int]:
    """Find the row of the shortest interval that contains each row's; -1 where there is none.

    ``ranks`` is a permutation of the rows. Of equally short ones the lowest rank wins, and of identical
    intervals only a lower rank can contain a higher one, so there is never a cycle.

    >>> containers([0, 2, 2], [9, 5, 5], [0, 1, 2])
    [-1, 0, 1]
    """
    size = len(starts)
    row_of = [0] * size
    for row, rank in enumerate(ranks):
        row_of[rank] = row
    place_of = {end: place for place, end in enumerate(sorted(set(ends), reverse=True))}
    shortest = _PrefixMinimum(len(place_of))
    parents = [-1] * size
    # In this order whatever contains a row, and nothing identical of a higher rank, came before it.
    for row in sorted(range(size), key=lambda row: (starts[row], -ends[row], ranks[row])):
        place = place_of[ends[row]]
        found = shortest.up_to(place)
        if found is not None:
            parents[row] = row_of[found % size]
        # Length and rank in one number: a smaller one is a tighter, then an outer-ranked container.
        shortest.lower(place, (ends[row] - starts[row]) * size + ranks[row])
    return parents


class _PrefixMinimum:
    """Minimum over the first places of a row of numbers that only ever get smaller (a Fenwick tree)."""

    __slots__ = ("_minima",)

    def __init__(self, size: int) -> None:
        self._minima: list[int | None] = [None] * (size + 1)

    def lower(self, place: int, value: int) -> None:
        """Take ``value`` into account at ``place``."""
        minima = self._minima
        node = place + 1
        while node < len(minima):
            known = minima[node]
            if known is None or value < known:
                minima[node] = value
            node += node & -node

    def up_to(self, place: int) -> int | None:
        """The smallest value at ``place`` or before it, None without any."""
        smallest: int | None = None
        node = place + 1
        while node:
            known = self._minima[node]
            if known is not None and (smallest is None or known < smallest):
                smallest = known
            node &= node - 1
        return smallest
