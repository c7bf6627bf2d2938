"""Passes requests on to a backend that speaks grpc: the message as it came, JSON put into the message first."""

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import grpc  # type: ignore[import-untyped]  # it has no types
import orjson
from google.protobuf import json_format  # type: ignore[import-untyped]  # it has none

from turntrace.collect.acceptance import RawRequest
from turntrace.collect.inflation import inflated
from turntrace.collect.limits import RefusedError
from turntrace.collect.messages import request_class
from turntrace.collect.own_telemetry import ClientTls

__all__ = ["GrpcPost", "message_of"]

_TIMEOUT_S: Final = 10.0
_METHODS: Final = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}
_OF_HTTP: Final = ("content-", "accept", "user-agent", ":", "grpc-")
_IDS: Final = frozenset({"traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id"})
_OK: Final = 200
_TRY_AGAIN: Final = 503
_REFUSED: Final = 400
_PASSING: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
    }
)


class GrpcPost:
    """A Post over a channel of its own; statuses are told as HTTP would."""

    __slots__ = ("_call",)

    def __init__(self, address: str, signal: str, tls: ClientTls) -> None:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if parts.scheme == "https":
            channel = grpc.secure_channel(parts.netloc, _credentials(tls))
        else:
            channel = grpc.insecure_channel(parts.netloc)
        self._call = channel.unary_unary(_METHODS[signal])

    def __call__(self, request: RawRequest, headers: Mapping[str, str]) -> int:
        """See Post."""
        lower = ((name.lower(), value) for name, value in headers.items())  # grpc refuses other names
        metadata = tuple((name, value) for name, value in lower if not name.startswith(_OF_HTTP))
        try:
            self._call(message_of(request), timeout=_TIMEOUT_S, metadata=metadata)
        except grpc.RpcError as error:
            return _TRY_AGAIN if error.code() in _PASSING else _REFUSED
        return _OK


def _credentials(tls: ClientTls) -> Any:
    """Raises OSError for a file that cannot be read."""
    files = (tls.certificate, tls.client_key, tls.client_certificate)
    return grpc.ssl_channel_credentials(*(Path(name).read_bytes() if name else None for name in files))


def message_of(request: RawRequest) -> bytes:
    """The protobuf message of a request, inflated.

    Raises:
        ValueError: when the body is not what it says.
    """
    try:
        body = inflated(request.body, request.encoding, _unmetered)
    except RefusedError as error:
        raise ValueError(str(error)) from error
    if request.kind == "protobuf":
        return body
    document = orjson.loads(body)
    _with_bytes(document)
    message = request_class(request.signal)()
    try:
        json_format.ParseDict(document, message, ignore_unknown_fields=True)
    except json_format.ParseError as error:
        raise ValueError("the body is no OTLP JSON") from error
    encoded: bytes = message.SerializeToString()
    return encoded


def _unmetered(_: int) -> None:
    """The receiver bounds what it takes."""


def _with_bytes(document: Any) -> None:
    """Ids as base64, which protobuf's JSON has where OTLP's has hex digits.

    Raises:
        ValueError: for an id that is not hex.
    """
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            for name in _IDS & value.keys():
                value[name] = _base64(value[name])
            waiting += (part for part in value.values() if isinstance(part, dict | list))


def _base64(digits: object) -> object:
    return b64encode(bytes.fromhex(digits)).decode() if isinstance(digits, str) else digits
