"""Items to rows of figures that add up: wall seconds, percents and the critical path."""

from collections.abc import Sequence

from turntrace.report.blocks import Column, Row, Table
from turntrace.report.items import Item
from turntrace.report.rounding import PERCENT, Unit, apportion, count_text, percent_text
from turntrace.report.strings import Words

__all__ = ["figure", "wall_table"]

_POINT_AND_DECIMALS = 4


def figure(unit: Unit, ticks: int, exact_ns: int) -> str:
    """A figure; an exact zero is a bare 0 under the digit before the point.

    >>> from turntrace.report.rounding import SECONDS
    >>> figure(SECONDS, 0, 12), figure(SECONDS, 0, 0)
    ('0.000', '0    ')
    """
    return unit.text(ticks) if exact_ns else "0" + " " * _POINT_AND_DECIMALS


def _cells(item: Item, unit: Unit, ticks: tuple[int, int, int]) -> tuple[Words, ...]:
    wall, tenths, critical = ticks
    return (
        (figure(unit, wall, item.wall_ns),),
        (percent_text(tenths),),
        () if item.calls is None else (count_text(item.calls),),
        () if item.busy_ns is None else (figure(unit, unit.ticks(item.busy_ns), item.busy_ns),),
        (figure(unit, critical, item.critical_ns),),
    )


def _row(item: Item, unit: Unit, ticks: tuple[int, int, int], wall_ns: int, depth: int = 0) -> Row:
    return Row(
        label=item.label,
        cells=_cells(item, unit, ticks),
        depth=depth,
        fraction=item.wall_ns / wall_ns if wall_ns else 0.0,
        note=item.note,
        quiet=item.quiet,
        kind=item.kind,
    )


def _rounded(
    items: Sequence[Item], unit: Unit, wall_ns: int, whole: tuple[int, int, int]
) -> list[tuple[int, int, int]]:
    """The wall, percent and critical ticks of the items, which add up to ``whole``."""
    walls = [item.wall_ns for item in items]
    return list(
        zip(
            apportion(walls, 1, unit.tick_ns, whole[0]),
            apportion(walls, PERCENT, wall_ns, whole[1]) if wall_ns else [0] * len(items),
            apportion([item.critical_ns for item in items], 1, unit.tick_ns, whole[2]),
            strict=True,
        )
    )


def wall_table(
    heading: str,
    items: Sequence[Item],
    unit: Unit,
    note: Words = (),
    titles: tuple[str, str] = ("calls", "busy"),
) -> Table:
    """A table whose rows add up to its sum line; children add up to their parent."""
    wall_ns = sum(item.wall_ns for item in items)
    critical_ns = sum(item.critical_ns for item in items)
    whole = (unit.ticks(wall_ns), PERCENT if wall_ns else 0, unit.ticks(critical_ns))
    rows: list[Row] = []
    for item, ticks in zip(items, _rounded(items, unit, wall_ns, whole), strict=True):
        rows.append(_row(item, unit, ticks, wall_ns))
        rows.extend(
            _row(child, unit, part, wall_ns, depth=1)
            for child, part in zip(item.children, _rounded(item.children, unit, wall_ns, ticks), strict=True)
        )
    total = (unit.text(whole[0]),), (percent_text(whole[1]),), (), (), (unit.text(whole[2]),)
    return Table(
        heading=heading,
        columns=(
            Column(f"wall {unit.name}", 7),
            Column("%", 7),
            Column(titles[0], 8),
            Column(titles[1], 8),
            Column("critical", 11),
        ),
        rows=tuple(rows),
        total=Row(label=(), cells=total, note=note),
    )
