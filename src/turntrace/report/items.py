"""Exact sums that a table shows one below the other, before anything is rounded."""

from collections.abc import Sequence
from dataclasses import dataclass

from turntrace.core.contract import PHASES, Kind
from turntrace.core.results import PhaseTotals, Totals
from turntrace.report.case import Case, name_of, phase_name
from turntrace.report.evidence import hidden_tools
from turntrace.report.notes import phase_note, unattributed_note
from turntrace.report.rounding import Unit
from turntrace.report.strings import Data, Words

__all__ = [
    "Item",
    "added",
    "fold_names",
    "fold_phases",
    "items_by_name",
    "items_by_phase",
    "items_by_span",
    "kind_of",
    "remainder",
    "unattributed_item",
]

_FOLD_BELOW_PERCENT = 1
_NAMES_KEPT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row in exact nanoseconds; ``calls`` and ``busy_ns`` are None where they mean nothing."""

    label: Words
    wall_ns: int
    critical_ns: int
    calls: int | None = None
    busy_ns: int | None = None
    note: Words = ()
    children: tuple["Item", ...] = ()
    quiet: bool = False
    kind: Kind | None = None


def added(label: Words, items: Sequence[Item], note: Words = ()) -> Item:
    """The sum of the items under one label."""
    return Item(
        label=label,
        wall_ns=sum(item.wall_ns for item in items),
        critical_ns=sum(item.critical_ns for item in items),
        calls=sum(item.calls or 0 for item in items),
        busy_ns=sum(item.busy_ns or 0 for item in items),
        note=note,
        quiet=True,
    )


def fold_phases(items: Sequence[Item], wall_ns: int) -> tuple[Item, ...]:
    """The phases with those below 1 % of the wall added up in one row; a single small one stays."""
    return _folded(items, wall_ns, 0, "more phases", ("--all shows them",))


def fold_names(items: Sequence[Item], wall_ns: int) -> tuple[Item, ...]:
    """The tools or models, largest first; beyond the third those below 1 % of the wall are added up."""
    return _folded(items, wall_ns, _NAMES_KEPT, "more", ())


def _folded(items: Sequence[Item], wall_ns: int, kept: int, more: str, note: Words) -> tuple[Item, ...]:
    small = [item for item in items[kept:] if item.wall_ns * 100 < wall_ns * _FOLD_BELOW_PERCENT]
    if len(small) < 2:  # noqa: PLR2004  # a row for one item would hide its name and save nothing
        return tuple(items)
    large = [item for item in items[kept:] if item.wall_ns * 100 >= wall_ns * _FOLD_BELOW_PERCENT]
    return (*items[:kept], *large, added((f"{len(small)} {more}",), small, note))


def kind_of(phase: str | None) -> Kind | None:
    """Who spends the time of a phase; a foreign phase counts as other, structure has none."""
    return None if phase is None else PHASES.get(phase, PHASES["other"]).kind


def _item(
    label: Words,
    totals: Totals,
    note: Words = (),
    children: tuple[Item, ...] = (),
    phase: str | None = None,
) -> Item:
    return Item(
        kind=kind_of(phase),
        label=label,
        wall_ns=totals.wall_share_ns or 0,
        critical_ns=totals.critical_ns or 0,
        calls=totals.count,
        busy_ns=totals.busy_ns,
        note=note,
        children=children,
    )


def remainder(label: str, whole: Item, parts: Sequence[Item]) -> tuple[Item, ...]:
    """What ``whole`` holds beyond its parts, as one item, or nothing."""
    known = added((), parts)
    rest = Item(
        label=(label,),
        wall_ns=whole.wall_ns - known.wall_ns,
        critical_ns=whole.critical_ns - known.critical_ns,
        calls=(whole.calls or 0) - (known.calls or 0),
        busy_ns=(whole.busy_ns or 0) - (known.busy_ns or 0),
        quiet=True,
    )
    return (rest,) if rest.wall_ns or rest.critical_ns or rest.calls else ()


def _named(case: Case, totals: PhaseTotals) -> tuple[Item, ...]:
    """The tools or models of a phase; a large tool that the turn never waited for says what hid it."""
    hidden: dict[str, Words] = {}
    if totals.name == "tool_execution":
        off_path = [part for part in totals.by if not part.critical_ns and part.wall_share_ns]
        hidden = hidden_tools(case, {part.name for part in off_path if _is_large(part.wall_share_ns, case)})
    notes = {name: ("hidden behind ", *words) for name, words in hidden.items()}
    return tuple(
        _item((Data(part.name),), part, notes.get(part.name, ()), phase=totals.name) for part in totals.by
    )


def _is_large(wall_share_ns: int | None, case: Case) -> bool:
    return (wall_share_ns or 0) * 100 >= (case.attribution.wall_ns or 0) * _FOLD_BELOW_PERCENT


def _children(case: Case, totals: PhaseTotals, *, everything: bool) -> tuple[Item, ...]:
    """The tools of tool_execution; the models of generation when there are several."""
    least = 1 if totals.name == "tool_execution" else 2
    if len(totals.by) < least:
        return ()
    named = _named(case, totals)
    items = (*named, *remainder("unnamed", _item((), totals), named))
    return items if everything else fold_names(items, case.attribution.wall_ns or 0)


def items_by_phase(case: Case, *, everything: bool = False) -> tuple[Item, ...]:
    """One item a phase, the largest first; those below 1 % folded unless ``everything`` is wanted."""
    items = tuple(
        _item(
            phase_name(totals.name),
            totals,
            phase_note(case, totals),
            _children(case, totals, everything=everything),
            totals.name,
        )
        for totals in case.attribution.phases
    )
    return items if everything else fold_phases(items, case.attribution.wall_ns or 0)


def items_by_name(case: Case, phase: str, *, everything: bool = False) -> tuple[Item, ...]:
    """One item a tool (``tool_execution``) or a model (``generation``), then every other phase as one."""
    totals = next((totals for totals in case.attribution.phases if totals.name == phase), None)
    named = _named(case, totals) if totals is not None else ()
    whole = added((), [_item((), other) for other in case.attribution.phases])
    shown = named if everything else fold_names(named, case.attribution.wall_ns or 0)
    return (*shown, *remainder("everything else", whole, named))


def items_by_span(case: Case, top: int, *, everything: bool = False) -> tuple[Item, ...]:
    """One item a phase span, the largest wall share first, those beyond ``top`` added up."""
    spans = [times for times in case.attribution.spans if times.phase is not None]
    spans.sort(key=lambda times: (-(times.wall_share_ns or 0), times.span.start_ns, times.span.span_id))
    items = [
        Item(
            label=name_of(times),
            wall_ns=times.wall_share_ns or 0,
            critical_ns=times.critical_ns or 0,
            calls=1,
            busy_ns=times.exclusive_ns,
            note=(Data(times.span.span_id),),
            kind=kind_of(times.phase),
        )
        for times in spans
    ]
    if everything or len(items) <= top + 1:
        return tuple(items)
    return (*items[:top], added((f"{len(items) - top} more spans",), items[top:], ("--all shows them",)))


def unattributed_item(case: Case, unit: Unit) -> Item:
    """The row of the time that no phase covers; its critical time is that of the structure."""
    attribution = case.attribution
    structure_ns = sum(times.critical_ns or 0 for times in attribution.spans if times.phase is None)
    return Item(
        label=("unattributed",),
        wall_ns=attribution.unattributed_ns or 0,
        critical_ns=structure_ns + (attribution.root_critical_ns or 0),
        note=unattributed_note(case, unit),
        quiet=True,
    )
