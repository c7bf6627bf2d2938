"""Span and structure lines to spans, with what was written beside them for the checks."""

from dataclasses import dataclass
from typing import Final, NamedTuple, get_args

from turntrace.core.codec.fields import Fields
from turntrace.core.codec.times import MAX_TIME_NS, MIN_TIME_NS
from turntrace.core.model import Outcome, ParentSource, Span, SpanStatus

__all__ = ["TOLERANCE_NS", "SpanLine", "Unplaced", "read_span", "read_span_line"]

TOLERANCE_NS: Final = 2_000
"""Rounding of the file: two microseconds."""

_STATUSES: Final[dict[str, SpanStatus]] = {name: name for name in get_args(SpanStatus)}
_OUTCOMES: Final[dict[str, Outcome]] = {name: name for name in get_args(Outcome)}
_SOURCES: Final[dict[str, ParentSource]] = {name: name for name in get_args(ParentSource)}


class SpanLine(NamedTuple):
    """A span, its id empty where the line has none, with the lengths and the parent's name it states."""

    span: Span
    duration_ns: int
    exclusive_ns: int | None
    parent: str | None
    line: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """A span of which the file tells the length and not the place in the window."""

    name: str
    duration_ns: int
    exclusive_ns: int | None
    parent: str | None
    line: int
    offset: int


def read_span(fields: Fields, span_id: str, phase: str | None, start_ns: int, end_ns: int) -> Span:
    """The span of a ``span`` or ``structure`` line whose id, phase and interval are known."""
    name = fields.text("span_name")
    return Span(
        span_id=span_id,
        parent_id=fields.span_id("parent_id"),
        name=(phase or "") if name is None else name,
        phase=phase,
        start_ns=start_ns,
        end_ns=end_ns,
        parent_source=fields.choice("parent_source", _SOURCES, "otel"),
        status=fields.choice("status", _STATUSES, "unset"),
        outcome=fields.choice("outcome", _OUTCOMES, "ok"),
        round=fields.integer("round"),
        tool=fields.text("tool"),
        model=fields.text("model"),
        agent=fields.text("agent"),
        run_id=fields.text("run_id"),
        attributes=fields.scalars("attributes"),
    )


def read_span_line(fields: Fields, *, phase: bool) -> SpanLine | Unplaced | None:
    """What a line of a block says; None when neither interval nor length is known and it was dropped."""
    name = _phase_name(fields) if phase else None
    duration_ns = _duration_ns(fields) if phase else None
    interval = _interval(fields, duration_ns)
    parent = fields.text("parent") or None
    if interval is None:
        return _unplaced(fields, name, duration_ns, parent)
    start_ns, end_ns = interval
    span_id = fields.span_id("span_id")
    length_ns = end_ns - start_ns if duration_ns is None else duration_ns
    return SpanLine(
        read_span(fields, span_id or "", name, start_ns, end_ns),
        length_ns,
        _exclusive_ns(fields, length_ns),
        parent,
        fields.line,
        fields.offset,
    )


def _phase_name(fields: Fields) -> str:
    name = fields.values.get("name")
    if isinstance(name, str) and name:
        return name
    fields.wrong("name", "the name of a phase")
    return "other"


def _duration_ns(fields: Fields) -> int | None:
    if "duration_ms" in fields.values:
        return fields.milliseconds("duration_ms", "span_duration_invalid")
    fields.issue("span_duration_invalid", "duration_ms is missing")
    return None


def _interval(fields: Fields, duration_ns: int | None) -> tuple[int, int] | None:
    start_ns = fields.instant("start_ns", "start")
    end_ns = fields.instant("end_ns", "end")
    if start_ns is not None and end_ns is not None:
        return start_ns, _checked_end_ns(fields, start_ns, end_ns, duration_ns)
    if duration_ns is not None and start_ns is not None and start_ns + duration_ns <= MAX_TIME_NS:
        return start_ns, start_ns + duration_ns
    if duration_ns is not None and end_ns is not None and end_ns - duration_ns >= MIN_TIME_NS:
        return end_ns - duration_ns, end_ns
    return None


def _checked_end_ns(fields: Fields, start_ns: int, end_ns: int, duration_ns: int | None) -> int:
    if end_ns < start_ns:
        fields.issue("span_end_before_start", "the span ends before it starts; it is taken as empty")
        return start_ns
    if duration_ns is not None and abs(duration_ns - (end_ns - start_ns)) > TOLERANCE_NS:
        fields.issue("span_duration_mismatch", "duration_ms is not the length of the interval, which counts")
    return end_ns


def _unplaced(
    fields: Fields, name: str | None, duration_ns: int | None, parent: str | None
) -> Unplaced | None:
    if name is None:
        fields.issue("span_duration_invalid", "the interval of the structure is unknown")
        return None
    if duration_ns is None:
        return None
    fields.issue("span_interval_missing", "the length of the span is known, its place in the turn is not")
    return Unplaced(
        name=name,
        duration_ns=duration_ns,
        exclusive_ns=_exclusive_ns(fields, duration_ns),
        parent=parent,
        line=fields.line,
        offset=fields.offset,
    )


def _exclusive_ns(fields: Fields, length_ns: int) -> int | None:
    if "exclusive_ms" not in fields.values:
        return None
    exclusive_ns = fields.milliseconds("exclusive_ms", "span_exclusive_invalid")
    if exclusive_ns is None or exclusive_ns <= length_ns + TOLERANCE_NS:
        return exclusive_ns
    fields.issue("span_exclusive_invalid", "exclusive_ms is longer than the span")
    return None
