"""One turn as blocks: title, table, first moments, findings.

Every figure is rounded by ``rounding`` on the way in; renderers only lay out what they are given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from turntrace.core.model import Warn
from turntrace.core.results import Totals
from turntrace.report.blocks import Block, Column, Facts, FindingRow, Findings, Heading, Row, Table
from turntrace.report.case import Case, phase_name, turn_name
from turntrace.report.evidence import Finding
from turntrace.report.facts import facts_of
from turntrace.report.findings import find, observe
from turntrace.report.items import Item, items_by_name, items_by_phase, items_by_span, unattributed_item
from turntrace.report.moments import moments
from turntrace.report.rounding import PERCENT, SECONDS, Unit, count_text, percent_text, percents, unit_for
from turntrace.report.rounds import round_table
from turntrace.report.strings import UNKNOWN, Data, Words, joined
from turntrace.report.tables import wall_table

__all__ = [
    "DEFAULT_CHOICE",
    "By",
    "Choice",
    "accounted",
    "heading",
    "phase_table",
    "stopped_table",
    "turn_view",
    "warning_counts",
]

By = Literal["phase", "round", "tool", "model", "span"]

_TITLES = {
    "phase": "WHERE THE TURN WENT",
    "tool": "BY TOOL",
    "model": "BY MODEL",
    "span": "BY SPAN",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to show: rows by what, how many of a long list, or everything."""

    by: By = "phase"
    top: int = 5
    everything: bool = False


DEFAULT_CHOICE: Final = Choice()


def turn_view(case: Case, choice: Choice = DEFAULT_CHOICE) -> tuple[Block, ...]:
    """The report of one turn."""
    unit = unit_for(case.attribution.wall_ns)
    blocks: list[Block | None] = [heading(case, unit), facts_of([case])]
    if case.attribution.wall_ns is None:
        blocks += [stopped_table(case), _warnings(case)]
    elif choice.by == "phase":
        blocks += [
            _table(case, choice, unit),
            moments(case, unit),
            _warnings(case),
            _findings(case, choice, unit),
            _observed(case, unit),
        ]
    else:
        blocks += [_table(case, choice, unit), _warnings(case)]
    return tuple(block for block in blocks if block is not None)


def heading(case: Case, unit: Unit) -> Heading:
    """Agent, model and status; the wall and, when a person was waited for, the active time."""
    turn, attribution = case.turn, case.attribution
    named: list[Words] = [(Data(turn_name(turn)),)]
    if turn.model:
        named.append((Data(turn.model),))
    named.append((Data(turn.status),))
    if attribution.wall_ns is None:
        return Heading(title=joined(named), figures="wall unknown: the turn has no end")
    figures = f"{unit.with_name(attribution.wall_ns)} wall"
    if attribution.active_ns is None or attribution.active_ns == attribution.wall_ns:
        return Heading(title=joined(named), figures=figures)
    return Heading(
        title=joined(named),
        figures=f"{figures} · {unit.with_name(attribution.active_ns)} active",
        note=" (without waiting for you)",
    )


def phase_table(case: Case, choice: Choice = DEFAULT_CHOICE) -> Table:
    """The table of a turn that has a window, in seconds."""
    return _table(case, choice, SECONDS)


def _table(case: Case, choice: Choice, unit: Unit) -> Table:
    if choice.by == "round":
        return round_table(case, unit)
    items: Sequence[Item]
    titles = ("calls", "busy")
    if choice.by == "phase":
        items = items_by_phase(case, everything=choice.everything)
    elif choice.by == "span":
        items = items_by_span(case, max(choice.top, 1), everything=choice.everything)
        titles = ("calls", "own")
    else:
        phase = "tool_execution" if choice.by == "tool" else "generation"
        items = items_by_name(case, phase, everything=choice.everything)
    rows = (*items, unattributed_item(case, unit))
    return wall_table(_TITLES[choice.by], rows, unit, accounted(case), titles)


def accounted(case: Case) -> Words:
    """How much of the wall the phases cover; nothing where there is no wall."""
    attribution = case.attribution
    unattributed_ns = attribution.unattributed_ns or 0
    if not attribution.wall_ns:
        return ()
    parts = [totals.wall_share_ns or 0 for totals in attribution.phases]
    missing = percents([*parts, unattributed_ns], attribution.wall_ns)[-1]
    return (f"accounted for {percent_text(PERCENT - missing)} %",)


def stopped_table(case: Case) -> Table:
    """What is known of a turn without a window: counts and exclusive times."""
    unit = unit_for(None)
    return Table(
        heading="WHAT RAN BEFORE IT STOPPED",
        columns=(Column("calls", 8), Column("busy s", 9), Column("median s", 10), Column("P95 s", 9)),
        rows=tuple(_stopped_row(case, totals, unit) for totals in case.attribution.phases),
        bars=False,
    )


def _stopped_row(case: Case, totals: Totals, unit: Unit) -> Row:
    """A phase's figures; of spans that had just begun when the turn stopped, nobody knows how long they ran."""
    unfinished = sum(
        times.span.outcome == "incomplete" for times in case.attribution.spans if times.phase == totals.name
    )
    figures = (totals.busy_ns, totals.exclusive_p50_ns, totals.exclusive_p95_ns)
    known = [(UNKNOWN if unfinished and not ns else unit.of(ns),) for ns in figures]
    note: Words = (f"{count_text(unfinished)} unfinished",) if unfinished else ()
    return Row(label=phase_name(totals.name), cells=((count_text(totals.count),), *known), note=note)


def _warnings(case: Case) -> Facts | None:
    """How many warnings there are, by code, so that a reader knows when to distrust a figure."""
    counts = warning_counts(case)
    if not counts:
        return None
    named = (((f"{count} x ", Data(code)), "") for code, count in counts.items())
    return Facts(parts=((("warnings",), ""), *named))


def warning_counts(case: Case) -> dict[str, int]:
    """How often each warning was given, by code in alphabetical order."""
    counts: dict[str, int] = {}
    for code in sorted(_codes((*case.turn.warnings, *case.attribution.warnings), case)):
        counts[code] = counts.get(code, 0) + 1
    return counts


def _codes(warnings: Iterable[Warn], case: Case) -> list[str]:
    issues = [issue.code for issue in case.issues if issue.severity != "info"]
    return [warning.code for warning in warnings] + issues


def _findings(case: Case, choice: Choice, unit: Unit) -> Findings | None:
    """The findings, at most ``choice.top`` of them unless everything is wanted."""
    found = find(case, unit)
    shown = found if choice.everything else found[: choice.top]
    rows = _finding_rows(shown, unit)
    return Findings(rows=rows) if rows else None


def _observed(case: Case, unit: Unit) -> Findings | None:
    """What else held the turn: the person that it asked, and what nothing accounts for."""
    rows = _finding_rows(observe(case, unit), unit)
    note = " (on the critical path, not the agent's to speed up)"
    return Findings(rows=rows, title="ALSO WAITED FOR", note=note, saves="up to") if rows else None


def _finding_rows(found: Iterable[Finding], unit: Unit) -> tuple[FindingRow, ...]:
    return tuple(
        FindingRow(label=finding.label, message=finding.message, saves=unit.with_name(finding.saves_ns))
        for finding in found
    )
