"""The spans of finished turns as spans of the SDK, so that its own exporters can send them: ids and times kept."""

from collections.abc import Iterator
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from turntrace.core.attributes import (
    AGENT_NAME,
    CONVERSATION_ID,
    LABEL_PREFIX,
    METRICS,
    OPERATION,
    OUTCOME,
    REQUEST_MODEL,
    TOOL_NAME,
    Scalar,
)
from turntrace.core.model import Span, Turn
from turntrace.core.results import Attribution
from turntrace.otel.span_start import OWN_SCOPE
from turntrace.otel.turn_facts import facts_of_turns
from turntrace.version import VERSION

__all__ = ["resource_of", "spans_of_turn"]

_KINDS: Final = {"generation": SpanKind.CLIENT}
"""A file keeps no kinds; other phases are INTERNAL."""

_STATUSES: Final = {"ok": StatusCode.OK, "error": StatusCode.ERROR, "unset": StatusCode.UNSET}
_SCOPE: Final = InstrumentationScope(OWN_SCOPE, VERSION)


def resource_of(service: str, *, is_fresh: bool = False) -> Resource:
    """The resource of recorded spans. Only of those that are ``is_fresh`` the collector makes metrics.

    Of others they were made when the turns ran, or never will be: a turn of last week is no point of today.
    """
    return Resource({"service.name": service, METRICS: "collector" if is_fresh else "process"})


def spans_of_turn(turn: Turn, attribution: Attribution, resource: Resource) -> Iterator[ReadableSpan]:
    """The turn's spans, its root first, with the attributes that a live export gives them.

    A turn without a root, and one whose ids are no OTLP ids (zero's), gives what OTLP can take of it: nothing.
    """
    trace_id = _number(turn.trace_id, 32)
    facts = facts_of_turns([(turn, attribution)])
    for known in facts.values():
        known.pop(METRICS, None)  # the resource says it
    root = _root(turn, attribution)
    for span in (*(() if root is None else (root,)), *(times.span for times in attribution.spans)):
        span_id = _number(span.span_id, 16)
        if not trace_id or not span_id:
            continue
        parent_id = _number(span.parent_id or "", 16)
        yield ReadableSpan(
            name=span.name,
            context=_context(trace_id, span_id),
            parent=_context(trace_id, parent_id) if parent_id else None,
            resource=resource,
            attributes=_attributes(span) | facts.get(span.span_id, {}),
            kind=_KINDS.get(span.phase or "", SpanKind.INTERNAL),
            status=Status(_STATUSES[span.status]),
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=_SCOPE,
        )


def _root(turn: Turn, attribution: Attribution) -> Span | None:
    """The root, which a turn keeps apart from its spans."""
    if turn.span_id is None or turn.started_ns is None:
        return None
    if any(times.span.span_id == turn.span_id for times in attribution.spans):
        return None
    ends = [turn.started_ns, *(span.end_ns for span in turn.spans)]
    attributes: dict[str, Scalar | None] = {
        OPERATION: "invoke_agent",
        AGENT_NAME: turn.agent,
        OUTCOME: "incomplete" if turn.status == "interrupted" else turn.status,
        CONVERSATION_ID: turn.session_id or None,
        **{f"{LABEL_PREFIX}{name}": value for name, value in turn.labels.items()},
    }
    return Span(
        span_id=turn.span_id,
        parent_id=None,
        name=turn.root_name or f"invoke_agent {turn.agent or ''}".rstrip(),
        phase=None,
        start_ns=turn.started_ns,
        end_ns=max(ends) if turn.completed_ns is None else turn.completed_ns,
        status="error" if turn.status == "error" else "unset",
        attributes={name: value for name, value in attributes.items() if value is not None},
    )


def _attributes(span: Span) -> dict[str, Scalar]:
    """What the span's record knows besides its attributes."""
    known: dict[str, Scalar] = {}
    if span.tool is not None:
        known[TOOL_NAME] = span.tool
    if span.model is not None:
        known[REQUEST_MODEL] = span.model
    if span.agent is not None:
        known[AGENT_NAME] = span.agent
    return known | dict(span.attributes)


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _number(text: str, digits: int) -> int:
    """The id as a number; 0 for what is no id of OTLP."""
    try:
        return int(text, 16) if len(text) == digits else 0
    except ValueError:
        return 0
