"""From spans with ids to a forest of rows: parents, order of visit, phases and the phase above.

A parent that is not among the spans makes a span top level, here as everywhere: the caller knows what
the top level hangs on (the turn's root). Nothing recurses, so depth is limited by memory only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from turntrace.core.model import Span

__all__ = ["NO_ROW", "OTHER", "Forest", "grow", "lasts", "on_cycles", "preorder"]

NO_ROW = -1
"""The parent row of a top-level span."""

OTHER = "other"
"""The phase of a leaf that maps to none; with children such a span is structure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """The spans of a turn as columns; a row is a span's place in (start, id) order.

    ``order`` visits parents before their children, each subtree in one stretch: from
    ``positions[row]`` to ``lasts[row]``, both included, as places in ``order``.
    """

    spans: list[Span]
    parents: list[int]
    phases: list[str | None]
    phase_parents: list[int]
    order: list[int]
    positions: list[int]
    lasts: list[int]
    duplicate_ids: list[str]
    cyclic_ids: list[str]

    def __len__(self) -> int:
        return len(self.spans)


def grow(spans: Iterable[Span]) -> Forest:
    """Build the forest of ``spans``, whatever their order: one row an id, no cycles."""
    unique, duplicate_ids = _unique(spans)
    ids = [span.span_id for span in unique]
    row_of: dict[str | None, int] = dict(zip(ids, range(len(ids)), strict=True))
    parents = [row_of.get(span.parent_id, NO_ROW) for span in unique]
    order = preorder(parents)
    cyclic = on_cycles(parents) if len(order) < len(parents) else []
    if cyclic:
        for row in cyclic:
            parents[row] = NO_ROW
        order = preorder(parents)
    positions = [0] * len(order)
    for position, row in enumerate(order):
        positions[row] = position
    phases = _phases(unique, parents)
    return Forest(
        spans=unique,
        parents=parents,
        phases=phases,
        phase_parents=_phase_parents(order, parents, phases),
        order=order,
        positions=positions,
        lasts=lasts(order, parents, positions),
        duplicate_ids=duplicate_ids,
        cyclic_ids=[ids[row] for row in cyclic],
    )


def _unique(spans: Iterable[Span]) -> tuple[list[Span], list[str]]:
    """One span an id, the one with the latest end, then the earliest start; and the ids that had more."""
    kept: dict[str, Span] = {}
    twice: dict[str, None] = {}
    for span in spans:
        other = kept.setdefault(span.span_id, span)
        if other is not span:
            twice[span.span_id] = None
            kept[span.span_id] = min(other, span, key=_rank)
    return sorted(kept.values(), key=_by_start), sorted(twice)


def _rank(span: Span) -> tuple[int, int, str]:
    """The better of two spans with one id comes first; the text only settles what is equal otherwise."""
    return -max(span.start_ns, span.end_ns), span.start_ns, repr(span)


def _by_start(span: Span) -> tuple[int, str]:
    return span.start_ns, span.span_id


def preorder(parents: Sequence[int]) -> list[int]:
    """Visit the rows below the top level, each before its children, siblings in row order.

    Rows on a cycle, and below one, are never reached.

    >>> preorder([1, -1, 1, 0]), preorder([1, 0])
    ([1, 0, 3, 2], [])
    """
    # The last slot is the top level's: index NO_ROW reaches it.
    first_child = [NO_ROW] * (len(parents) + 1)
    next_sibling = [NO_ROW] * len(parents)
    for row in range(len(parents) - 1, -1, -1):
        parent = parents[row]
        next_sibling[row] = first_child[parent]
        first_child[parent] = row
    order: list[int] = []
    waiting = [first_child[NO_ROW]]
    while waiting:
        row = waiting.pop()
        while row >= 0:
            order.append(row)
            waiting.append(next_sibling[row])
            row = first_child[row]
    return order


def lasts(order: Sequence[int], parents: Sequence[int], positions: Sequence[int]) -> list[int]:
    """The last place in ``order`` of each row's subtree.

    >>> lasts([1, 0, 3, 2], [1, -1, 1, 0], [1, 0, 3, 2])
    [2, 3, 3, 2]
    """
    last = list(positions)
    for row in reversed(order):
        parent = parents[row]
        if parent >= 0 and last[row] > last[parent]:
            last[parent] = last[row]
    return last


def on_cycles(parents: Sequence[int]) -> list[int]:
    """Find the rows that are their own ancestors, ascending.

    >>> on_cycles([1, 0, 0, 3, -1])
    [0, 1, 3]
    """
    walk_of = [NO_ROW] * len(parents)
    cyclic: list[int] = []
    for walk in range(len(parents)):
        row = walk
        while row >= 0 and walk_of[row] < 0:
            walk_of[row] = walk
            row = parents[row]
        if row >= 0 and walk_of[row] == walk:
            # This walk has met itself: once round from here is the cycle.
            first = row
            cyclic.append(row)
            while parents[row] != first:
                row = parents[row]
                cyclic.append(row)
    return sorted(cyclic)


def _phases(spans: Sequence[Span], parents: Sequence[int]) -> list[str | None]:
    """The phase that counts: a span that maps to none but has children is structure."""
    phases = [span.phase for span in spans]
    for parent in parents:
        if parent >= 0 and phases[parent] == OTHER:
            phases[parent] = None
    return phases


def _phase_parents(order: Sequence[int], parents: Sequence[int], phases: Sequence[str | None]) -> list[int]:
    """The nearest phase above each row, seen through structure."""
    above = list(parents)
    for row in order:
        parent = parents[row]
        if parent >= 0 and phases[parent] is None:
            above[row] = above[parent]
    return above
