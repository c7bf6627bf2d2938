"""Reads logs and metrics of OTLP/protobuf: the events and counters of coding agents, and nothing else of them.

Source: opentelemetry/proto/logs/v1/logs.proto and metrics.proto.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from turntrace.core.event_table import event_name
from turntrace.core.model import RawEvent, RawPoint
from turntrace.core.token_counters import TOKEN_COUNTERS
from turntrace.files.otlp_values import MAX_NS, SPAN_ID_BYTES, TRACE_ID_BYTES, number
from turntrace.files.proto_wire import fields

__all__ = ["event_of", "points_of", "signal_of"]

_FIXED64, _VARINT, _LENGTH = 1, 0, 2
_DELTA: Final = 1


def signal_of(item: bytes) -> Literal["span", "log", "metric"]:
    """What an item of a scope is: a span, a record of a log or a metric, by the fields that only one has.

    A span has its start (7) and its kind (6), a record its time (1), the time it was seen (11) or its
    severity (2), as numbers; a metric has no field of that kind.
    """
    has_trace_id = is_gauge = False
    for field, wire, size in fields(item):
        if (field, wire) in {(1, _FIXED64), (11, _FIXED64), (2, _VARINT)}:
            return "log"
        if (field, wire) in {(7, _FIXED64), (6, _VARINT)} or (has_trace_id and (field, size) == _SPAN_ID):
            return "span"
        if wire == _LENGTH and field in _METRIC_DATA:
            return "metric"
        is_gauge = is_gauge or (field, wire) == _GAUGE
        has_trace_id = (field, wire, size) == (1, _LENGTH, TRACE_ID_BYTES)
    return "metric" if is_gauge else "span"


_SPAN_ID: Final = (2, SPAN_ID_BYTES)
_METRIC_DATA: Final = frozenset({7, 9, 10, 11})
_GAUGE: Final = (5, _LENGTH)
"""Or the name of a span, of which more follows."""


def event_of(
    record: Any, attributes: Mapping[str, Any], scope: str, resource: Mapping[str, Any]
) -> RawEvent | None:
    """An event that the table of events knows; None for any other record."""
    stated = str(attributes.get("event.name") or getattr(record, "event_name", ""))
    name = event_name(scope, stated, record.body.string_value)
    at_ns = record.time_unix_nano or record.observed_time_unix_nano
    if name is None or not 0 < at_ns <= MAX_NS:
        return None
    return RawEvent(
        name=name,
        at_ns=at_ns,
        trace_id=_id(record.trace_id, TRACE_ID_BYTES),
        span_id=_id(record.span_id, SPAN_ID_BYTES),
        scope=scope,
        attributes=attributes,
        resource=resource,
    )


def _id(raw: bytes, size: int) -> str:
    return raw.hex() if len(raw) == size and any(raw) else ""


def points_of(
    metric: Any, scalars: Callable[[Any], dict[str, Any]], resource: Mapping[str, Any]
) -> Iterator[RawPoint]:
    """The points of a counter of tokens, whose attributes ``scalars`` reads; none of any other metric."""
    if metric.name not in TOKEN_COUNTERS:
        return
    for point in metric.sum.data_points:
        value = number(point.as_double if point.WhichOneof("value") == "as_double" else point.as_int)
        if value is not None and 0 < point.time_unix_nano <= MAX_NS:
            yield RawPoint(
                name=metric.name,
                value=value,
                start_ns=point.start_time_unix_nano,
                at_ns=point.time_unix_nano,
                is_delta=metric.sum.aggregation_temporality == _DELTA,
                attributes=scalars(point.attributes),
                resource=resource,
            )
