"""Makes spans of the log events of coding agents, as far as the events alone can tell.

Each kind of event is a row of ``event_table``. Whether a span is missing at all is decided in
``event_matching``; here nothing is known of the spans that came.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from turntrace.core.event_table import EVENTS, EventRow, Meaning
from turntrace.core.model import RawEvent, RawSpan

__all__ = ["Candidate", "Decision", "Told", "told", "waiting"]

_DURATION: Final = "duration_ms"
_NS_PER_MS: Final = 1_000_000
_MAX_MS: Final = 7 * 86_400_000
"""No call takes longer than a week."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A span that an event tells of. ``source`` is the kind of event: two of a kind are two spans.

    ``fills_only``: it is no span of its own, since its start is unknown.
    """

    span: RawSpan
    phase: str
    dialect: str
    session: str
    source: str
    call: str = ""
    fills_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The moment in which a person approved or refused a tool's call."""

    event: RawEvent
    row: EventRow
    session: str
    call: str


@dataclass(slots=True, kw_only=True)
class Told:
    """What events tell: candidates and decisions in order of time, and when prompts came, by session."""

    candidates: list[Candidate] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    prompts: dict[tuple[str, str], list[int]] = field(default_factory=dict)


def told(events: Iterable[RawEvent]) -> Told:
    """Read ``events`` by the table; those it does not know say nothing, and one that came twice is one."""
    found = Told()
    opened: dict[tuple[str, str], RawEvent] = {}
    distinct = {_identity(event): event for event in events if event.name in EVENTS}
    for _, event in sorted(distinct.items(), key=lambda one: one[0]):
        for row in EVENTS[event.name]:
            if _holds(row, event.attributes):
                _take(row, event, opened, found)
    found.candidates += (_unanswered(event) for event in opened.values())
    return found


def _take(row: EventRow, event: RawEvent, opened: dict[tuple[str, str], RawEvent], found: Told) -> None:
    session = _text(event.attributes.get(row.session))
    key = row.dialect, session
    match row.meaning:
        case Meaning.PROMPT:
            found.prompts.setdefault(key, []).append(event.at_ns)
        case Meaning.DECIDES:
            call = _text(event.attributes.get(row.call))
            found.decisions.append(Decision(event=event, row=row, session=session, call=call))
        case Meaning.OPENS:
            opened.setdefault(key, event)
        case Meaning.CLOSES:
            begun = opened.pop(key, None)
            start_ns = None if begun is None else _start_ns(begun)
            found.candidates.append(_candidate(row, event, start_ns, session))
        case _:
            found.candidates.append(_candidate(row, event, _start_ns(event), session))


def _holds(row: EventRow, attributes: Mapping[str, Any]) -> bool:
    if row.when is None:
        return True
    name, values = row.when
    return name in attributes and (not values or str(attributes[name]) in values)


def _unanswered(event: RawEvent) -> Candidate:
    """A call that was begun and never answered: its last attempt was refused, or the agent was stopped."""
    row = next(row for row in EVENTS[event.name] if row.meaning is Meaning.OPENS)
    closing = next(
        other
        for rows in EVENTS.values()
        for other in rows
        if other.meaning is Meaning.CLOSES and other.dialect == row.dialect
    )
    session = _text(event.attributes.get(row.session))
    return _candidate(closing, event, _start_ns(event), session, has_failed=True)


def waiting(decision: Decision, start_ns: int) -> Candidate:
    """The wait that ended with ``decision``."""
    return _candidate(decision.row, decision.event, start_ns, decision.session)


def _candidate(
    row: EventRow, event: RawEvent, start_ns: int | None, session: str, *, has_failed: bool = False
) -> Candidate:
    has_failed = has_failed or row.fails or _failed(row, event.attributes)
    return Candidate(
        span=RawSpan(
            span_id=_id(event, row),
            trace_id=event.trace_id or _digest(f"{row.dialect} {session}", 16),
            parent_id=event.span_id or None,
            name=row.name,
            start_ns=event.at_ns if start_ns is None else start_ns,
            end_ns=event.at_ns,
            scope=event.scope,
            status="error" if has_failed else "unset",
            attributes=_attributes(row, event.attributes),
            resource=event.resource,
        ),
        phase=row.phase,
        dialect=row.dialect,
        session=session,
        source=f"{row.name} {row.meaning}",
        call=_text(event.attributes.get(row.call)),
        fills_only=start_ns is None,
    )


def _attributes(row: EventRow, attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {row.renamed.get(name, name): value for name, value in attributes.items() if name != _DURATION}


def _failed(row: EventRow, attributes: Mapping[str, Any]) -> bool:
    name, value = row.failed
    return bool(name) and str(attributes.get(name)).lower() == value


def _start_ns(event: RawEvent) -> int | None:
    """When it began, from its duration; None when it does not say how long it took."""
    value = event.attributes.get(_DURATION)
    try:
        duration_ms = float(value) if isinstance(value, str | int | float) else -1.0
    except ValueError:
        return None
    if not 0 <= duration_ms <= _MAX_MS:
        return None
    return max(0, event.at_ns - round(duration_ms * _NS_PER_MS))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _id(event: RawEvent, row: EventRow) -> str:
    """The same event gives the same id, wherever it is read."""
    return _digest(repr((row.meaning, _identity(event))), 8)


def _identity(event: RawEvent) -> tuple[int, str, str, str, str]:
    said = repr(sorted((name, str(value)) for name, value in event.attributes.items()))
    return event.at_ns, event.name, event.trace_id, event.span_id, said


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()
