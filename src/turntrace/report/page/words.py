"""What the page prints, worded and rounded here, so that it says what the report in the terminal says."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from turntrace.report.blocks import Block, Facts, Heading, Table
from turntrace.report.case import Case, turn_name
from turntrace.report.facts import facts_of
from turntrace.report.findings import find
from turntrace.report.items import items_by_phase, unattributed_item
from turntrace.report.many import many_view
from turntrace.report.moments import moments
from turntrace.report.rounding import Unit, count_text, unit_for
from turntrace.report.session import is_session, session_view
from turntrace.report.strings import UNKNOWN, Words, plain, printable
from turntrace.report.tables import wall_table
from turntrace.report.view import accounted, heading, stopped_table, warning_counts

__all__ = ["block_words", "blocks_words", "overview_words", "turn_words"]

_WELL_COVERED = 0.95


def turn_words(case: Case) -> dict[str, Any]:
    """The first screen of one turn: ``table`` folds small phases, ``phases`` has every one."""
    unit = unit_for(case.attribution.wall_ns)
    first = moments(case, unit)
    return {
        "heading": block_words(heading(case, unit)),
        "name": printable(turn_name(case.turn)),
        "wall": UNKNOWN if case.attribution.wall_ns is None else unit.with_name(case.attribution.wall_ns),
        "unit": unit.name,
        "sums": _sums([case]),
        "facts": block_words(facts_of([case])),
        "moments": None if first is None else block_words(first),
        "missing": _missing(case),
        "findings": _findings(case, unit),
        **_tables(case, unit),
    }


def _tables(case: Case, unit: Unit) -> dict[str, Any]:
    if case.attribution.wall_ns is None:
        stopped = block_words(stopped_table(case))
        return {"table": stopped, "phases": stopped}
    return {
        name: _phase_table(case, unit, everything=everything)
        for name, everything in (("table", False), ("phases", True))
    }


def _phase_table(case: Case, unit: Unit, *, everything: bool) -> dict[str, Any]:
    items = items_by_phase(case, everything=everything)
    rows = (*items, unattributed_item(case, unit))
    return block_words(wall_table("Where the turn went", rows, unit, accounted(case)))


def _findings(case: Case, unit: Unit) -> list[dict[str, Any]]:
    return [
        {
            "label": plain(finding.label),
            "phase": case.by_id[finding.span_ids[0]].phase,
            "message": plain(finding.message),
            "saves": unit.with_name(finding.saves_ns),
            "span_ids": list(finding.span_ids),
        }
        for finding in find(case, unit)
    ]


def _missing(case: Case) -> list[dict[str, Any]]:
    """What a reader must know before trusting a figure, each with whether it is worth a warning."""
    attribution, usage = case.attribution, case.usage
    said = [{"text": plain(accounted(case)), "warn": (attribution.coverage or 0) < _WELL_COVERED}]
    if attribution.wall_ns is None:
        said = [{"text": "the turn has no end: wall, shares and critical path are unknown", "warn": True}]
    calls = max(usage.reports + usage.missing, case.turn.counters.get("model_requests", 0))
    if calls and not usage.complete:
        unknown = count_text(calls - usage.reports)
        said.append({"text": f"tokens of {unknown} of {count_text(calls)} model calls unknown", "warn": True})
    counts = warning_counts(case)
    if counts:
        total = count_text(sum(counts.values()))
        named = ", ".join(f"{count_text(count)} x {printable(code)}" for code, count in counts.items())
        noun = "warning" if total == "1" else "warnings"
        said.append({"text": f"{total} {noun}: {named}", "warn": True})
    return [one for one in said if one["text"]]


def overview_words(cases: Sequence[Case]) -> dict[str, Any]:
    """The first screen of many turns: the blocks of their report, and the exact sums of their bar."""
    shown = session_view(cases) if is_session(cases) else many_view(cases, [""] * len(cases))
    return {
        "blocks": blocks_words(shown),
        "sums": _sums(cases),
    }


def _sums(cases: Sequence[Case]) -> Mapping[str, int]:
    """Wall share by phase over the turns that have an end, the largest first, ``unattributed`` last."""
    sums: dict[str, int] = {}
    for case in cases:
        for totals in case.attribution.phases:
            sums[totals.name] = sums.get(totals.name, 0) + (totals.wall_share_ns or 0)
    ordered = dict(sorted(sums.items(), key=lambda pair: -pair[1]))
    return {**ordered, "unattributed": sum(case.attribution.unattributed_ns or 0 for case in cases)}


def blocks_words(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Headings, facts and tables; commands to type mean nothing in a page."""
    return [block_words(block) for block in blocks if isinstance(block, Heading | Facts | Table)]


def block_words(block: Heading | Facts | Table) -> dict[str, Any]:
    """A block as plain strings; nothing in it is markup."""
    if isinstance(block, Heading):
        return {"title": plain(block.title), "figures": block.figures, "note": block.note}
    if isinstance(block, Facts):
        return {"facts": [plain(words) + note for words, note in block.parts]}
    return _table(block)


def _table(table: Table) -> dict[str, Any]:
    return {
        "heading": table.heading.capitalize(),
        "columns": [column.title for column in table.columns],
        "rows": [
            {
                "label": plain(row.label),
                "cells": _cells(row.cells),
                "depth": row.depth,
                "fraction": row.fraction,
                "note": plain(row.note),
                "quiet": row.quiet,
            }
            for row in table.rows
        ],
        "total": None
        if table.total is None
        else {"cells": _cells(table.total.cells), "note": plain(table.total.note)},
    }


def _cells(cells: Iterable[Words]) -> list[str]:
    return [plain(cell).strip() for cell in cells]
