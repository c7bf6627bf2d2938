"""Two files' turns beside each other: as tables and as JSON. Medians, counts and differences; no verdict."""

from collections.abc import Sequence
from typing import Any

from turntrace.core.beside import Beside, Compared, Side
from turntrace.report.blocks import Block, Column, Facts, Heading, Row, Table
from turntrace.report.case import phase_name
from turntrace.report.json_report import dumped
from turntrace.report.rounding import Unit, count_text, quotient, unit_for
from turntrace.report.strings import UNKNOWN, Data, Words

__all__ = ["beside_json", "beside_view"]

_LABELS = {
    "wall": "whole turn",
    "active": "active",
    "first_token": "first token",
    "model_requests": "model calls",
    "tool_calls": "tool calls",
    "retry_count": "retries",
    "input_tokens": "tokens in",
    "output_tokens": "tokens out",
}


def beside_view(found: Beside, paths: Sequence[str]) -> tuple[Block, ...]:
    """The two as blocks: who is who, the phases, the whole turn, then what was counted."""
    unit = unit_for(max(found.wall.a.median or 0, found.wall.b.median or 0))
    return (
        Heading(title=(Data(paths[0]), " beside ", Data(paths[1])), figures="medians, no verdict"),
        Facts(
            parts=(
                (("a: ", Data(paths[0]), ", ", _turns(found.a_turns, found.a_ended)), ""),
                (("b: ", Data(paths[1]), ", ", _turns(found.b_turns, found.b_ended)), ""),
            )
        ),
        _times("WHERE THE TURNS WENT", [*found.phases, found.unattributed], unit),
        _times("THE WHOLE TURN", [found.wall, found.active, found.first_token], unit),
        _counts(found),
    )


def _turns(count: int, ended: int) -> str:
    unfinished = f", {count_text(count - ended)} unfinished left out" if count > ended else ""
    return f"{count_text(count)} turn{'' if count == 1 else 's'}{unfinished}"


def _times(heading: str, rows: Sequence[Compared], unit: Unit) -> Table:
    return Table(
        heading=heading,
        columns=(
            Column(f"a {unit.name}", 9),
            Column(f"b {unit.name}", 9),
            Column(f"b - a {unit.name}", 10),
            Column("%", 9),
            Column("a calls", 9),
            Column("b calls", 9),
        ),
        rows=tuple(_time_row(row, unit) for row in rows),
        area=26,
        bars=False,
    )


def _time_row(row: Compared, unit: Unit) -> Row:
    label: Words = (
        (Data(row.tool),)
        if row.tool
        else (_LABELS[row.name],)
        if row.name in _LABELS
        else phase_name(row.name)
    )
    return Row(
        label=label,
        cells=(
            _figure(row.a, unit),
            _figure(row.b, unit),
            (_difference(row, unit),),
            (_percent(row),),
            *(() if side.calls is None else (count_text(side.calls),) for side in (row.a, row.b)),
        ),
        depth=1 if row.tool else 0,
        quiet=row.name == "unattributed",
    )


def _figure(side: Side, unit: Unit) -> Words:
    return (UNKNOWN,) if side.median is None else (unit.of(side.median),)


def _difference(row: Compared, unit: Unit) -> str:
    """What is printed of b less what is printed of a."""
    if row.a.median is None or row.b.median is None:
        return UNKNOWN
    ticks = unit.ticks(row.b.median) - unit.ticks(row.a.median)
    return _signed(unit.text(ticks), ticks)


def _signed(text: str, value: int) -> str:
    return f"+{text}" if value > 0 else text


def _percent(row: Compared) -> str:
    """The difference as a part of a; a dash where there is nothing to be a part of."""
    if row.difference is None or not row.a.median:
        return UNKNOWN
    tenths = quotient(abs(row.difference) * 1000, row.a.median)
    sign = "" if not tenths else "+" if row.difference > 0 else "-"
    return f"{sign}{tenths // 10}.{tenths % 10}"


def _counts(found: Beside) -> Table:
    return Table(
        heading="WHAT WAS COUNTED A TURN",
        columns=(Column("a", 9), Column("b", 9), Column("b - a", 10), Column("%", 9)),
        rows=tuple(_count_row(row) for row in found.counts),
        area=26,
        bars=False,
    )


def _count_row(row: Compared) -> Row:
    figures = (row.a.median, row.b.median)
    difference = row.difference
    return Row(
        label=(_LABELS.get(row.name, row.name),),
        cells=(
            *((UNKNOWN,) if count is None else (count_text(count),) for count in figures),
            (UNKNOWN,) if difference is None else (_signed(count_text(difference), difference),),
            (_percent(row),),
        ),
    )


def beside_json(found: Beside, paths: Sequence[str]) -> bytes:
    """The same as JSON (docs/beside.schema.json), exact; null is unknown."""
    document = {
        "schema": 1,
        "a": {"path": paths[0], "turns": found.a_turns, "ended": found.a_ended},
        "b": {"path": paths[1], "turns": found.b_turns, "ended": found.b_ended},
        **{
            name: _time_json(getattr(found, name))
            for name in ("wall", "active", "first_token", "unattributed")
        },
        "phases": [{"phase": row.name, "tool": row.tool, **_time_json(row)} for row in found.phases],
        "counts": [_count_json(row) for row in found.counts],
    }
    return dumped(document) + b"\n"


def _time_json(row: Compared) -> dict[str, Any]:
    return {
        **{
            name: {"median_ns": side.median, "calls": side.calls, "turns": side.turns}
            for name, side in (("a", row.a), ("b", row.b))
        },
        "difference_ns": row.difference,
    }


def _count_json(row: Compared) -> dict[str, Any]:
    sides = {
        name: {"median": side.median, "turns": side.turns} for name, side in (("a", row.a), ("b", row.b))
    }
    return {"name": row.name, **sides, "difference": row.difference}
