"""A turn and its attribution to a block: one complete contract trace, as lines of bytes."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

from turntrace.core.attributes import Scalar
from turntrace.core.codec.event_fields import EVENT_FIELDS
from turntrace.core.codec.json_line import json_line
from turntrace.core.codec.times import format_time, ms, thousandths
from turntrace.core.contract import SCHEMA_VERSION
from turntrace.core.model import Event, Mark, Span, Turn, Usage, Warn
from turntrace.core.results import Attribution, Gap, SpanTimes
from turntrace.core.usage import TOKEN_FIELDS, UsageTotals, total

__all__ = [
    "counters_of",
    "encode_block",
    "event_fields",
    "measured_fields",
    "span_details",
    "turn_fields",
    "usage_fields",
    "usage_totals",
    "warning_fields",
]

_ALWAYS: Final = {"model_requests": 0, "tool_calls": 0}


def encode_block(turn: Turn, attribution: Attribution) -> list[bytes]:
    """The lines of the turn's block in the order of the contract, each with its LF; the header counts them.

    ``attribution`` is that of ``turn.spans``. A span that ends before it starts is written as empty.
    """
    body = [json_line(fields) for fields in _body(turn, attribution)]
    header = {
        **turn_fields(turn),
        **measured_fields(attribution),
        **_usage_header(usage_totals(turn)),
        "completed_at": format_time(_end_ns(turn)),
        "status": turn.status,
        "lines": len(body),
    }
    return [json_line(header), *body]


def turn_fields(turn: Turn) -> dict[str, Any]:
    """The fields of a header that are known before the turn has ended."""
    return {
        "type": "trace",
        "name": "run",
        "schema_version": SCHEMA_VERSION,
        "session_id": turn.session_id,
        "run_id": turn.run_id,
        "profile": turn.profile,
        "started_at": format_time(turn.started_ns),
        "first_chunk_at": format_time(turn.first_chunk_ns),
        "first_token_at": format_time(turn.first_token_ns),
        "first_useful_at": format_time(turn.first_useful_ns),
        "first_visible_at": format_time(turn.first_visible_ns),
        "trace_id": turn.trace_id,
        "span_id": turn.span_id,
        "span_name": turn.root_name,
        "parent_run_id": turn.parent_run_id,
        "turn_source": turn.turn_source,
        "agent": turn.agent,
        "model": turn.model,
        "provider": turn.provider,
        "labels": dict(turn.labels),
        "rounds": turn.rounds,
        "sampled": turn.sampled,
        "dropped": turn.dropped,
        "source": turn.source,
    }


def measured_fields(attribution: Attribution) -> dict[str, int | float | None]:
    """The numbers of a header that follow from its spans; null without a window."""
    wall_ns, attributed_ns = attribution.wall_ns, attribution.attributed_ns
    coverage = None
    if wall_ns is not None and attributed_ns is not None:
        coverage = thousandths(attributed_ns, wall_ns) if wall_ns else 0
    return {
        "wall_ms": _ms(wall_ns),
        "attributed_ms": _ms(attributed_ns),
        "coverage": coverage,
        "attribution": coverage,
        "active_ms": _ms(attribution.active_ns),
        "unattributed_ms": _ms(attribution.unattributed_ns),
        "busy_ms": ms(attribution.busy_ns),
        "critical_path_ms": _ms(attribution.critical_path_ns),
    }


def usage_totals(turn: Turn) -> UsageTotals:
    """What the model calls of the turn consumed together."""
    return total(turn.usage, turn.counters.get("model_requests"))


def counters_of(turn: Turn, totals: UsageTotals) -> dict[str, int]:
    """The counters of the turn's block: tokens only where every model call reported them."""
    counters = {**_ALWAYS, **turn.counters}
    if turn.usage:
        for name in TOKEN_FIELDS:
            counters.pop(name, None)
            tokens: int | None = getattr(totals, name)
            if tokens is not None:
                counters[name] = tokens
    return counters


def span_details(span: Span) -> dict[str, Any]:
    """What a span's lines say of it beside its name, ids and times; nothing that is not known."""
    details: dict[str, Any] = {
        "round": span.round,
        "tool": span.tool,
        "model": span.model,
        "agent": span.agent,
        "run_id": span.run_id,
        "attributes": _finite(span.attributes) or None,
        "parent_source": None if span.parent_source == "otel" else span.parent_source,
    }
    return {key: value for key, value in details.items() if value is not None}


def usage_fields(usage: Usage) -> dict[str, Any]:
    """The fields of a ``usage`` line."""
    return {
        "type": "usage",
        "span_id": usage.span_id,
        "model": usage.model,
        "provider": usage.provider,
        "provenance": usage.provenance,
        **{name: getattr(usage, name) for name in TOKEN_FIELDS},
        "raw": dict(usage.raw),
    }


def event_fields(event: Event) -> dict[str, Any]:
    """The fields of a ``prefix_hash``, ``output_budget`` or ``task_state`` line."""
    return {**event.fields, "type": event.type}


