"""The critical path: what the turn was waiting for, from its start to its end."""

from collections.abc import Sequence

from turntrace.core.results import PathSection
from turntrace.report.blocks import Column, Row, Table
from turntrace.report.case import Case, name_of
from turntrace.report.items import kind_of
from turntrace.report.rounding import PERCENT, Unit, apportion, percent_text, percents
from turntrace.report.strings import Words

__all__ = ["critical_table"]

_LINES = 50


def critical_table(case: Case, unit: Unit, *, everything: bool = False) -> Table:
    """The sections of the path in order of time; their lengths add up to the wall.

    The 50 longest unless everything is wanted, the others added up in one row.
    """
    path = sorted(case.attribution.critical_path, key=lambda section: section.start_ns)
    by_length = sorted(path, key=lambda section: section.start_ns - section.end_ns)
    kept = (
        path
        if everything or len(path) <= _LINES + 1
        else sorted(by_length[:_LINES], key=lambda s: s.start_ns)
    )
    lengths = [section.end_ns - section.start_ns for section in kept]
    wall_ns = case.attribution.wall_ns or 0
    if len(kept) < len(path):
        lengths.append(wall_ns - sum(lengths))
    ticks = apportion(lengths, 1, unit.tick_ns, unit.ticks(wall_ns))
    tenths = percents(lengths, wall_ns)
    figures = [(unit.text(tick), percent_text(tenth)) for tick, tenth in zip(ticks, tenths, strict=True)]
    rows = [_row(case, section, cells, unit) for section, cells in zip(kept, figures, strict=False)]
    if len(kept) < len(path):
        rows.append(_rest(len(path) - len(kept), figures[-1]))
    return _as_table(rows, unit, wall_ns)


def _as_table(rows: Sequence[Row], unit: Unit, wall_ns: int) -> Table:
    return Table(
        heading="CRITICAL PATH",
        columns=(Column(f"from {unit.name}", 10), Column(f"for {unit.name}", 9), Column("%", 7)),
        rows=tuple(rows),
        total=Row(label=(), cells=((), (unit.of(wall_ns),), (percent_text(PERCENT if wall_ns else 0),))),
    )


def _row(case: Case, section: PathSection, figures: tuple[str, str], unit: Unit) -> Row:
    times = case.by_id.get(section.span_id or "")
    number = case.rounds.get(section.span_id or "")
    wall_ns = case.attribution.wall_ns
    label: Words = name_of(times) if times is not None else ("the turn itself",)
    return Row(
        label=label,
        cells=((unit.of(section.start_ns - (case.turn.started_ns or 0)),), *((text,) for text in figures)),
        fraction=(section.end_ns - section.start_ns) / wall_ns if wall_ns else 0.0,
        note=(f"round {number}",) if number is not None else (),
        quiet=times is None or times.phase is None,
        kind=None if times is None else kind_of(times.phase),
    )


def _rest(count: int, figures: tuple[str, str]) -> Row:
    return Row(
        label=(f"{count} shorter ones",),
        cells=((), *((text,) for text in figures)),
        note=("--all shows them",),
        quiet=True,
    )
