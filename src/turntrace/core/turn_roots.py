"""Which spans make a turn: its root, its spans and its window.

(a) a span of ``turn()``; (b) a span that its dialect names as the turn or as an agent; (c) what is left
below a local root, when a phase is in it. A root below a root is structure and a nested turn.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from turntrace.core.agent_dialects import CODING_AGENTS
from turntrace.core.dialect_facts import OWN
from turntrace.core.dialect_model import Role
from turntrace.core.model import RawSpan, TurnSource
from turntrace.core.readings import NO_ROW, Reading, Readings
from turntrace.core.root_calls import SLACK_NS, process_of

__all__ = [
    "MAX_NESTED_DEPTH",
    "Draft",
    "Overlapping",
    "Rule",
    "is_turn",
    "nested",
    "outermost",
    "run_id",
]

Rule = Callable[[RawSpan], bool]
"""Says of a span whether it is a turn; overrules (a), (b) and (c)."""

MAX_NESTED_DEPTH: Final = 16
"""Turns nested deeper are structure only: a bound on the work, since each lists all spans below it."""

_STRAYING: Final = frozenset({"litellm"})
"""Dialects whose model calls may be roots: litellm tells a stream from a thread, when it is over."""

_ROOT_ROLES: Final = frozenset({Role.TURN, Role.AGENT})


@dataclass(slots=True, kw_only=True)
class Draft:
    """A turn to be. ``root`` is its root's row, None for a root that is not here or is itself a phase.

    ``rows`` are its spans without the root, in preorder within each part. ``inferred`` are the rows that
    time, not a parent id, put here. ``parents`` are the ids of a root that never arrived. ``agent``: who it is, where no root
    says so.
    """

    root: int | None
    rows: list[int]
    source: TurnSource
    started_ns: int
    completed_ns: int | None
    is_interrupted: bool = False
    absent_ids: frozenset[str] = frozenset()
    inferred: set[int] = field(default_factory=set)
    parent_run_id: str | None = None
    agent: str | None = None


def is_turn(reading: Reading) -> bool:
    """Whether the dialect names the span as a turn or as an agent."""
    return reading.verdict.role in _ROOT_ROLES


def _is_own_turn(reading: Reading) -> bool:
    return reading.verdict.role is Role.TURN and reading.verdict.dialect == OWN


def _is_whole(reading: Reading) -> bool:
    """Whether a root of this kind may hang below another process that its exporter does not tell of."""
    verdict = reading.verdict
    return verdict.role is Role.TURN and verdict.dialect in CODING_AGENTS


def outermost(readings: Readings, rule: Rule | None = None) -> list[Draft]:
    """Draft the turns that lie in no other, by start."""
    local, unended, loose = _tops(readings, interrupted=rule is None)
    drafts = [draft for top in local for draft in _in_tree(readings, top, rule)]
    for tops in unended.values():
        drafts += _unended(readings, tops)
    windows = _Windows(readings, drafts)
    for top in loose:
        draft = windows.around(top)
        if draft is None:
            drafts += _in_tree(readings, top, rule)
        else:
            draft.rows += [top, *readings.below(top)]
            draft.inferred.add(top)
    return sorted(drafts, key=lambda draft: draft.started_ns)


def _tops(readings: Readings, *, interrupted: bool) -> tuple[list[int], dict[str, list[int]], list[int]]:
    """Sort the top level: local roots, by trace what hangs on a root that never ended, and the rest.

    The rest belongs to the turn around it, when there is one: spans whose parent was lost, spans of a
    cycle, and tools that a thread made roots.
    """
    local: list[int] = []
    lost: list[int] = []
    loose: list[int] = []
    for row in (row for row, parent in enumerate(readings.parents) if parent == NO_ROW):
        reading = readings[row]
        is_orphan = row in readings.orphans
        is_lost = is_orphan and not reading.raw.remote_parent and not _is_whole(reading)
        if row in readings.cyclic or is_lost:
            lost.append(row)
        elif not is_orphan and _is_stray(reading):
            loose.append(row)
        else:
            local.append(row)
    rooted = {readings[row].raw.trace_id for row in local}
    unended: defaultdict[str, list[int]] = defaultdict(list)
    for row in lost:
        trace_id = readings[row].raw.trace_id
        (unended[trace_id] if interrupted and trace_id not in rooted else loose).append(row)
    return local, unended, sorted(loose)


def _is_stray(reading: Reading) -> bool:
    """Whether a root may well belong to the turn around it: tools, and the calls of some dialects."""
    verdict = reading.verdict
    return verdict.phase == "tool_execution" or (reading.is_call and verdict.dialect in _STRAYING)


def _in_tree(readings: Readings, top: int, rule: Rule | None) -> Iterator[Draft]:
    """The turns of one tree: its (a) and (b) roots, then (c) what lies below none of them."""
    rest: list[int] = []
    found = False
    row, last = top, readings.lasts[top]
    while row <= last:
        reading = readings[row]
        if is_turn(reading) if rule is None else rule(reading.raw):
            found = True
            yield _rooted(readings, row, "rule" if rule is not None else _source(reading))
            row = readings.lasts[row] + 1
        else:
            rest.append(row)
            row += 1
    if rule is None:
        yield from _local(readings, top, rest, whole=not found)


def _source(reading: Reading) -> TurnSource:
    return "api" if _is_own_turn(reading) else "dialect"


def _rooted(readings: Readings, root: int, source: TurnSource) -> Draft:
    reading = readings[root]
    return Draft(
        root=root,
        rows=list(readings.below(root)),
        source=source,
        started_ns=reading.start_ns,
        completed_ns=None if reading.has_bad_end else reading.end_ns,
    )


def _local(readings: Readings, top: int, rest: Sequence[int], *, whole: bool) -> Iterator[Draft]:
    """The (c) turn of a local root: over its interval when it is ``whole``, else over its phases."""
    phases = [readings[row] for row in rest if readings[row].verdict.role is Role.PHASE]
    if not phases:
        return
    reading = readings[top]
    has_root = reading.verdict.role is not Role.PHASE
    is_endless = whole and reading.has_bad_end
    window = [reading] if whole else phases
    yield Draft(
        root=top if has_root else None,
        rows=[row for row in rest if row != top or not has_root],
        source="local_root",
        started_ns=min(one.start_ns for one in window),
        completed_ns=None if is_endless else max(one.end_ns for one in window),
    )


def _unended(readings: Readings, tops: Iterable[int]) -> Iterator[Draft]:
    """One interrupted turn of all spans whose root never arrived; a turn() among them is whole."""
    rest: list[int] = []
    absent_ids: set[str] = set()
    for top in tops:
        if top in readings.orphans:
            absent_ids.add(readings[top].raw.parent_id or "")
        row, last = top, readings.lasts[top]
        while row <= last:
            end = readings.lasts[row] if is_turn(readings[row]) else row
            if _is_own_turn(readings[row]):
                yield _rooted(readings, row, "api")
            else:
                rest.extend(range(row, end + 1))
            row = end + 1
    if any(readings[row].verdict.role is Role.PHASE for row in rest):
        yield Draft(
            root=None,
            rows=rest,
            source="local_root",
            started_ns=min(readings[row].start_ns for row in rest),
            completed_ns=None,
            is_interrupted=True,
            absent_ids=frozenset(absent_ids),
        )


def run_id(reading: Reading) -> str:
    """The id of the run whose root is the span: what it says, else the span's own id."""
    return reading.facts.run_id or reading.raw.span_id


