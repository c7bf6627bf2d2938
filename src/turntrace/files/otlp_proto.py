"""Reads OTLP/protobuf files: one message, messages with their length before them, compressed or not.

A message is walked field by field, so that one that is cut or torn is read up to the damage. Source:
Protocol Buffers, encoding; opentelemetry/proto/trace/v1/trace.proto; the collector's file exporter, which
writes four bytes of length (big endian) before each message.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from turntrace.core.model import RawSpan
from turntrace.files.documents import MAX_DOCUMENT_BYTES
from turntrace.files.otlp_proto_signals import event_of, points_of, signal_of
from turntrace.files.otlp_values import (
    KINDS,
    MAX_NS,
    REMOTE,
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    one_of,
    status_of,
)
from turntrace.files.proto_wire import DamagedError, parts, varint
from turntrace.files.raw_spans import RawSpans

__all__ = ["frames", "is_framed", "raw_span", "read_message", "scalars"]

_LENGTH_BYTES: Final = 4
_RESOURCE_SPANS: Final = 1
_RESOURCE: Final = 1
_SCOPE_SPANS: Final = 2
_SCOPE: Final = 1
_SPANS: Final = 2
_FIRST_TAG: Final = 0x0A
"""The first byte of every message of resource spans: field 1, of a length."""

_SCALARS: Final = frozenset({"string_value", "bool_value", "int_value", "double_value"})


def is_framed(head: bytes, magic: bytes) -> bool:
    """Whether ``head`` starts with the length of a message that starts with ``magic``, or with its tag."""
    if head[:1] == bytes([_FIRST_TAG]):
        return False  # a message itself: a first one of 160 MiB would start so too, and nobody sends one
    length = int.from_bytes(head[:_LENGTH_BYTES], "big")
    rest = head[_LENGTH_BYTES:]
    return 0 < length <= MAX_DOCUMENT_BYTES and (rest.startswith(magic) or rest[:1] == bytes([_FIRST_TAG]))


def frames(file: BinaryIO, spans: RawSpans) -> Iterator[tuple[bytes, int]]:
    """Each message of a file of messages with their lengths, and its offset in bytes."""
    offset = 0
    while head := file.read(_LENGTH_BYTES):
        length = int.from_bytes(head, "big")
        message = file.read(length) if length <= MAX_DOCUMENT_BYTES else b""
        if len(head) < _LENGTH_BYTES or len(message) < length:
            spans.issue("truncated_tail", "the last message is cut, or its length is wrong", None, offset)
        yield message, offset + _LENGTH_BYTES
        offset += _LENGTH_BYTES + len(message)


def read_message(message: bytes, offset: int, spans: RawSpans) -> None:
    """Add the spans of one message, or of messages with varint lengths before them, to ``spans``."""
    try:
        if message[:1] != bytes([_FIRST_TAG]):
            message = _without_lengths(message)
        for number, part in parts(message, may_be_cut=True):
            if number == _RESOURCE_SPANS:
                _read_resource(part, offset, spans)
    except DamagedError as error:
        spans.issue("truncated_tail", f"{error}; the spans before the damage are read", None, offset)


def _without_lengths(message: bytes) -> bytes:
    """Messages with varint lengths, as one: repeated fields that follow one another are one list."""
    joined, at = [], 0
    while at < len(message):
        length, at = varint(message, at)
        joined.append(message[at : at + length])
        at += length
    return b"".join(joined)


def _read_resource(data: bytes, offset: int, spans: RawSpans) -> None:
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource  # noqa: PLC0415 - for such files only

    resource: Mapping[str, Any] = {}
    for number, part in parts(
        data, may_be_cut=True
    ):  # in the order of their numbers, as every encoder writes them
        if number == _RESOURCE:
            resource = scalars(_message(Resource, part).attributes)
        elif number == _SCOPE_SPANS:
            _read_scope(part, resource, offset, spans)


def _read_scope(data: bytes, resource: Mapping[str, Any], offset: int, spans: RawSpans) -> None:
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope  # noqa: PLC0415 - as above

    scope = ""
    for number, part in parts(data, may_be_cut=False):
        if number == _SCOPE:
            scope = _message(InstrumentationScope, part).name
        elif number == _SPANS:
            _READERS[signal_of(part)](part, scope, resource, offset, spans)


def _read_span(data: bytes, scope: str, resource: Mapping[str, Any], offset: int, spans: RawSpans) -> None:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span  # noqa: PLC0415 - as above

    span = raw_span(_message(Span, data), scope, resource)
    if isinstance(span, str):
        spans.issue("id_invalid", span, None, offset)
    else:
        spans.keep(span, None, offset)


def _read_log(data: bytes, scope: str, resource: Mapping[str, Any], offset: int, spans: RawSpans) -> None:
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord  # noqa: PLC0415 - as above

    record = _message(LogRecord, data)
    event = event_of(record, scalars(record.attributes), scope, resource)
    if event is not None:
        spans.keep_event(event, None, offset)


def _read_metric(data: bytes, _: str, resource: Mapping[str, Any], offset: int, spans: RawSpans) -> None:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric  # noqa: PLC0415 - as above

    for point in points_of(_message(Metric, data), scalars, resource):
        spans.keep_point(point, None, offset)


_READERS: Final = {"span": _read_span, "log": _read_log, "metric": _read_metric}
"""What stands where a scope's items stand: the three signals have the same numbers there."""


def _message(kind: Any, data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except Exception as error:
        raise DamagedError(f"a {kind.__name__} is no message") from error


def raw_span(span: Any, scope: str, resource: Mapping[str, Any]) -> RawSpan | str:
    """The span of a message of protobuf; of one that cannot be used, why."""
    if len(span.trace_id) != TRACE_ID_BYTES or len(span.span_id) != SPAN_ID_BYTES:
        return "a span has no valid trace id or span id; it is left out"
    if not 0 < span.start_time_unix_nano <= MAX_NS:
        return "a span has no start; it is left out"
    end_ns = span.end_time_unix_nano
    return RawSpan(
        span_id=span.span_id.hex(),
        trace_id=span.trace_id.hex(),
        parent_id=span.parent_span_id.hex() if any(span.parent_span_id) else None,
        name=span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=end_ns if 0 < end_ns <= MAX_NS else span.start_time_unix_nano,
        kind=one_of(KINDS, span.kind, ""),
        scope=scope,
        status=status_of({"code": span.status.code}),
        attributes=scalars(span.attributes),
        events=tuple((event.time_unix_nano, event.name, scalars(event.attributes)) for event in span.events),
        resource=resource,
        remote_parent=span.flags & REMOTE == REMOTE,
    )


def scalars(pairs: Any) -> dict[str, Any]:
    """The attributes that are scalars or lists of scalars. Deeper values are content and left out."""
    found = {pair.key: _value(pair.value) for pair in pairs}
    return {name: value for name, value in found.items() if value is not None}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind in _SCALARS:
        return getattr(value, kind)
    if kind != "array_value":
        return None
    items = ((item, item.WhichOneof("value")) for item in value.array_value.values)
    return tuple(getattr(item, kind) for item, kind in items if kind in _SCALARS)
