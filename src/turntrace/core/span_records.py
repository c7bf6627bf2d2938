"""One raw span as a span of a turn: shared by the live processor and by assembly."""

from dataclasses import dataclass
from typing import Final, get_args

from turntrace.core import attributes as names
from turntrace.core.attributes import content_free
from turntrace.core.dialect_model import Role, Verdict
from turntrace.core.dialects import Description, describe, has_failed
from turntrace.core.model import Outcome, ParentSource, RawSpan, Span

__all__ = ["Place", "outcome_of", "placed", "span_from_raw"]

_OUTCOMES: Final[dict[str, Outcome]] = {outcome: outcome for outcome in get_args(Outcome)}
_CANCELLATIONS: Final = frozenset({"CancelledError", "KeyboardInterrupt", "SystemExit"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a span stands in its turn: what its neighbours decide."""

    phase: str | None
    parent_id: str | None
    parent_source: ParentSource = "otel"
    round: int | None = None
    run_id: str | None = None


def span_from_raw(raw: RawSpan, verdict: Verdict) -> Span:
    """Make the span of a turn from a raw one, as far as it alone can tell.

    A leaf is `other`; its children, if it gets any, make it structure. An end before the start counts
    as the start.

    >>> from turntrace.core.dialects import classify
    >>> raw = RawSpan(span_id="01", trace_id="02", parent_id=None, name="x", start_ns=5, end_ns=3)
    >>> span = span_from_raw(raw, classify("", "x", "internal", {}))
    >>> span.phase, span.start_ns, span.end_ns
    ('other', 5, 5)
    """
    facts = describe(verdict, raw.name, raw.attributes)
    phase = "other" if verdict.role is Role.LEAF else verdict.phase
    return placed(raw, verdict, facts, Place(phase=phase, parent_id=raw.parent_id, round=facts.round))


def placed(raw: RawSpan, verdict: Verdict, facts: Description, place: Place) -> Span:
    """The span at its place in the turn. An agent or a nested turn carries its name."""
    is_run = verdict.role in (Role.AGENT, Role.TURN)
    return Span(
        span_id=raw.span_id,
        parent_id=place.parent_id,
        name=raw.name,
        phase=place.phase,
        start_ns=raw.start_ns,
        end_ns=max(raw.start_ns, raw.end_ns),
        parent_source=place.parent_source,
        status=raw.status,
        outcome=outcome_of(raw, verdict),
        round=place.round,
        tool=facts.tool,
        model=facts.model,
        agent=(facts.agent or raw.name) if is_run else None,
        run_id=place.run_id,
        attributes=content_free(raw.attributes),
    )


def outcome_of(raw: RawSpan, verdict: Verdict) -> Outcome:
    """How a span ended: what it says itself, else its status and the class of its error."""
    stated = _OUTCOMES.get(str(raw.attributes.get(names.OUTCOME)))
    if stated is not None:
        return stated
    if not has_failed(verdict, raw.status, (name for _, name, _ in raw.events)):
        return "ok"
    return "cancelled" if _error_type(raw).rpartition(".")[2] in _CANCELLATIONS else "error"


def _error_type(raw: RawSpan) -> str:
    """The class of the error, from the attribute or from the last exception event."""
    stated = raw.attributes.get(names.ERROR_TYPE)
    if stated is not None:
        return str(stated)
    types = [fields.get("exception.type") for _, name, fields in raw.events if name == "exception"]
    return str(types[-1]) if types else ""
