"""Roll-ups: sums by phase, tool and model, and how many spans of a phase ran at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from turntrace.core.contract import PHASES
from turntrace.core.intervals import union_ns
from turntrace.core.results import PhaseTotals, Totals
from turntrace.core.tree import Forest

__all__ = ["Columns", "max_concurrency", "nearest_rank", "phase_totals"]

_VOCABULARY = {name: place for place, name in enumerate(PHASES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The times of each row of a forest, in ns; shares and critical times are None without a window."""

    starts: Sequence[int]
    ends: Sequence[int]
    exclusive: Sequence[int]
    busy: Sequence[int]
    shares: Sequence[int] | None
    critical: Sequence[int] | None


def nearest_rank(ordered: Sequence[int], percent: int) -> int:
    """Pick the nearest-rank percentile of ascending values: always one of them, never between two.

    >>> nearest_rank([1, 2, 3, 4], 50), nearest_rank([1, 2, 3, 4], 95)
    (2, 4)
    """
    return ordered[-(-len(ordered) * percent // 100) - 1]


def phase_totals(forest: Forest, columns: Columns) -> tuple[PhaseTotals, ...]:
    """Sum the rows of each phase, largest wall share first, then in the order of the vocabulary."""
    totals = [_phase(name, rows, forest, columns) for name, rows in _grouped(forest.phases).items()]
    return tuple(sorted(totals, key=_largest_first))


def max_concurrency(forest: Forest, columns: Columns) -> dict[str, int]:
    """Count the most spans of each phase that were active at one instant, in order of the vocabulary.

    A span with a descendant of its own phase does not count: a batch and its one call are not two.
    """
    batches = _batches(forest)
    most = {}
    for name, rows in sorted(_grouped(forest.phases).items(), key=lambda item: _vocabulary_order(item[0])):
        counted = [row for row in rows if row not in batches]
        most[name] = _most_at_once([(columns.starts[row], columns.ends[row]) for row in counted])
    return most


def _phase(name: str, rows: Sequence[int], forest: Forest, columns: Columns) -> PhaseTotals:
    parts: list[str | None] = []
    if name == "tool_execution":
        parts = [forest.spans[row].tool for row in rows]
    elif name == "generation":
        parts = [forest.spans[row].model for row in rows]
    by = [
        _totals(part, [rows[index] for index in indexes], columns)
        for part, indexes in _grouped(parts).items()
    ]
    sums = _totals(name, rows, columns)
    return PhaseTotals(
        name=name,
        count=sums.count,
        inclusive_ns=sums.inclusive_ns,
        busy_ns=sums.busy_ns,
        wall_share_ns=sums.wall_share_ns,
        critical_ns=sums.critical_ns,
        exclusive_p50_ns=sums.exclusive_p50_ns,
        exclusive_p95_ns=sums.exclusive_p95_ns,
        by=tuple(sorted(by, key=_largest_first)),
    )


def _totals(name: str, rows: Sequence[int], columns: Columns) -> Totals:
    exclusive = sorted(columns.exclusive[row] for row in rows)
    return Totals(
        name=name,
        count=len(rows),
        inclusive_ns=union_ns((columns.starts[row], columns.ends[row]) for row in rows),
        busy_ns=sum(columns.busy[row] for row in rows),
        wall_share_ns=_sum(columns.shares, rows),
        critical_ns=_sum(columns.critical, rows),
        exclusive_p50_ns=nearest_rank(exclusive, 50),
        exclusive_p95_ns=nearest_rank(exclusive, 95),
    )


def _sum(column: Sequence[int] | None, rows: Iterable[int]) -> int | None:
    return None if column is None else sum(column[row] for row in rows)


def _grouped(names: Iterable[str | None]) -> dict[str, list[int]]:
    """The places of each name; None has none."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if name is not None:
            places.setdefault(name, []).append(place)
    return places


def _largest_first(totals: Totals) -> tuple[int, int, str]:
    return -(totals.wall_share_ns or 0), *_vocabulary_order(totals.name)


def _vocabulary_order(name: str) -> tuple[int, str]:
    return _VOCABULARY.get(name, len(_VOCABULARY)), name


def _batches(forest: Forest) -> set[int]:
    """The rows that have a descendant of their own phase: found from the nearest one of each."""
    batches: set[int] = set()
    above: dict[str, list[int]] = {}
    for position, row in enumerate(forest.order):
        phase = forest.phases[row]
        if phase is None:
            continue
        ancestors = above.setdefault(phase, [])
        while ancestors and forest.lasts[ancestors[-1]] < position:
            ancestors.pop()
        if ancestors:
            batches.add(ancestors[-1])
        ancestors.append(row)
    return batches


def _most_at_once(intervals: Iterable[tuple[int, int]]) -> int:
    """The largest number of intervals that share an instant."""
    starts: list[int] = []
    ends: list[int] = []
    for start, end in intervals:
        if start < end:
            starts.append(start)
            ends.append(end)
    starts.sort()
    ends.sort()
    most = ended = 0
    for begun, start in enumerate(starts, 1):
        # Half-open: what ends at this instant is over.
        while ends[ended] <= start:
            ended += 1
        most = max(most, begun - ended)
    return most
