"""Our own spans: the SDK's, without asking its sampler and its attribute check what is known already.

Half of what the SDK's tracer does for a span below a sampled one finds out what its parent says, and what
the types of our attributes say. Here such a span is made by its constructor; any other, and every one of
an SDK that does not give the same span this way, is made by the tracer.
"""

from functools import cache
from threading import Lock
from time import time_ns
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, Tracer, TracerProvider
from opentelemetry.sdk.trace.sampling import DEFAULT_ON
from opentelemetry.trace import (
    INVALID_SPAN_CONTEXT,
    SpanContext,
    SpanKind,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace import Span as ApiSpan

from turntrace.otel.own_span import LATE, MOST_PLAIN, PLAIN, OwnSpan
from turntrace.otel.sampler import keeps_children

__all__ = ["OwnTracer"]

_SAMPLED: Final = TraceFlags.SAMPLED
_FLAGS: Final = TraceFlags.SAMPLED | getattr(TraceFlags, "RANDOM_TRACE_ID", 0)
"""The flags that a child has from its parent; before SDK 1.42 there was one."""

_STRINGS: Final = frozenset({str})


class OwnTracer:
    """Starts the spans of turn(), phase(), generation() and tool() on a tracer of the application's provider."""

    __slots__ = ("_template", "_tracer")

    def __init__(self, tracer: Any) -> None:
        """``tracer`` of the OpenTelemetry API; what is not the SDK's own is always asked itself."""
        self._tracer = tracer
        is_lean = type(tracer) is Tracer and _can_be_lean(tracer) and _is_known_sdk()
        self._template = _template(tracer) if is_lean else {}

    def start_span(
        self,
        name: str,
        context: Context,
        kind: SpanKind,
        attributes: dict[str, Any],
        start_time: int | None = None,
    ) -> ApiSpan:
        """As the tracer's, which may keep and change ``attributes``; ``start_time`` in epoch ns."""
        parent = get_current_span(context).get_span_context()
        tracer = self._tracer
        if (
            self._template
            and parent.trace_flags & _SAMPLED
            and not parent.is_remote
            and parent.is_valid
            and tracer._is_enabled()  # noqa: SLF001 - providers may have a rule for it
            and PLAIN.issuperset(map(type, attributes.values()))
            and _STRINGS.issuperset(map(type, attributes))
            and "" not in attributes
        ):
            return self._copied(name, context, parent, kind, attributes, start_time)
        started: ApiSpan = tracer.start_span(name, context, kind, attributes, start_time=start_time)
        return started

    def _copied(
        self,
        name: str,
        context: Context,
        parent: SpanContext,
        kind: SpanKind,
        attributes: dict[str, Any],
        start_ns: int | None,
    ) -> OwnSpan:
        tracer, flags = self._tracer, parent.trace_flags
        if flags > _FLAGS:
            flags = TraceFlags(flags & _FLAGS)
        span_id = tracer.id_generator.generate_span_id()
        span = object.__new__(OwnSpan)
        own = span.__dict__ = self._template.copy()
        own["_name"] = name
        own["_context"] = SpanContext(parent.trace_id, span_id, False, flags, parent.trace_state)  # noqa: FBT003 - is_remote
        own["_parent"] = parent
        own["_kind"] = kind
        own["_resource"] = tracer.resource
        own["_start_time"] = time_ns() if start_ns is None else start_ns
        own["_lock"] = Lock()
        own["_plain"] = attributes
        tracer.span_processor.on_start(span, parent_context=context)
        return span


def _template(tracer: Any) -> dict[str, Any]:
    """The fields of a span of ``tracer``, as the SDK fills them, without what no two spans share."""
    span = OwnSpan(
        "",
        INVALID_SPAN_CONTEXT,
        sampler=tracer.sampler,
        resource=tracer.resource,
        instrumentation_info=tracer.instrumentation_info,
        span_processor=tracer.span_processor,
        limits=tracer._span_limits,  # noqa: SLF001 - there is no other way to them
        instrumentation_scope=tracer._instrumentation_scope,  # noqa: SLF001 - as above
    )
    return {name: value for name, value in vars(span).items() if name not in LATE}


def _can_be_lean(tracer: Tracer) -> bool:
    """Whether the tracer's settings leave the SDK nothing to do but to make the span."""
    limits = tracer._span_limits  # noqa: SLF001 - as above
    return (
        keeps_children(tracer.sampler)
        and limits.max_span_attribute_length is None
        and (limits.max_span_attributes is None or limits.max_span_attributes > MOST_PLAIN)
        and type(getattr(tracer, "_tracer_metrics", None)).__name__ == "NoOpTracerMetrics"
    )


@cache
def _is_known_sdk() -> bool:
    """Whether this SDK's tracer and ours give the same span; asked once, of a provider of its own."""
    try:
        return _trial(lean=True) == _trial(lean=False)
    except Exception:  # noqa: BLE001 - an SDK that is made otherwise: its tracer is asked for every span
        return False


class _Kept(SpanProcessor):
    """The last span that ended."""

    span: ReadableSpan

    def on_end(self, span: ReadableSpan) -> None:
        self.span = span


def _trial(*, lean: bool) -> dict[str, object]:
    """What there is to see of a span in the course of its life, ids aside."""
    kept = _Kept()
    provider = TracerProvider(DEFAULT_ON, Resource.get_empty(), shutdown_on_exit=False)
    provider.add_span_processor(kept)
    sdk = provider.get_tracer("turntrace", "1")
    parent = sdk.start_span("parent")
    own = OwnTracer.__new__(OwnTracer)
    own._tracer, own._template = sdk, _template(sdk) if lean else {}  # noqa: SLF001 - made without the question that this answers
    context = set_span_in_context(parent)
    span = own.start_span("child", context, SpanKind.CLIENT, {"a": 1}, start_time=1)
    span.set_attribute("b", "2")
    span.add_event("e", {"c": 3})
    begun = vars(span).keys() | LATE
    span.end(3)
    fields = {name: value for name, value in vars(kept.span).items() if name not in _OWN_FIELDS}
    return {
        **fields,
        "attributes": dict(kept.span.attributes or {}),
        "parent": kept.span.parent == parent.get_span_context(),
        "trace_id": span.get_span_context().trace_id == parent.get_span_context().trace_id,
        "flags": span.get_span_context().trace_flags,
        "events": [event.name for event in kept.span.events],
        "begun": begun - {"_plain"},
    }


_OWN_FIELDS: Final = frozenset({"_context", "_parent", "_attributes", "_events", "_links"})