def nested(readings: Readings, outer: Draft, outer_id: str) -> Iterator[Draft]:
    """Draft the turns inside ``outer``, each after the one around it."""
    around: list[tuple[int, str]] = []
    for row in outer.rows:
        while around and not around[-1][0] < row <= readings.lasts[around[-1][0]]:
            around.pop()
        if not is_turn(readings[row]) or len(around) == MAX_NESTED_DEPTH:
            continue
        draft = _rooted(readings, row, _source(readings[row]))
        draft.parent_run_id = around[-1][1] if around else outer_id
        around.append((row, run_id(readings[row])))
        yield draft


class _Windows:
    """The finished turns by what a stray span can share with one: its trace, or its process."""

    def __init__(self, readings: Readings, drafts: Iterable[Draft]) -> None:
        self._readings = readings
        groups: defaultdict[object, list[Draft]] = defaultdict(list)
        for draft in drafts:
            if draft.completed_ns is not None:
                reading = readings[draft.rows[0] if draft.root is None else draft.root]
                groups[reading.raw.trace_id].append(draft)
                groups[process_of(reading.raw.resource)].append(draft)
        self._groups = {key: Overlapping(group) for key, group in groups.items()}

    def around(self, row: int) -> Draft | None:
        """The turn whose window holds the span, if there is exactly one."""
        reading = self._readings[row]
        has_parent = row in self._readings.orphans or row in self._readings.cyclic
        group = self._groups.get(reading.raw.trace_id if has_parent else process_of(reading.raw.resource))
        late_ns = SLACK_NS if reading.verdict.dialect in _STRAYING else 0
        end_ns = max(reading.start_ns, reading.end_ns - late_ns)
        return None if group is None else group.around(reading.start_ns, end_ns)


class Overlapping:
    """Turns by start, with the two that end last among those that started so far."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._drafts = sorted(drafts, key=lambda draft: draft.started_ns)
        self._starts = [draft.started_ns for draft in self._drafts]
        self._last_two: list[tuple[_End, _End]] = []
        last, second = _NEVER, _NEVER
        for place, draft in enumerate(self._drafts):
            second, last = sorted((second, last, (draft.completed_ns or 0, place)))[1:]
            self._last_two.append((last, second))

    def around(self, start_ns: int, end_ns: int) -> Draft | None:
        """The turn that holds the interval, if there is exactly one."""
        started = bisect_right(self._starts, start_ns)
        if not started:
            return None
        (last_ns, place), (second_ns, _) = self._last_two[started - 1]
        return self._drafts[place] if second_ns < end_ns <= last_ns else None


_End = tuple[int, int]
"""When a turn ends, and its place among the turns."""

_NEVER: Final[_End] = (-1, -1)
