"""Exclusive time over columns: a span's length without the union of its direct children.

Rows are spans, columns are plain sequences. This is the pure-Python definition that every faster
path has to equal to the nanosecond.
"""

from collections.abc import Hashable, Sequence
from itertools import repeat

__all__ = ["exclusive_by_id", "exclusive_ns"]


def exclusive_ns(parent_rows: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Compute the exclusive time of each row in ns; a negative parent row is none.

    Children are cut to their parent, so overlapping, early, late and foreign ones are all covered once.
    An end before its start is an empty interval. Input in order of end is the fastest.

    >>> exclusive_ns([-1, 0, 0], [0, 10, 20], [100, 30, 120])
    [10, 20, 100]
    """
    exclusive = [
        end - start if end > start else 0 for _, start, end in zip(parent_rows, starts, ends, strict=True)
    ]
    # Latest end first: what a parent's children have covered so far is everything they have above
    # ``uncovered_to``, so one number a parent is enough.
    uncovered_to = list(ends)
    rows = sorted(range(len(ends)), key=ends.__getitem__)
    rows.reverse()
    for row in rows:
        parent = parent_rows[row]
        if parent < 0:
            continue
        start = starts[row]
        limit = uncovered_to[parent]
        if start < limit:
            end = ends[row]
            end = min(end, limit)
            start = max(start, starts[parent])
            if start < end:
                exclusive[parent] -= end - start
                uncovered_to[parent] = start
    return exclusive


def exclusive_by_id(
    ids: Sequence[Hashable], parent_ids: Sequence[Hashable], starts: Sequence[int], ends: Sequence[int]
) -> list[int]:
    """Compute the exclusive time of each row in ns from unique ids; an unknown parent id is none.

    >>> exclusive_by_id(["a", "b"], [None, "a"], [0, 10], [100, 30])
    [80, 20]
    """
    row_of = dict(zip(ids, range(len(starts)), strict=True))
    return exclusive_ns(list(map(row_of.get, parent_ids, repeat(-1))), starts, ends)
