"""OTLP requests parsed before they are acknowledged: their items counted, what is out of bounds taken out.

What is kept is what came, byte for byte, unless something had to be taken out of it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from turntrace.collect.counts import Drop
from turntrace.collect.json_bounds import bounded_json
from turntrace.collect.limits import RefusedError
from turntrace.collect.sink import ContentKind, Signal
from turntrace.files.otlp_values import MAX_NS, SPAN_ID_BYTES, TRACE_ID_BYTES

__all__ = ["Checked", "checked", "request_class", "response"]

_NOTHING: Final[Mapping[Drop, int]] = {}
_JSON_REJECTED: Final[Mapping[Signal, str]] = {
    "traces": "rejectedSpans",
    "metrics": "rejectedDataPoints",
    "logs": "rejectedLogRecords",
}
_INVALID: Final = "spans without a valid trace id, span id or start were left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A request that may be stored. ``rejected`` items were left out of it."""

    body: bytes
    items: int
    rejected: int = 0
    dropped: Mapping[Drop, int] = field(default_factory=lambda: _NOTHING)


def request_class(signal: Signal) -> Any:
    """The message class of a signal's requests."""
    if signal == "traces":
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415 - when one comes
            ExportTraceServiceRequest,
        )

        return ExportTraceServiceRequest
    if signal == "metrics":
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415 - as above
            ExportMetricsServiceRequest,
        )

        return ExportMetricsServiceRequest
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (  # noqa: PLC0415 - as above
        ExportLogsServiceRequest,
    )

    return ExportLogsServiceRequest


def checked(signal: Signal, body: bytes, kind: ContentKind, max_attributes: int) -> Checked:
    """Parse ``body`` and take out what is out of bounds.

    Raises:
        RefusedError: with status 400, when it is no request of the signal.
    """
    if kind == "json":
        return _checked_json(signal, body, max_attributes)
    try:
        message = request_class(signal).FromString(body)
    except Exception as error:  # DecodeError, and what a field of the wrong type raises
        raise RefusedError("malformed", 400, f"the body is no protobuf message of {signal}") from error
    if signal != "traces":
        return Checked(body=body, items=sum(_ITEMS[signal](message)))
    return _checked_spans(message, body, max_attributes)


def _checked_spans(message: Any, body: bytes, max_attributes: int) -> Checked:
    items = rejected = 0
    dropped: Counter[Drop] = Counter()
    for resource in message.resource_spans:
        for scope in resource.scope_spans:
            spans = scope.spans
            bad = [number for number, span in enumerate(spans) if not _is_valid(span)]
            for number in reversed(bad):
                del spans[number]
            rejected += len(bad)
            items += len(spans)
            for span in spans:
                extra = len(span.attributes) - max_attributes
                if extra > 0:
                    del span.attributes[max_attributes:]
                    span.dropped_attributes_count = min(span.dropped_attributes_count + extra, 2**32 - 1)
                    dropped["attributes"] += extra
    if not rejected and not dropped:
        return Checked(body=body, items=items)
    if rejected:
        dropped["invalid"] = rejected
    return Checked(body=message.SerializeToString(), items=items, rejected=rejected, dropped=dropped)


def _is_valid(span: Any) -> bool:
    """Whether a reader of the request will take the span."""
    return (
        len(span.trace_id) == TRACE_ID_BYTES
        and len(span.span_id) == SPAN_ID_BYTES
        and 0 < span.start_time_unix_nano <= MAX_NS
    )


def _points(message: Any) -> Iterator[int]:
    for resource in message.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                yield 0 if kind is None else len(getattr(metric, kind).data_points)


def _log_records(message: Any) -> Iterator[int]:
    for resource in message.resource_logs:
        for scope in resource.scope_logs:
            yield len(scope.log_records)


_ITEMS: Final[Mapping[Signal, Callable[[Any], Iterator[int]]]] = {"metrics": _points, "logs": _log_records}


def _checked_json(signal: Signal, body: bytes, max_attributes: int) -> Checked:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RefusedError("malformed", 400, "the body is not JSON") from error
    if not isinstance(document, dict):
        raise RefusedError("malformed", 400, "the body is no JSON object")
    bounded = bounded_json(signal, document, max_attributes)
    if not bounded.dropped:
        return Checked(body=body, items=bounded.items)
    return Checked(
        body=orjson.dumps(document), items=bounded.items, rejected=bounded.rejected, dropped=bounded.dropped
    )


def response(signal: Signal, kind: ContentKind, rejected: int) -> bytes:
    """The body of an answer that says ok; with items that were rejected, how many and why."""
    if kind == "json":
        partial = {_JSON_REJECTED[signal]: str(rejected), "errorMessage": _INVALID}
        return orjson.dumps({"partialSuccess": partial} if rejected else {})
    if not rejected:
        return b""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415 - as above
        ExportTraceServiceResponse,
    )

    answer = ExportTraceServiceResponse()  # the messages of the three signals have the same fields
    answer.partial_success.rejected_spans = rejected
    answer.partial_success.error_message = _INVALID
    encoded: bytes = answer.SerializeToString()
    return encoded
