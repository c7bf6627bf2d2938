"""Reads logs and metrics of OTLP/JSON: the events and counters of coding agents, and nothing else of them.

Source: OpenTelemetry protocol, JSON encoding; opentelemetry/proto/logs/v1/logs.proto and metrics.proto.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from turntrace.core.event_table import event_name
from turntrace.core.model import RawEvent, RawPoint
from turntrace.core.token_counters import TOKEN_COUNTERS
from turntrace.files.otlp_values import (
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    attributes_of,
    first_of,
    id_of,
    nanoseconds,
    number,
    one_of,
    string,
)

__all__ = ["LOGS", "METRICS", "events_in", "points_in"]

LOGS: Final = ("resourceLogs", "resource_logs")
METRICS: Final = ("resourceMetrics", "resource_metrics")
_TEMPORALITIES: Final = ("unspecified", "delta", "cumulative")

_Objects = Callable[..., Iterator[dict[str, Any]]]
"""The objects under the first of some keys that is there; it hears of what is none."""


def events_in(document: Mapping[str, Any], objects: _Objects) -> Iterator[RawEvent]:
    """The log events of a document that the table of events knows."""
    for resource_logs in objects(document, *LOGS):
        resource = attributes_of(first_of(resource_logs, "resource"))
        for scope_logs in objects(resource_logs, "scopeLogs", "scope_logs"):
            scope = _scope(scope_logs)
            for record in objects(scope_logs, "logRecords", "log_records"):
                event = _event(record, scope, resource)
                if event is not None:
                    yield event


def _scope(holder: Mapping[str, Any]) -> str:
    scope = first_of(holder, "scope", "instrumentationLibrary")
    return string(scope.get("name")) if isinstance(scope, dict) else ""


def _event(record: Mapping[str, Any], scope: str, resource: Mapping[str, Any]) -> RawEvent | None:
    attributes = attributes_of(record)
    body = record.get("body")
    text = first_of(body, "stringValue", "string_value") if isinstance(body, dict) else None
    stated = string(attributes.get("event.name")) or string(first_of(record, "eventName", "event_name"))
    name = event_name(scope, stated, text)
    at_ns = nanoseconds(first_of(record, "timeUnixNano", "time_unix_nano")) or nanoseconds(
        first_of(record, "observedTimeUnixNano", "observed_time_unix_nano")
    )
    if name is None or at_ns is None:
        return None
    return RawEvent(
        name=name,
        at_ns=at_ns,
        trace_id=id_of(first_of(record, "traceId", "trace_id"), TRACE_ID_BYTES) or "",
        span_id=id_of(first_of(record, "spanId", "span_id"), SPAN_ID_BYTES) or "",
        scope=scope,
        attributes=attributes,
        resource=resource,
    )


def points_in(document: Mapping[str, Any], objects: _Objects) -> Iterator[RawPoint]:
    """The points of a document's counters of tokens."""
    for resource_metrics in objects(document, *METRICS):
        resource = attributes_of(first_of(resource_metrics, "resource"))
        for scope_metrics in objects(resource_metrics, "scopeMetrics", "scope_metrics"):
            for metric in objects(scope_metrics, "metrics"):
                total = metric.get("sum")
                if metric.get("name") in TOKEN_COUNTERS and isinstance(total, dict):
                    yield from _points(metric["name"], total, resource, objects)


def _points(
    name: str, total: Mapping[str, Any], resource: Mapping[str, Any], objects: _Objects
) -> Iterator[RawPoint]:
    temporality = first_of(total, "aggregationTemporality", "aggregation_temporality")
    is_delta = one_of(_TEMPORALITIES, temporality, "AGGREGATION_TEMPORALITY_") == "delta"
    for point in objects(total, "dataPoints", "data_points"):
        value = number(first_of(point, "asInt", "as_int", "asDouble", "as_double"))
        at_ns = nanoseconds(first_of(point, "timeUnixNano", "time_unix_nano"))
        if value is not None and at_ns is not None:
            start_ns = nanoseconds(first_of(point, "startTimeUnixNano", "start_time_unix_nano"))
            yield RawPoint(
                name=name,
                value=value,
                start_ns=start_ns or 0,
                at_ns=at_ns,
                is_delta=is_delta,
                attributes=attributes_of(point),
                resource=resource,
            )
