"""A real OTLP receiver for tests: http/protobuf and grpc on loopback, with failures on demand."""

import gzip
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

__all__ = ["GrpcReceiver", "HttpReceiver", "SilentServer", "spans_of"]


def spans_of(requests):
    """All spans of the trace requests, as (resource attributes, scope, span)."""
    return [
        (resource.resource, scope.scope.name, span)
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def attributes_of(span):
    """A span's attributes as a dict of plain values."""
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}


class HttpReceiver:
    """POST /v1/traces and /v1/metrics; answers ``status`` and keeps what came."""

    def __init__(self, status=200, port=0, tls=None):
        receiver = self
        self.traces, self.metrics, self.bodies = [], [], []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.take(self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            self._server.handle_error = lambda *_: None  # a handshake that fails
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def take(self, path, body):
        """Keep a request."""
        self.bodies.append(body)
        if path == "/v1/traces":
            self.traces.append(trace_service_pb2.ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            self.metrics.append(metrics_service_pb2.ExportMetricsServiceRequest.FromString(body))

    @property
    def port(self):
        """Where it listens."""
        return self._server.server_address[1]

    @property
    def endpoint(self):
        """For OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def spans(self):
        """All spans that came."""
        return spans_of(self.traces)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcReceiver:
    """The trace and metrics services over grpc."""

    def __init__(self, port=0):
        self.traces, self.metrics = [], []
        receiver = self

        class Traces(trace_service_pb2_grpc.TraceServiceServicer):
            def Export(self, request, context):
                receiver.traces.append(request)
                return trace_service_pb2.ExportTraceServiceResponse()

        class Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
            def Export(self, request, context):
                receiver.metrics.append(request)
                return metrics_service_pb2.ExportMetricsServiceResponse()

        self._server = grpc.server(ThreadPoolExecutor(2))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Traces(), self._server)
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(Metrics(), self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    @property
    def endpoint(self):
        """For OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self.port}"

    def spans(self):
        """All spans that came."""
        return spans_of(self.traces)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._server.stop(0).wait()


class SilentServer:
    """Accepts connections and says nothing, ever."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._held = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while True:
            try:
                self._held.append(self._socket.accept()[0])
            except OSError:
                return

    @property
    def endpoint(self):
        """For OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for held in self._held:
            held.close()


def refused_endpoint():
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def wait_for(condition, timeout_s=10.0):
    """Poll until ``condition()`` is true; its last value."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
