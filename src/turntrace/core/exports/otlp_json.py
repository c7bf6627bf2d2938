"""Turns as OTLP/JSON: what a collector takes, and what turntrace reads back as the same turn.

Source: OpenTelemetry protocol, JSON encoding (ids in hex, 64-bit integers as strings, enums as numbers).
Attributes are those that turntrace's own spans carry; a model call's tokens stand on its span.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from turntrace.core import attributes as names
from turntrace.core.attributes import Scalar
from turntrace.core.model import Span, Turn, Usage
from turntrace.core.results import Attribution, SpanTimes

__all__ = ["otlp_request"]

Json = dict[str, Any]

_SCOPE: Final = "turntrace"
_INTERNAL: Final = 1
_CLIENT: Final = 3
_STATUSES: Final = {"unset": 0, "ok": 1, "error": 2}
_SPAN_DIGITS: Final = 16
_TRACE_DIGITS: Final = 32
_TOKENS: Final = {
    "input_tokens": names.INPUT_TOKENS,
    "cached_input_tokens": names.CACHE_READ_TOKENS,
    "cache_write_tokens": names.CACHE_WRITE_TOKENS,
    "output_tokens": names.OUTPUT_TOKENS,
    "reasoning_tokens": names.REASONING_TOKENS,
}
_TOKEN_PREFIXES: Final = ("gen_ai.usage.", names.AGGREGATED_PREFIX)
_MOMENTS: Final = {
    "first_chunk": (names.TIME_TO_FIRST_CHUNK, 1_000_000_000),
    "first_token": (names.FIRST_TOKEN_MS, 1_000_000),
    "first_visible": (names.FIRST_VISIBLE_MS, 1_000_000),
}
_STRUCTURE: Final = "agent_step"
_AGENT: Final = "invoke_agent"


def otlp_request(turn: Turn, attribution: Attribution, version: str) -> Json:
    """One ExportTraceServiceRequest with the turn's spans, its root first.

    Of a turn that has no end the root is left out, as its process never sent it: it is read as
    interrupted. Ids that are none of OTLP's are replaced by ones made from them.
    """
    usage = {one.span_id: one for one in turn.usage}
    trace_id = _id(turn.trace_id, _TRACE_DIGITS, turn.run_id)
    marks = _moments(turn)
    spans = [] if turn.completed_ns is None or turn.started_ns is None else [_root(turn, trace_id)]
    spans += [
        _span(times, trace_id, turn, usage.get(times.span.span_id), marks.get(times.span.span_id, {}))
        for times in attribution.spans
    ]
    return {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": _attributes(
                        {"service.name": turn.agent or "turntrace", names.METRICS: "process"}
                    )
                },
                "scopeSpans": [{"scope": {"name": _SCOPE, "version": version}, "spans": spans}],
            }
        ]
    }


def _root(turn: Turn, trace_id: str) -> Json:
    known: dict[str, Scalar | None] = {
        names.PHASE: "turn",
        names.OPERATION: _AGENT,
        names.AGENT_NAME: turn.agent,
        names.CONVERSATION_ID: turn.session_id or None,
        names.RUN_ID: turn.run_id,
        names.OUTCOME: "incomplete" if turn.status == "interrupted" else turn.status,
        f"{names.TURN_PREFIX}status": turn.status,
        **{f"{names.LABEL_PREFIX}{name}": value for name, value in turn.labels.items()},
    }
    started_ns, completed_ns = turn.started_ns or 0, turn.completed_ns or 0
    return {
        "traceId": trace_id,
        "spanId": _root_id(turn),
        "name": turn.root_name or _AGENT,
        "kind": _INTERNAL,
        "startTimeUnixNano": str(started_ns),
        "endTimeUnixNano": str(max(started_ns, completed_ns)),
        "status": {"code": _STATUSES["error" if turn.status == "error" else "unset"]},
        "attributes": _attributes(known),
    }


def _root_id(turn: Turn) -> str:
    return _id(turn.span_id or "", _SPAN_DIGITS, turn.run_id)


def _span(
    times: SpanTimes, trace_id: str, turn: Turn, usage: Usage | None, moments: Mapping[str, float]
) -> Json:
    span = times.span
    parent_id = _root_id(turn) if times.parent_id in {None, turn.span_id} else _id(times.parent_id or "", 16)
    return {
        "traceId": trace_id,
        "spanId": _id(span.span_id, _SPAN_DIGITS),
        "parentSpanId": parent_id,
        "name": span.name,
        "kind": _CLIENT if times.phase == "generation" else _INTERNAL,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(max(span.start_ns, span.end_ns)),
        "status": {"code": _STATUSES[span.status]},
        "attributes": _attributes(
            {**_kept(span), **_known(span, times.phase), **_used(usage, turn.provider), **moments}
        ),
    }


def _known(span: Span, phase: str | None) -> dict[str, Scalar]:
    """What the record knows of a span besides its attributes."""
    found: dict[str, Scalar | None] = {
        names.OUTCOME: span.outcome,
        names.ROUND: span.round,
        names.TOOL_NAME: span.tool,
        names.REQUEST_MODEL: span.model,
        names.RUN_ID: span.run_id,
    }
    if phase is not None:
        found[names.PHASE] = phase
    elif span.run_id is not None:
        found |= {names.PHASE: "turn", names.AGENT_NAME: span.agent}
    elif span.agent is not None:
        found |= {names.OPERATION: _AGENT, names.AGENT_NAME: span.agent}
    else:
        found[names.OPERATION] = _STRUCTURE
    return {name: value for name, value in found.items() if value is not None}


def _kept(span: Span) -> dict[str, Scalar]:
    """The span's attributes without tokens: what counts of those is told by the turn's usage."""
    return {name: value for name, value in span.attributes.items() if not name.startswith(_TOKEN_PREFIXES)}


def _used(usage: Usage | None, provider: str | None) -> dict[str, int | str]:
    """The tokens of a call under the names of the GenAI conventions; unknown ones are left out."""
    if usage is None:
        return {}
    provider = usage.provider or provider
    found: dict[str, int | str] = {} if provider is None else {names.PROVIDER: provider}
    if usage.provenance == "missing":
        return found
    for field, name in _TOKENS.items():
        tokens: int | None = getattr(usage, field)
        if tokens is not None:
            found[name] = tokens
    return found


def _moments(turn: Turn) -> dict[str, dict[str, float]]:
    """First moments as offsets from their spans' starts, by span id."""
    spans = {span.span_id: span for span in turn.spans}
    calls = [span for span in turn.spans if span.phase == "generation"]
    found: dict[str, dict[str, float]] = {}
    for mark in turn.marks:
        around = (call for call in calls if call.start_ns <= mark.at_ns <= call.end_ns)
        span = spans.get(mark.span_id or "") or next(around, None)
        if mark.name in _MOMENTS and span is not None:
            name, unit_ns = _MOMENTS[mark.name]
            found.setdefault(span.span_id, {}).setdefault(name, (mark.at_ns - span.start_ns) / unit_ns)
    return found


def _attributes(known: Mapping[str, Scalar | None]) -> list[Json]:
    return [{"key": name, "value": _value(value)} for name, value in known.items() if value is not None]


def _value(value: Scalar) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case _:
            return {"stringValue": value}


def _id(text: str, digits: int, otherwise: str = "") -> str:
    """``text`` where it is an id of OTLP, else one made from it or from ``otherwise``."""
    if len(text) == digits and text.strip("0123456789abcdef") == "" and text.strip("0"):
        return text
    return sha256((text or otherwise).encode("utf-8", "replace")).hexdigest()[:digits]
