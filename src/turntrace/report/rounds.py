"""Rounds of a turn: one generation and the tools it asked for."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from turntrace.core.model import Usage
from turntrace.core.results import SpanTimes
from turntrace.core.usage import UsageTotals, total
from turntrace.report.blocks import Column, Row, Table
from turntrace.report.case import Case
from turntrace.report.rounding import PERCENT, Unit, apportion, count_text, percent_text, percents, quotient
from turntrace.report.strings import UNKNOWN, Data, Words, joined

__all__ = ["Round", "round_table", "rounds_of"]

_UNKNOWN: Words = (UNKNOWN,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round: its wall share, its model, its tools in order of first call, its tokens."""

    number: int
    wall_ns: int | None
    critical_ns: int | None
    model: str | None
    tools: tuple[str, ...]
    usage: UsageTotals


def rounds_of(case: Case) -> tuple[Round, ...]:
    """The rounds that spans name, in order; their wall is the sum of their spans' wall shares."""
    spans: dict[int, list[SpanTimes]] = defaultdict(list)
    usages: dict[int, list[Usage]] = defaultdict(list)
    for times in case.attribution.spans:
        number = case.rounds[times.span.span_id]
        if number is not None:
            spans[number].append(times)
    for usage in case.turn.usage:
        number = case.rounds.get(usage.span_id)
        if number is not None:
            usages[number].append(usage)
    return tuple(_round(number, spans[number], usages[number], case) for number in sorted(spans))


def _round(number: int, spans: list[SpanTimes], usages: list[Usage], case: Case) -> Round:
    has_window = case.attribution.wall_ns is not None
    models = [times.span.model for times in spans if times.phase == "generation" and times.span.model]
    tools = (times.span.tool for times in spans if times.phase == "tool_execution" and times.span.tool)
    return Round(
        number=number,
        wall_ns=sum(times.wall_share_ns or 0 for times in spans) if has_window else None,
        critical_ns=sum(times.critical_ns or 0 for times in spans) if has_window else None,
        model=models[0] if models else None,
        tools=tuple(dict.fromkeys(tools)),
        usage=total(usages, len(usages)),
    )


def round_table(case: Case, unit: Unit) -> Table:
    """Round, wall, share, model, tokens in, cached share, and the tools as the note."""
    rounds = rounds_of(case)
    wall_ns = case.attribution.wall_ns or 0
    walls = [found.wall_ns or 0 for found in rounds]
    unattributed_ns = case.attribution.unattributed_ns or 0
    walls += [wall_ns - sum(walls) - unattributed_ns, unattributed_ns]
    ticks = apportion(walls, 1, unit.tick_ns, unit.ticks(wall_ns))
    tenths = percents(walls, wall_ns)
    figures = [
        ((unit.text(tick),), (percent_text(tenth),)) for tick, tenth in zip(ticks, tenths, strict=True)
    ]
    rows = [
        Row(
            label=(f"round {found.number}",),
            cells=(*cells, *_token_cells(found.usage), (Data(found.model),) if found.model else _UNKNOWN),
            note=joined([(Data(tool),) for tool in found.tools], ", "),
        )
        for found, cells in zip(rounds, figures, strict=False)
    ]
    rows += _outside(walls[-2:], figures[-2:])
    return Table(
        heading="BY ROUND",
        columns=(
            Column(f"wall {unit.name}", 7),
            Column("%", 7),
            Column("tokens in", 11),
            Column("cached", 8),
            Column("model", 12),
        ),
        rows=tuple(rows),
        total=Row(label=(), cells=((unit.of(wall_ns),), (percent_text(PERCENT if wall_ns else 0),))),
        area=18,
        bars=False,
    )


def _outside(walls: Sequence[int], figures: Sequence[tuple[Words, Words]]) -> Iterator[Row]:
    """The time outside every round and the time that no phase covers."""
    for label, ns, cells in zip(("outside rounds", "unattributed"), walls, figures, strict=True):
        if ns or label == "unattributed":
            yield Row(label=(label,), cells=(*cells, (), (), ()), quiet=True)


def _token_cells(usage: UsageTotals) -> tuple[Words, Words]:
    if usage.input_tokens is None:
        return _UNKNOWN, _UNKNOWN
    if usage.cached_input_tokens is None or not usage.input_tokens:
        return (count_text(usage.input_tokens),), _UNKNOWN
    return (
        (count_text(usage.input_tokens),),
        (f"{quotient(usage.cached_input_tokens * 100, usage.input_tokens)} %",),
    )
