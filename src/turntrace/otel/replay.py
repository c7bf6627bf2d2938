"""Spans of OTLP messages as spans of the SDK, so that its own exporters can send them on, ids and times kept."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from turntrace.otel.enrich import CopiedSpan

__all__ = ["ReplayedSpan", "replayed"]

_KINDS: Final = dict(enumerate((SpanKind.INTERNAL, *SpanKind)))
"""By the number in the protocol, where 0 is unspecified and internal is 1."""

_STATUSES: Final = dict(enumerate((StatusCode.UNSET, StatusCode.OK, StatusCode.ERROR)))
_FLAGS: Final = 0xFF
_REMOTE: Final = 0x300


class ReplayedSpan(CopiedSpan):
    """A span of a message."""

    def __init__(self, span: Any, resource: Resource, scope: InstrumentationScope) -> None:
        trace_id = int.from_bytes(span.trace_id, "big")
        state = TraceState.from_header([span.trace_state]) if span.trace_state else None
        super().__init__(
            name=span.name,
            context=_context(trace_id, span.span_id, span.flags, state, is_remote=False),
            parent=_parent(span, trace_id),
            resource=resource,
            attributes=_attributes(span.attributes),
            events=[Event(one.name, _attributes(one.attributes), one.time_unix_nano) for one in span.events],
            links=[_link(one) for one in span.links],
            kind=_KINDS.get(span.kind, SpanKind.INTERNAL),
            status=_status(span.status),
            start_time=span.start_time_unix_nano,
            end_time=span.end_time_unix_nano,
            instrumentation_scope=scope,
        )
        self._dropped = (
            span.dropped_attributes_count,
            span.dropped_events_count,
            span.dropped_links_count,
        )


def replayed(resource_spans: Iterable[Any]) -> Iterator[ReplayedSpan]:
    """The spans of messages of type ResourceSpans."""
    for each in resource_spans:
        resource = Resource(_attributes(each.resource.attributes), each.schema_url)
        for inner in each.scope_spans:
            scope = InstrumentationScope(
                inner.scope.name,
                inner.scope.version or None,
                inner.schema_url or None,
                _attributes(inner.scope.attributes),
            )
            for span in inner.spans:
                yield ReplayedSpan(span, resource, scope)


def _parent(span: Any, trace_id: int) -> SpanContext | None:
    if not any(span.parent_span_id):
        return None
    is_remote = span.flags & _REMOTE == _REMOTE
    return _context(trace_id, span.parent_span_id, span.flags, None, is_remote=is_remote)


def _link(link: Any) -> Link:
    state = TraceState.from_header([link.trace_state]) if link.trace_state else None
    is_remote = link.flags & _REMOTE == _REMOTE
    trace_id = int.from_bytes(link.trace_id, "big")
    context = _context(trace_id, link.span_id, link.flags, state, is_remote=is_remote)
    return Link(context, _attributes(link.attributes))


def _context(
    trace_id: int, span_id: bytes, flags: int, state: TraceState | None, *, is_remote: bool
) -> SpanContext:
    number = int.from_bytes(span_id, "big")
    return SpanContext(trace_id, number, is_remote, TraceFlags(flags & _FLAGS), state)


def _status(status: Any) -> Status:
    code = _STATUSES.get(status.code, StatusCode.UNSET)
    return Status(code, (status.message or None) if code is StatusCode.ERROR else None)


def _attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    found = {pair.key: _value(pair.value) for pair in pairs}
    return {name: value for name, value in found.items() if value is not None}


def _value(value: Any) -> Any:
    """Scalars and lists of scalars of one kind as they are, anything deeper as JSON text."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        items = [_value(item) for item in value.array_value.values]
        return items if _is_even(items) else _json(items)
    if kind == "kvlist_value":
        return _json(_attributes(value.kvlist_value.values))
    if kind == "bytes_value":
        return value.bytes_value.hex()
    return None if kind is None else getattr(value, kind)


def _is_even(items: Sequence[Any]) -> bool:
    return len({type(item) for item in items}) <= 1 and not any(
        isinstance(item, list | dict) for item in items
    )


def _json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str).decode("utf-8", "replace")
