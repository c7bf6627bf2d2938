"""How the spans of one turn stand to each other: phases, calls, tools and rounds."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from turntrace.core.calls import Calls, Generation, ToolSpan, count_tools, fold
from turntrace.core.dialect_model import Role
from turntrace.core.dialects import request_of
from turntrace.core.model import Usage
from turntrace.core.readings import Readings
from turntrace.core.turn_roots import is_turn

__all__ = ["Layout", "lay_out"]

_GENERATION: Final = "generation"
_TOOL: Final = "tool_execution"
_ATTEMPT: Final = "provider_connect"
_LOOPING: Final = frozenset({"google_genai"})
"""Dialects whose generation may be a loop: google-genai calls functions by itself, in one span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What the rows of a turn are to it. ``tools`` are its tool spans, ``tool_calls`` the calls in them.

    ``phases`` has the phase of each row, None for structure; ``rounds`` the round of those in one.
    ``looped`` are generations that asked the model again after tools and tell the last answer's tokens.
    """

    phases: Mapping[int, str | None]
    calls: Calls
    tools: Sequence[int]
    tool_calls: int
    rounds: Mapping[int, int]
    looped: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Around:
    """What lies around the children of a span: the generation, the tool, whether an agent does."""

    generation: int | None = None
    tool: int | None = None
    in_tool: bool = False
    in_agent: bool = False


_TOP: Final = _Around()


def lay_out(readings: Readings, rows: Iterable[int]) -> Layout:
    """Lay out ``rows``, in preorder within each part."""
    phases: dict[int, str | None] = {}
    around: dict[int, _Around] = {}
    above: dict[int, _Around] = {}
    attempts: dict[int, int] = {}
    for row in rows:
        here = above[row] = around.get(readings.parents[row], _TOP)
        phase = phases[row] = _phase(readings, row, here)
        around[row] = _inside(readings, row, phase, here)
        if phase == _ATTEMPT and here.generation is not None:
            attempts[here.generation] = attempts.get(here.generation, 0) + 1
    looped = _looped(readings, phases, above)
    generations = [
        _generation(readings, row, above[row], attempts.get(row, 0), usage=_usage(readings, row, looped))
        for row, phase in phases.items()
        if phase == _GENERATION
    ]
    calls = fold(generations)
    phases.update(dict.fromkeys(calls.wrappers))
    phases.update(dict.fromkeys(calls.retried, _ATTEMPT))
    tools = [row for row, phase in phases.items() if phase == _TOOL]
    spans = [ToolSpan(row=row, above=above[row].tool, tool=readings[row].facts.tool) for row in tools]
    return Layout(
        phases=phases,
        calls=calls,
        tools=tools,
        tool_calls=count_tools(spans),
        looped=looped,
        rounds=_rounds(readings, phases, calls, _own_level(calls, above)),
    )


def _looped(
    readings: Readings, phases: Mapping[int, str | None], above: Mapping[int, _Around]
) -> frozenset[int]:
    """Generations with tools in them, of instrumentations whose span is the whole loop of requests."""
    around = (above[row].generation for row, phase in phases.items() if phase == _TOOL)
    return frozenset(row for row in around if row is not None and readings[row].verdict.dialect in _LOOPING)


def _usage(readings: Readings, row: int, looped: Collection[int]) -> Usage | None:
    usage = readings[row].usage
    if usage is None or row not in looped:
        return usage
    return Usage(
        span_id=usage.span_id,
        provenance="missing",
        model=usage.model,
        provider=usage.provider,
        raw=usage.raw,
    )


def _own_level(calls: Calls, above: Mapping[int, _Around]) -> set[int]:
    """The rows on the turn's own level: in no tool, and in no agent inside the turn.

    A turn that makes no call itself only hands over to agents: their level is its own.
    """
    outside_tools = {row for row, here in above.items() if not here.in_tool}
    own = {row for row in outside_tools if not above[row].in_agent}
    return outside_tools if own.isdisjoint(calls.rows) else own


def _phase(readings: Readings, row: int, here: _Around) -> str | None:
    verdict = readings[row].verdict
    if verdict.http_attempt and here.generation is not None:
        return _ATTEMPT
    if verdict.role is Role.LEAF:
        return None if readings.below(row) else "other"
    return verdict.phase


def _inside(readings: Readings, row: int, phase: str | None, here: _Around) -> _Around:
    if is_turn(readings[row]):
        return _Around(in_tool=here.in_tool, in_agent=True)
    if phase == _TOOL:
        return _Around(tool=row, in_tool=True, in_agent=here.in_agent)
    return replace(here, generation=row) if phase == _GENERATION else here


def _generation(
    readings: Readings, row: int, here: _Around, attempts: int, *, usage: Usage | None
) -> Generation:
    reading = readings[row]
    return Generation(
        row=row,
        last=readings.lasts[row],
        above=here.generation,
        start_ns=reading.start_ns,
        end_ns=reading.end_ns,
        instrumentation=reading.raw.scope,
        model=reading.facts.model,
        response_id=reading.facts.response_id,
        usage=usage,
        resends=reading.facts.resends,
        attempts=attempts,
        parent=readings.parents[row],
        is_refused=reading.usage is None,
        request=request_of(reading.verdict, reading.raw.attributes),
    )


def _rounds(
    readings: Readings, phases: Mapping[int, str | None], calls: Calls, own_level: set[int]
) -> dict[int, int]:
    """The rounds: those that spans state, else one for each generation on the turn's own level.

    A tool belongs to the generation that started last before it; what lies in a span is of its round.
    """
    own = sorted(
        (row for row in calls.rows if row in own_level), key=lambda row: (readings[row].start_ns, row)
    )
    starts = [readings[row].start_ns for row in own]
    numbers = {row: number for number, row in enumerate(own, 1)}
    numbers.update({row: numbers[call] for row, call in calls.retried.items() if call in numbers})
    rounds: dict[int, int] = {}
    for row, phase in phases.items():
        number = readings[row].facts.round if row in own_level else None
        if number is None and row in own_level and phase == _TOOL:
            number = bisect_right(starts, readings[row].start_ns)
        number = number or numbers.get(row) or rounds.get(readings.parents[row])
        if number:
            rounds[row] = number
    return rounds
