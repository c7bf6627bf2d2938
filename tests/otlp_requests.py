"""OTLP requests for tests, as bytes, and a sender that speaks bare HTTP."""

import gzip
import http.client
import json
import socket
import zlib
from dataclasses import dataclass, field

import zstandard
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["COMPRESSORS", "MemorySink", "json_traces", "logs", "metrics", "post", "raw", "traces"]

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
T0_NS = 1_700_000_000_000_000_000


def _raw_deflate(body):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


COMPRESSORS = {
    "": lambda body: body,
    "identity": lambda body: body,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate without a header": _raw_deflate,
    "zstd": zstandard.ZstdCompressor().compress,
}


def traces(count=1, *, trace_id=1, first=1, attributes=0, name="chat m"):
    """A protobuf request of ``count`` model calls of one trace."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number in range(first, first + count):
        span = scope.spans.add(
            trace_id=trace_id.to_bytes(16, "big"),
            span_id=number.to_bytes(8, "big"),
            name=name,
            start_time_unix_nano=T0_NS + number * 1000,
            end_time_unix_nano=T0_NS + number * 1000 + 500,
        )
        span.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
        for index in range(attributes):
            span.attributes.add(key=f"a{index}").value.int_value = index
    return request.SerializeToString()


def as_agent(body):
    """The same request, its first span an agent."""
    request = ExportTraceServiceRequest.FromString(body)
    request.resource_spans[0].scope_spans[0].spans[0].attributes[0].value.string_value = "invoke_agent"
    return request.SerializeToString()


def json_traces(count=1, *, trace_id=1, attributes=()):
    """The same as JSON."""
    spans = [
        {
            "traceId": f"{trace_id:032x}",
            "spanId": f"{number:016x}",
            "name": "chat m",
            "startTimeUnixNano": str(T0_NS + number * 1000),
            "endTimeUnixNano": str(T0_NS + number * 1000 + 500),
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                *attributes,
            ],
        }
        for number in range(1, count + 1)
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def metrics():
    """A protobuf request of two data points."""
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="m")
    metric.gauge.data_points.add(as_int=1)
    metric.gauge.data_points.add(as_int=2)
    return request.SerializeToString()


def logs():
    """A protobuf request of one log record."""
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=T0_NS)
    return request.SerializeToString()


@dataclass
class MemorySink:
    """Keeps what it is given, or raises ``error``."""

    error: OSError | None = None
    taken: list = field(default_factory=list)

    def take(self, signal, body, kind):
        """See Sink."""
        if self.error is not None:
            raise self.error
        self.taken.append((signal, body, kind))


@dataclass
class Reply:
    """Status, headers (lower case) and body of an answer."""

    status: int
    headers: dict
    body: bytes


def post(receiver, body, path="/v1/traces", *, method="POST", headers=(), content_type=PROTOBUF, token=True):
    """Send one request and return the answer; a body that is an iterable is sent in chunks."""
    sent = {"Content-Type": content_type} if content_type else {}
    if token and receiver.token:
        sent |= {name.title(): value for name, value in receiver.headers.items()}
    sent |= dict(headers)
    connection = http.client.HTTPConnection(receiver.address.host, receiver.address.port, timeout=30)
    try:
        connection.request(method, path, body, sent, encode_chunked=not isinstance(body, bytes | None))
        reply = connection.getresponse()
        return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
    finally:
        connection.close()


def raw(receiver, data, timeout_s=10.0):
    """Send bytes as they are, and read until the receiver closes or says nothing for ``timeout_s``."""
    with socket.create_connection((receiver.address.host, receiver.address.port), timeout=timeout_s) as peer:
        peer.sendall(data)
        return until_closed(peer)


def until_closed(peer):
    """All that a peer sends until it closes or falls silent."""
    received = b""
    try:
        while data := peer.recv(1 << 16):
            received += data
    except (TimeoutError, ConnectionError):
        pass
    return received
