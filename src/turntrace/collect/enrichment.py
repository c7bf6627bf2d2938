"""Spans with what turntrace knows of them, as messages to be sent on; turn spans carry the whole answer."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from turntrace.collect.gathering import Trace
from turntrace.collect.messages import request_class
from turntrace.collect.request_spans import Origin
from turntrace.core.attributes import METRICS, Scalar
from turntrace.otel.turn_facts import Attributes

__all__ = ["CUT_PREFIX", "enriched_requests"]

_MAX_REQUEST_BYTES: Final = 2 << 20
_MAX_VALUE_BYTES: Final = 64 << 10
CUT_PREFIX: Final = "turntrace.original_length."
"""Before the name of an attribute that was cut: its length before, in characters."""


def enriched_requests(traces: Iterable[Trace], facts: Attributes) -> Iterator[bytes]:
    """Requests of at most about 2 MB with all spans of ``traces``, those of no turn too."""
    request = request_class("traces")()
    size_bytes = 0
    last: tuple[int, int] = (0, 0)
    for origin, attributes in _enriched(traces, facts):
        place = id(origin.resource_spans), id(origin.scope_spans)
        if size_bytes > _MAX_REQUEST_BYTES:
            yield request.SerializeToString()
            request.Clear()
            size_bytes, last = 0, (0, 0)
        if place != last:
            _begin_scope(request, origin)
            last = place
        span = request.resource_spans[-1].scope_spans[-1].spans.add()
        span.CopyFrom(origin.span)
        _cut(span)
        _set(span, attributes)
        size_bytes += span.ByteSize()
    if size_bytes:
        yield request.SerializeToString()


def _enriched(traces: Iterable[Trace], facts: Attributes) -> Iterator[tuple[Origin, Mapping[str, Scalar]]]:
    for trace in traces:
        for span_id, arrived in trace.spans.items():
            if arrived.origin is not None:
                told = facts.get(span_id, {})
                if METRICS in told and _says_who_measures(arrived.origin):
                    told = {name: value for name, value in told.items() if name != METRICS}
                yield arrived.origin, told


def _says_who_measures(origin: Origin) -> bool:
    """Whether the sender is turntrace itself, which knows who makes metrics of its spans."""
    return any(pair.key == METRICS for pair in origin.resource_spans.resource.attributes)


def _begin_scope(request: Any, origin: Origin) -> None:
    resource_spans = request.resource_spans.add(schema_url=origin.resource_spans.schema_url)
    resource_spans.resource.CopyFrom(origin.resource_spans.resource)
    scope_spans = resource_spans.scope_spans.add(schema_url=origin.scope_spans.schema_url)
    scope_spans.scope.CopyFrom(origin.scope_spans.scope)


def _cut(span: Any) -> None:
    """Cut values that would make the request too large for its receiver; the neighbours are to arrive."""
    for holder in (span, *span.events):
        for pair in list(holder.attributes):
            if pair.ByteSize() <= _MAX_VALUE_BYTES:
                continue
            kind = pair.value.WhichOneof("value")
            length = (
                len(getattr(pair.value, kind)) if kind in {"string_value", "bytes_value"} else pair.ByteSize()
            )
            if kind == "string_value":
                pair.value.string_value = pair.value.string_value[: _MAX_VALUE_BYTES // 4]
            else:
                pair.value.string_value = ""
            holder.attributes.add(key=CUT_PREFIX + pair.key).value.int_value = length


def _set(span: Any, attributes: Mapping[str, Scalar]) -> None:
    if not attributes:
        return
    there = {pair.key: pair for pair in span.attributes if pair.key in attributes}
    for name, value in attributes.items():
        pair = there.get(name) or span.attributes.add(key=name)
        if isinstance(value, bool):
            pair.value.bool_value = value
        elif isinstance(value, int):
            pair.value.int_value = value
        elif isinstance(value, float):
            pair.value.double_value = value
        else:
            pair.value.string_value = value
