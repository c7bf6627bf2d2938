"""Reads Jaeger's JSON: what its pages and its HTTP API give as a download.

Times are whole microseconds there; what OpenTelemetry has and Jaeger has not (scope, status, kind) is in
tags. Source: jaeger's model/json of the query API; OpenTelemetry's mapping of spans to Jaeger.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from turntrace.core.model import RawSpan, SpanStatus
from turntrace.files.documents import Document
from turntrace.files.otlp_values import KINDS, SPAN_ID_BYTES, TRACE_ID_BYTES, id_of, integer, signed, string
from turntrace.files.raw_spans import RawSpans

__all__ = ["JaegerReader", "is_jaeger"]

_NS_PER_US: Final = 1_000
_SCOPES: Final = ("otel.scope.name", "otel.library.name")
_STATUSES: Final[Mapping[object, SpanStatus]] = {"OK": "ok", "ERROR": "error"}


def is_jaeger(value: Mapping[str, Any]) -> bool:
    """Whether a document is an answer of Jaeger's API, or one trace out of it."""
    return any(True for _ in _traces(value))


def _traces(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    data = value.get("data", value)
    for trace in data if isinstance(data, list) else [data]:
        if isinstance(trace, dict) and isinstance(trace.get("spans"), list):
            yield trace


class JaegerReader:
    """Takes the spans out of documents into ``spans``."""

    __slots__ = ("_at", "_spans")

    def __init__(self, spans: RawSpans) -> None:
        self._spans = spans
        self._at: tuple[int, int] = (1, 0)

    def add(self, document: Document) -> None:
        """Add the spans of all traces of a document."""
        self._at = document.line, document.offset
        for trace in _traces(document.value):
            processes = trace.get("processes")
            resources = {
                key: _resource(process)
                for key, process in (processes.items() if isinstance(processes, dict) else ())
            }
            for fields in trace["spans"]:
                if isinstance(fields, dict):
                    self._add_span(fields, resources.get(string(fields.get("processID")), {}))
                else:
                    self._issue("field_type", "spans holds something that is no object")

    def _issue(self, code: str, message: str) -> None:
        self._spans.issue(code, message, *self._at)

    def _add_span(self, fields: Mapping[str, Any], resource: Mapping[str, Any]) -> None:
        trace_id = _padded(fields.get("traceID"), TRACE_ID_BYTES)
        span_id = _padded(fields.get("spanID"), SPAN_ID_BYTES)
        start_ns = integer(fields.get("startTime")) * _NS_PER_US
        if not trace_id or not span_id:
            self._issue("id_invalid", "a span has no valid trace id or span id; it is left out")
            return
        if start_ns <= 0:
            self._issue("timestamp_invalid", f"span {span_id} has no start; it is left out")
            return
        tags = _tags(fields.get("tags"))
        span = RawSpan(
            span_id=span_id,
            trace_id=trace_id,
            parent_id=_parent(fields, trace_id),
            name=string(fields.get("operationName")),
            start_ns=start_ns,
            end_ns=start_ns + max(integer(fields.get("duration")), 0) * _NS_PER_US,
            kind=_kind(tags.pop("span.kind", None)),
            scope=next((string(tags.get(name)) for name in _SCOPES if name in tags), ""),
            status=_STATUSES.get(
                tags.get("otel.status_code"), "error" if tags.get("error") is True else "unset"
            ),
            attributes=tags,
            events=tuple(_logs(fields.get("logs"))),
            resource=resource,
        )
        self._spans.keep(span, *self._at)


def _padded(value: object, size: int) -> str | None:
    """An id; Jaeger leaves out leading zeros."""
    return id_of(value.zfill(2 * size), size) if isinstance(value, str) and value else None


def _parent(fields: Mapping[str, Any], trace_id: str) -> str | None:
    """The span that this one is a child of: the first such reference into its own trace."""
    references = fields.get("references")
    for reference in references if isinstance(references, list) else ():
        if _is_parent(reference, trace_id):
            return _padded(reference.get("spanID"), SPAN_ID_BYTES) or None
    return _padded(fields.get("parentSpanID"), SPAN_ID_BYTES) or None


def _is_parent(reference: object, trace_id: str) -> bool:
    if not isinstance(reference, dict) or reference.get("refType") != "CHILD_OF":
        return False
    return _padded(reference.get("traceID"), TRACE_ID_BYTES) in {trace_id, None}


def _kind(value: object) -> str:
    return value if isinstance(value, str) and value in KINDS else "internal"


def _resource(process: object) -> dict[str, Any]:
    if not isinstance(process, dict):
        return {}
    return {"service.name": string(process.get("serviceName")), **_tags(process.get("tags"))}


def _tags(pairs: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs if isinstance(pairs, list) else ():
        if isinstance(pair, dict) and isinstance(pair.get("key"), str):
            value = _value(pair)
            if value is not None:
                found[pair["key"]] = value
    return found


def _value(pair: Mapping[str, Any]) -> object:
    """A tag's value; integers may come as text, so that a browser keeps their digits."""
    value = pair.get("value")
    if pair.get("type") == "int64" and isinstance(value, str):
        return signed(value)
    return value if isinstance(value, str | bool | int | float) else None


def _logs(logs: object) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    for log in logs if isinstance(logs, list) else ():
        if isinstance(log, dict):
            fields = _tags(log.get("fields"))
            name = string(fields.pop("event", "")) or string(fields.pop("message", ""))
            yield integer(log.get("timestamp")) * _NS_PER_US, name, fields