def warning_fields(warn: Warn) -> dict[str, Any]:
    """The fields of a ``warning`` line."""
    return {"type": "warning", "code": warn.code, "message": warn.message, "span_ids": list(warn.span_ids)}


def _end_ns(turn: Turn) -> int | None:
    """The end of the window; one that ends before it starts is empty, as in its attribution."""
    if turn.started_ns is None or turn.completed_ns is None:
        return turn.completed_ns
    return max(turn.started_ns, turn.completed_ns)


def _usage_header(totals: UsageTotals) -> dict[str, Any]:
    return {
        "usage_complete": totals.complete,
        "usage_reports": totals.reports,
        "usage_missing": totals.missing,
    }


def _body(turn: Turn, attribution: Attribution) -> Iterator[dict[str, Any]]:
    phases = {times.span.span_id: times.phase for times in attribution.spans if times.phase is not None}
    phase_spans = [times for times in attribution.spans if times.phase is not None]
    for times in sorted(phase_spans, key=_by_name):
        yield _span_fields(times, phases, turn.span_id)
    for name, value in sorted(counters_of(turn, usage_totals(turn)).items()):
        yield {"type": "counter", "name": name, "value": value}
    for kind in EVENT_FIELDS:
        yield from (event_fields(event) for event in turn.events if event.type == kind)
    yield from map(usage_fields, _sorted_usage(turn, attribution))
    yield from map(_mark_fields, sorted(turn.marks, key=_by_time))
    yield from map(_gap_fields, attribution.gaps)
    yield from (_structure_fields(times) for times in attribution.spans if times.phase is None)
    warnings = dict.fromkeys((*turn.warnings, *attribution.warnings))
    yield from map(warning_fields, sorted(warnings, key=_by_code))


def _sorted_usage(turn: Turn, attribution: Attribution) -> list[Usage]:
    starts = {times.span.span_id: times.span.start_ns for times in attribution.spans}
    return sorted(turn.usage, key=lambda usage: (starts.get(usage.span_id, 0), usage.span_id))


def _by_time(mark: Mark) -> tuple[int, str, str]:
    return mark.at_ns, mark.name, mark.span_id or ""


def _by_code(warn: Warn) -> tuple[str, tuple[str, ...], str]:
    return warn.code, warn.span_ids, warn.message


def _by_name(times: SpanTimes) -> tuple[str, int, str]:
    return times.phase or "", times.span.start_ns, times.span.span_id


def _span_fields(times: SpanTimes, phases: Mapping[str, str], turn_id: str | None) -> dict[str, Any]:
    span = times.span
    fields = _interval_fields(times)
    fields["type"] = "span"
    fields["name"] = times.phase
    fields["duration_ms"] = ms(max(span.end_ns - span.start_ns, 0))
    fields["status"] = span.status
    fields["outcome"] = span.outcome
    fields["wall_share_ms"] = _ms(times.wall_share_ns)
    fields["critical_ms"] = _ms(times.critical_ns)
    if turn_id is not None:
        fields["turn_id"] = turn_id
    if times.phase_parent_id is not None:
        fields["parent"] = phases[times.phase_parent_id]
    if times.detached:
        fields["detached"] = True
    return fields


def _structure_fields(times: SpanTimes) -> dict[str, Any]:
    fields = _interval_fields(times)
    fields["type"] = "structure"
    if times.span.status != "unset":
        fields["status"] = times.span.status
    if times.span.outcome != "ok":
        fields["outcome"] = times.span.outcome
    return fields


def _interval_fields(times: SpanTimes) -> dict[str, Any]:
    span = times.span
    fields = span_details(span)
    end_ns = max(span.start_ns, span.end_ns)
    fields["span_id"] = span.span_id
    if span.parent_id is not None:
        fields["parent_id"] = span.parent_id
    fields["span_name"] = span.name
    fields["start"] = format_time(span.start_ns)
    fields["end"] = format_time(end_ns)
    fields["start_ns"] = span.start_ns
    fields["end_ns"] = end_ns
    fields["exclusive_ms"] = ms(times.exclusive_ns)
    return fields


def _mark_fields(mark: Mark) -> dict[str, Any]:
    return {"type": "mark", "name": mark.name, "at": format_time(mark.at_ns), "span_id": mark.span_id}


def _gap_fields(gap: Gap) -> dict[str, Any]:
    return {
        "type": "gap",
        "start": format_time(gap.start_ns),
        "end": format_time(gap.end_ns),
        "duration_ms": ms(gap.end_ns - gap.start_ns),
        "after": gap.after,
        "before": gap.before,
    }


def _ms(duration_ns: int | None) -> int | float | None:
    return None if duration_ns is None else ms(duration_ns)


def _finite(attributes: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Without NaN and infinity, which JSON cannot hold."""
    return {
        name: value for name, value in attributes.items() if not isinstance(value, float) or isfinite(value)
    }
