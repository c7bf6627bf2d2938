"""Reads OTLP/JSON: one document, or lines as the file exporter and the collector write them.

Damage costs what it hits and nothing more: a bad line, a span with a bad id. Each loss is an issue.
Source: OpenTelemetry protocol, JSON encoding; opentelemetry/proto/trace/v1/trace.proto.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from turntrace.core.model import RawSpan
from turntrace.files.documents import Document
from turntrace.files.otlp_json_signals import LOGS, METRICS, events_in, points_in
from turntrace.files.otlp_values import (
    KINDS,
    REMOTE,
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    attributes_of,
    events_of,
    first_of,
    id_of,
    integer,
    nanoseconds,
    one_of,
    status_of,
    string,
)
from turntrace.files.raw_spans import RawSpans

__all__ = ["OtlpReader"]

_TRACES: Final = ("resourceSpans", "resource_spans", "batches")
_SIGNALS: Final = frozenset({*_TRACES, *LOGS, *METRICS})
_WRAPPERS: Final = ("trace", "result")
"""Under these a trace store's own answers hold what OTLP has at the top."""


class OtlpReader:
    """Takes the spans out of documents into ``spans``, and what is read of logs and metrics."""

    __slots__ = ("_at", "_spans")

    def __init__(self, spans: RawSpans) -> None:
        self._spans = spans
        self._at: tuple[int, int] = (1, 0)

    def add(self, document: Document) -> None:
        """Add the spans of one request or one file record."""
        self._at = document.line, document.offset
        value = document.value
        for wrapper in _WRAPPERS:
            inner = value.get(wrapper)
            if isinstance(inner, dict) and not value.keys() & set(_TRACES):
                value = inner
        self._add_spans(value)
        for event in events_in(value, self._list):
            self._spans.keep_event(event, *self._at)
        for point in points_in(value, self._list):
            self._spans.keep_point(point, *self._at)
        if not value.keys() & _SIGNALS:
            self._issue("unknown_type", "the record holds nothing known")

    def _add_spans(self, value: Mapping[str, Any]) -> None:
        for resource_spans in self._list(value, *_TRACES):
            resource = attributes_of(first_of(resource_spans, "resource"))
            for scope_spans in self._list(
                resource_spans, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"
            ):
                scope = first_of(scope_spans, "scope", "instrumentationLibrary")
                name = string(scope.get("name")) if isinstance(scope, dict) else ""
                for span in self._list(scope_spans, "spans"):
                    self._add_span(span, resource, name)

    def _issue(self, code: str, message: str) -> None:
        self._spans.issue(code, message, *self._at)

    def _list(self, holder: Mapping[str, Any], *keys: str) -> Iterator[dict[str, Any]]:
        value = first_of(holder, *keys)
        if value is None:
            return
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                yield item
            else:
                self._issue("field_type", f"{keys[0]} holds something that is no object")

    def _add_span(self, fields: dict[str, Any], resource: Mapping[str, Any], scope: str) -> None:
        trace_id = id_of(first_of(fields, "traceId", "trace_id"), TRACE_ID_BYTES)
        span_id = id_of(first_of(fields, "spanId", "span_id"), SPAN_ID_BYTES)
        start_ns = nanoseconds(first_of(fields, "startTimeUnixNano", "start_time_unix_nano"))
        if not trace_id or not span_id:
            self._issue("id_invalid", "a span has no valid trace id or span id; it is left out")
            return
        if start_ns is None:
            self._issue("timestamp_invalid", f"span {span_id} has no start; it is left out")
            return
        end_ns = nanoseconds(first_of(fields, "endTimeUnixNano", "end_time_unix_nano"))
        self._check_end(span_id, start_ns, end_ns)
        parent_id = id_of(first_of(fields, "parentSpanId", "parent_span_id"), SPAN_ID_BYTES)
        if parent_id == "":
            self._issue("id_invalid", f"span {span_id} has an invalid parent id; it is read as a root")
        span = RawSpan(
            span_id=span_id,
            trace_id=trace_id,
            parent_id=parent_id or None,
            name=string(fields.get("name")),
            start_ns=start_ns,
            end_ns=start_ns if end_ns is None else end_ns,
            kind=one_of(KINDS, fields.get("kind"), "SPAN_KIND_"),
            scope=scope,
            status=status_of(fields.get("status")),
            attributes=attributes_of(fields),
            events=tuple(events_of(fields)),
            resource=resource,
            remote_parent=integer(fields.get("flags")) & REMOTE == REMOTE,
        )
        self._spans.keep(span, *self._at)

    def _check_end(self, span_id: str, start_ns: int, end_ns: int | None) -> None:
        if end_ns is None:
            self._issue("timestamp_invalid", f"span {span_id} has no end; its start is taken")
        elif end_ns < start_ns:
            self._issue("span_end_before_start", f"span {span_id} ends before it starts")
