"""An interactive session: a line for each turn, then one table of their sum."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from turntrace.core.results import PhaseTotals, Totals
from turntrace.report.blocks import Block, Column, Heading, Row, Table
from turntrace.report.case import Case, phase_name, turn_name
from turntrace.report.facts import facts_of
from turntrace.report.items import Item, fold_names, fold_phases, kind_of, remainder, unattributed_item
from turntrace.report.many import finished, status_words, unfinished_note
from turntrace.report.rounding import Unit, count_text, unit_for
from turntrace.report.strings import UNKNOWN, Data, Words, joined
from turntrace.report.tables import wall_table
from turntrace.report.view import DEFAULT_CHOICE, Choice

__all__ = ["is_session", "nested_table", "session_view"]


def is_session(cases: Sequence[Case]) -> bool:
    """Whether the turns are those of one person with one agent: one session id, one after another."""
    ids = {case.turn.session_id for case in cases}
    if len(cases) < 2 or len(ids) > 1 or not ids.pop():  # noqa: PLR2004  # one turn is no session
        return False
    windows = sorted(
        (case.turn.started_ns, case.turn.completed_ns)
        for case in finished(cases)
        if case.turn.started_ns is not None and case.turn.completed_ns is not None
    )
    return all(later[0] >= earlier[1] for earlier, later in pairwise(windows))


def session_view(cases: Sequence[Case], choice: Choice = DEFAULT_CHOICE) -> tuple[Block, ...]:
    """The report of a session; ``cases`` are its turns in order."""
    ended = finished(cases)
    wall_ns = sum(case.attribution.wall_ns or 0 for case in ended)
    active_ns = sum(case.attribution.active_ns or 0 for case in ended)
    unit = unit_for(wall_ns)
    title = joined([(Data(turn_name(cases[0].turn)),), status_words(cases)])
    figures = f"{unit.with_name(wall_ns)} wall"
    if active_ns != wall_ns:
        figures += f" · {unit.with_name(active_ns)} active"
    return (
        Heading(title=title, figures=figures),
        facts_of(cases),
        _turns("TURN BY TURN", [f"turn {number}" for number in range(1, len(cases) + 1)], cases, unit),
        _sum(ended, choice, unit, unfinished_note(cases)),
    )


def nested_table(cases: Sequence[Case]) -> Table:
    """A line for each turn that ran inside another; its time is part of the outer one's."""
    unit = unit_for(max(case.attribution.wall_ns or 0 for case in cases))
    return _turns("AGENTS INSIDE IT", [Data(turn_name(case.turn)) for case in cases], cases, unit)


def _turns(heading: str, labels: Sequence[str | Data], cases: Sequence[Case], unit: Unit) -> Table:
    longest = max((case.attribution.wall_ns or 0 for case in cases), default=0)
    return Table(
        heading=heading,
        columns=(
            Column(f"wall {unit.name}", 7),
            Column(f"active {unit.name}", 10),
            Column("rounds", 8),
            Column("tools", 7),
            Column("tokens in", 11),
        ),
        rows=tuple(_turn(label, case, longest, unit) for label, case in zip(labels, cases, strict=True)),
    )


def _turn(label: str | Data, case: Case, longest_ns: int, unit: Unit) -> Row:
    attribution, turn = case.attribution, case.turn
    figures = (attribution.wall_ns, attribution.active_ns)
    counts = (turn.rounds, turn.counters.get("tool_calls"), case.usage.input_tokens)
    most = phase_name(attribution.phases[0].name) if attribution.phases and attribution.wall_ns else ()
    return Row(
        label=(label,) if turn.status == "ok" else (label, " ", Data(turn.status)),
        cells=(
            *(((UNKNOWN,) if ns is None else (unit.of(ns),)) for ns in figures),
            *(((UNKNOWN,) if count is None else (count_text(count),)) for count in counts),
        ),
        fraction=(attribution.wall_ns or 0) / longest_ns if longest_ns else 0.0,
        note=("most in ", *most) if most else (),
    )


def _sum(cases: Sequence[Case], choice: Choice, unit: Unit, note: Words) -> Table:
    wall_ns = sum(case.attribution.wall_ns or 0 for case in cases)
    phases: dict[str, list[PhaseTotals]] = defaultdict(list)
    for case in cases:
        for totals in case.attribution.phases:
            phases[totals.name].append(totals)
    items = [_phase(name, found, wall_ns, everything=choice.everything) for name, found in phases.items()]
    items.sort(key=lambda item: -item.wall_ns)
    shown = tuple(items) if choice.everything else fold_phases(items, wall_ns)
    gaps = [unattributed_item(case, unit) for case in cases]
    missing = Item(
        label=("unattributed",),
        wall_ns=sum(gap.wall_ns for gap in gaps),
        critical_ns=sum(gap.critical_ns for gap in gaps),
        quiet=True,
    )
    return wall_table("WHERE THE SESSION WENT", (*shown, missing), unit, note)


def _phase(name: str, found: Sequence[PhaseTotals], wall_ns: int, *, everything: bool) -> Item:
    """A phase summed over the turns, its tools below it."""
    whole = _summed(phase_name(name), found, name)
    if name != "tool_execution":
        return whole
    named: dict[str, list[Totals]] = defaultdict(list)
    for totals in found:
        for part in totals.by:
            named[part.name].append(part)
    tools = sorted(
        (_summed((Data(tool),), parts, name) for tool, parts in named.items()), key=lambda item: -item.wall_ns
    )
    children = (*tools, *remainder("unnamed", whole, tools)) if tools else ()
    return replace(whole, children=children if everything else fold_names(children, wall_ns))


def _summed(label: Words, totals: Sequence[Totals], phase: str) -> Item:
    return Item(
        kind=kind_of(phase),
        label=label,
        wall_ns=sum(one.wall_share_ns or 0 for one in totals),
        critical_ns=sum(one.critical_ns or 0 for one in totals),
        calls=sum(one.count for one in totals),
        busy_ns=sum(one.busy_ns for one in totals),
    )
