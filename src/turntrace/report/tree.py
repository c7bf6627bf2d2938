"""The spans of a turn as a tree with their own times."""

from collections import defaultdict
from collections.abc import Iterator

from turntrace.core.results import SpanTimes
from turntrace.report.blocks import Column, Row, Table
from turntrace.report.case import Case, name_of, ran_ns, turn_name
from turntrace.report.rounding import Unit, apportion
from turntrace.report.strings import UNKNOWN, Data, Words

__all__ = ["tree_table"]

_DEEPEST_INDENT = 16
_LINES = 200
_AREA = 50
_UNKNOWN: Words = (UNKNOWN,)


def tree_table(case: Case, unit: Unit, *, everything: bool = False) -> Table:
    """Every span below its parent: offset of its start, how long it ran, its exclusive and critical time.

    At most 200 spans unless everything is wanted; what is left out is counted in the last row.
    """
    start_ns = _start_ns(case)
    root, critical = _critical_cells(case, unit)
    rows = [_root_row(case, unit, root)]
    limit = len(case.attribution.spans) if everything else _LINES
    for depth, times in _walk(case):
        if len(rows) > limit:
            rows.append(_rest_row(len(case.attribution.spans) - limit))
            break
        rows.append(_row(times, depth, start_ns, unit, critical[times.span.span_id]))
    return Table(
        heading="TREE",
        columns=(
            Column(f"start {unit.name}", 9),
            Column(f"took {unit.name}", 9),
            Column(f"own {unit.name}", 9),
            Column("critical", 10),
        ),
        rows=tuple(rows),
        area=_AREA,
        bars=False,
    )


def _start_ns(case: Case) -> int:
    starts = (times.span.start_ns for times in case.attribution.spans)
    return case.turn.started_ns if case.turn.started_ns is not None else min(starts, default=0)


def _walk(case: Case) -> Iterator[tuple[int, SpanTimes]]:
    """The spans with their depth, each after its parent, in order of start."""
    children: dict[str | None, list[SpanTimes]] = defaultdict(list)
    for times in case.attribution.spans:
        parent = times.parent_id if times.parent_id in case.by_id else None
        children[parent].append(times)
    stack = [(1, times) for times in reversed(children[None])]
    while stack:
        depth, times = stack.pop()
        yield depth, times
        stack.extend((depth + 1, child) for child in reversed(children.get(times.span.span_id, [])))


def _critical_cells(case: Case, unit: Unit) -> tuple[Words, dict[str, Words]]:
    """The cells of the critical column, which add up to the wall: the root's, and each span's by id."""
    spans = case.attribution.spans
    if case.attribution.wall_ns is None:
        return _UNKNOWN, {times.span.span_id: _UNKNOWN for times in spans}
    values = [case.attribution.root_critical_ns or 0, *(times.critical_ns or 0 for times in spans)]
    root, *ticks = apportion(values, 1, unit.tick_ns)
    cells: dict[str, Words] = {
        times.span.span_id: (unit.text(tick),) for times, tick in zip(spans, ticks, strict=True)
    }
    return (unit.text(root),), cells


def _root_row(case: Case, unit: Unit, critical: Words) -> Row:
    attribution = case.attribution
    figures = (0, attribution.wall_ns, attribution.root_exclusive_ns)
    return Row(label=(Data(turn_name(case.turn)),), cells=(*(_cell(ns, unit) for ns in figures), critical))


def _cell(ns: int | None, unit: Unit) -> Words:
    return _UNKNOWN if ns is None else (unit.of(ns),)


def _row(times: SpanTimes, depth: int, start_ns: int, unit: Unit, critical: Words) -> Row:
    span = times.span
    label: Words = name_of(times)
    if span.outcome != "ok":
        label = (*label, f" · {span.outcome}")
    if depth > _DEEPEST_INDENT:
        label = (f"{depth} deep: ", *label)
    is_known = span.outcome != "incomplete" or span.end_ns > span.start_ns
    figures = (
        span.start_ns - start_ns,
        ran_ns(times) if is_known else None,
        times.exclusive_ns if is_known else None,
    )
    return Row(
        label=label,
        cells=(*(_cell(ns, unit) for ns in figures), critical),
        depth=min(depth, _DEEPEST_INDENT),
        note=_note(times),
        quiet=times.phase is None,
    )


def _note(times: SpanTimes) -> Words:
    """What else is worth knowing: model, round, an end after the parent's."""
    parts: list[str | Data] = []
    if times.phase == "generation" and times.span.model:
        parts.append(Data(times.span.model))
    if times.span.round is not None:
        parts.append(f"round {times.span.round}")
    if times.detached:
        parts.append("outlives its parent")
    spaced = [piece for part in parts for piece in (" · ", part)]
    return tuple(spaced[1:])


def _rest_row(count: int) -> Row:
    return Row(label=(f"{count} more spans",), cells=(), note=("--all shows them",), quiet=True)
