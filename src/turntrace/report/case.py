"""One turn with everything that renderers read: the record, its attribution, its tokens, two look-ups."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from turntrace.core.attribution import attributed
from turntrace.core.contract import PHASES
from turntrace.core.model import Issue, Turn
from turntrace.core.results import Attribution, SpanTimes
from turntrace.core.usage import UsageTotals, total
from turntrace.report.strings import Data, Words

__all__ = ["Case", "examine", "name_of", "phase_name", "ran_ns", "turn_name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A turn ready to be shown. ``rounds`` holds the round of each span, its own or the nearest above it."""

    turn: Turn
    attribution: Attribution
    usage: UsageTotals
    issues: tuple[Issue, ...]
    by_id: Mapping[str, SpanTimes]
    rounds: Mapping[str, int | None]


def examine(turn: Turn, attribution: Attribution | None = None, issues: Iterable[Issue] = ()) -> Case:
    """Everything the renderers need to know of ``turn``; its times are attributed here unless given."""
    if attribution is None:
        attribution = attributed(turn)
    by_id = {times.span.span_id: times for times in attribution.spans}
    return Case(
        turn=turn,
        attribution=attribution,
        usage=total(turn.usage, turn.counters.get("model_requests", 0)),
        issues=tuple(issues),
        by_id=by_id,
        rounds=_rounds(by_id),
    )


def _rounds(by_id: Mapping[str, SpanTimes]) -> dict[str, int | None]:
    """The round of each span; every parent link is followed once."""
    known: dict[str, int | None] = {}
    for span_id in by_id:
        chain: list[str] = []
        found: int | None = None
        at: str | None = span_id
        while at is not None and at in by_id:
            found = known[at] if at in known else by_id[at].span.round
            chain.append(at)
            if at in known or found is not None:
                break
            known[at] = None  # an end for the walk, should the parents form a ring
            at = by_id[at].parent_id
        known.update(dict.fromkeys(chain, found))
    return known


def turn_name(turn: Turn) -> str:
    """What a person calls the turn: its agent, else the name of its root, else its id."""
    return turn.agent or turn.root_name or turn.run_id


def name_of(times: SpanTimes) -> Words:
    """What a person calls the span: its tool, its phase, or its own name when it is structure or other."""
    if times.phase == "tool_execution" and times.span.tool:
        return (Data(times.span.tool),)
    if times.phase is None or times.phase == "other":
        return (Data(times.span.name),)
    return phase_name(times.phase)


def phase_name(name: str) -> Words:
    """A phase of the vocabulary as our own word; any other name came with a file."""
    return (name,) if name in PHASES else (Data(name),)


def ran_ns(times: SpanTimes) -> int:
    """How long the span ran, 0 when its end lies before its start."""
    return max(times.span.end_ns - times.span.start_ns, 0)
