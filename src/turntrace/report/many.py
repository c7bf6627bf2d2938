"""Many turns at once: what is typical, and which were slowest."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from turntrace.core.rollup import nearest_rank
from turntrace.report.blocks import Block, Column, Facts, Heading, Pointer, Pointers, Row, Table
from turntrace.report.case import Case, phase_name, turn_name
from turntrace.report.facts import facts_of
from turntrace.report.rounding import PERCENT, Unit, count_text, percent_text, percents, unit_for
from turntrace.report.strings import Data, Words, joined
from turntrace.report.view import DEFAULT_CHOICE, Choice

__all__ = ["finished", "many_view", "status_words", "unfinished_note"]

_HALF = 50
_TAIL = 95


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """One row: its wall share in each turn, and how often it was called in all."""

    label: Words
    walls: tuple[int, ...]
    calls: int | None = None
    note: Words = ()
    quiet: bool = False

    @property
    def wall_ns(self) -> int:
        return sum(self.walls)


def _rank(values: Iterable[int], percent: int) -> int:
    ordered = sorted(values)
    return nearest_rank(ordered, percent) if ordered else 0


def finished(cases: Sequence[Case]) -> list[Case]:
    """The cases whose turn has an end."""
    return [case for case in cases if case.attribution.wall_ns is not None]


def many_view(
    cases: Sequence[Case],
    commands: Sequence[str],
    choice: Choice = DEFAULT_CHOICE,
) -> tuple[Block, ...]:
    """Median, P95 and share over the turns, then the slowest; ``commands`` open the cases one by one."""
    ended = finished(cases)
    walls = [case.attribution.wall_ns or 0 for case in ended]
    unit = unit_for(_rank(walls, _HALF))
    figures = f"{unit.with_name(_rank(walls, _HALF))} median · {unit.with_name(_rank(walls, _TAIL))} P95"
    blocks: list[Block] = [
        Heading(title=joined([_names(cases), status_words(cases)]), figures=figures),
        facts_of(cases),
        *_newest_session(cases),
    ]
    if ended:
        blocks += [
            _typical(ended, choice, unit, unfinished_note(cases)),
            _slowest(cases, commands, choice, unit),
        ]
    return tuple(blocks)


def _newest_session(cases: Sequence[Case]) -> Iterable[Block]:
    """What the session that went on last took, where sessions of several turns stand in one report."""
    sessions: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.turn.session_id:
            sessions[case.turn.session_id].append(case)
    if 1 < len(sessions) < len(cases):
        newest = max(
            sessions.values(), key=lambda session: max(case.turn.started_ns or 0 for case in session)
        )
        count = f"newest session: {count_text(len(newest))} of {count_text(len(cases))} turns"
        yield Facts(parts=(((count,), ""), *facts_of(newest).parts))


def _names(cases: Sequence[Case]) -> Words:
    first, *others = dict.fromkeys(turn_name(case.turn) for case in cases)
    if not others:
        return (Data(first),)
    return (Data(first), f" and {len(others)} more agent{'' if len(others) == 1 else 's'}")


def status_words(cases: Sequence[Case]) -> Words:
    """How many turns, and how many of them did not end well."""
    counts: dict[str, int] = defaultdict(int)
    for case in cases:
        counts[case.turn.status] += 1
    others = [
        f"{counts[status]} {status}" for status in ("error", "cancelled", "interrupted") if counts[status]
    ]
    return (f"{count_text(len(cases))} turns" + "".join(f", {other}" for other in others),)


def unfinished_note(cases: Sequence[Case]) -> Words:
    """How many turns have no end and are in no time."""
    count = len(cases) - len(finished(cases))
    return (f"{count} unfinished left out",) if count else ()


def _series(cases: Sequence[Case], choice: Choice) -> list[_Series]:
    walls: dict[str, list[int]] = defaultdict(lambda: [0] * len(cases))
    calls: dict[str, int] = defaultdict(int)
    phase = {"tool": "tool_execution", "model": "generation"}.get(choice.by)
    for at, case in enumerate(cases):
        for totals in case.attribution.phases:
            for part in totals.by if totals.name == phase else () if phase else (totals,):
                walls[part.name][at] += part.wall_share_ns or 0
                calls[part.name] += part.count
    ordered = sorted(walls, key=lambda name: -sum(walls[name]))
    return [
        _Series(
            label=(Data(name),) if phase else phase_name(name), walls=tuple(walls[name]), calls=calls[name]
        )
        for name in ordered
    ]


def _folded(series: list[_Series], whole_ns: int, noun: str) -> list[_Series]:
    small = [one for one in series if one.wall_ns * 100 < whole_ns]
    if len(small) <= 1:
        return series
    more = _Series(
        label=(f"{len(small)} more {noun}",),
        walls=tuple(map(sum, zip(*(one.walls for one in small), strict=True))),
        calls=sum(one.calls or 0 for one in small),
        quiet=True,
    )
    return [*(one for one in series if one.wall_ns * 100 >= whole_ns), more]


def _typical(cases: Sequence[Case], choice: Choice, unit: Unit, note: Words) -> Table:
    walls = [case.attribution.wall_ns or 0 for case in cases]
    series = _series(cases, choice)
    nouns = {"tool": "tools", "model": "models"}
    shown = series if choice.everything else _folded(series, sum(walls), nouns.get(choice.by, "phases"))
    missing = [case.attribution.unattributed_ns or 0 for case in cases]
    others = [
        wall - gap - named for wall, gap, named in zip(walls, missing, _sums(series, len(cases)), strict=True)
    ]
    if any(others):
        shown = [*shown, _Series(label=("everything else",), walls=tuple(others), quiet=True)]
    shown = [*shown, _Series(label=("unattributed",), walls=tuple(missing), quiet=True)]
    whole = _Series(label=("whole turn",), walls=tuple(walls), note=note)
    tenths = percents([one.wall_ns for one in shown], sum(walls))
    return Table(
        heading="WHERE THE TURNS WENT",
        columns=(
            Column(f"median {unit.name}", 10),
            Column(f"P95 {unit.name}", 9),
            Column("%", 7),
            Column("turns", 7),
            Column("calls", 8),
        ),
        rows=tuple(_row(one, tenth, sum(walls), unit) for one, tenth in zip(shown, tenths, strict=True)),
        total=_row(whole, PERCENT if sum(walls) else 0, sum(walls), unit),
    )


def _sums(series: Sequence[_Series], count: int) -> list[int]:
    return [sum(one.walls[at] for one in series) for at in range(count)]


def _row(series: _Series, tenths: int, whole_ns: int, unit: Unit) -> Row:
    return Row(
        label=series.label,
        cells=(
            (unit.of(_rank(series.walls, _HALF)),),
            (unit.of(_rank(series.walls, _TAIL)),),
            (percent_text(tenths),),
            (count_text(sum(1 for wall in series.walls if wall)),),
            (count_text(series.calls),) if series.calls is not None else (),
        ),
        fraction=series.wall_ns / whole_ns if whole_ns else 0.0,
        note=series.note,
        quiet=series.quiet,
    )


def _slowest(cases: Sequence[Case], commands: Sequence[str], choice: Choice, unit: Unit) -> Pointers:
    """The slowest turns, each with the command that opens it."""
    pairs = [
        (wall, case, command)
        for case, command in zip(cases, commands, strict=True)
        if (wall := case.attribution.wall_ns) is not None
    ]
    pairs.sort(key=lambda pair: -pair[0])
    shown = pairs if choice.everything else pairs[: choice.top]
    return Pointers(
        heading="SLOWEST",
        rows=tuple(
            Pointer(name=unit.with_name(wall), target=(Data(command),), figures=_active(case, unit))
            for wall, case, command in shown
        ),
    )


def _active(case: Case, unit: Unit) -> str:
    active_ns = case.attribution.active_ns
    if active_ns is None or active_ns == case.attribution.wall_ns:
        return ""
    return f"{unit.with_name(active_ns)} active"
