"""A bare OTLP receiver on loopback that keeps what comes as lines of OTLP JSON, each request one line.

It knows JSON and protobuf, chunked bodies and gzip, and judges nothing: a fixture is what an agent sent.
"""

import base64
import gzip
import json
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["Recorder"]

_REQUESTS: dict[str, Any] = {
    "traces": ExportTraceServiceRequest,
    "logs": ExportLogsServiceRequest,
    "metrics": ExportMetricsServiceRequest,
}
_IDS = {"traceId", "spanId", "parentSpanId"}


class Recorder:
    """Keeps ``documents`` in the order they came, and of each request ``how`` it was posted.

    Use it in a ``with`` statement.
    """

    def __init__(self) -> None:
        self.documents: list[dict[str, Any]] = []
        self.how: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Connection, self))
        self._listener.daemon_threads = True
        self._listener.handle_error = lambda *_: None  # an agent that ends may cut a request
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address without any path."""
        return f"http://127.0.0.1:{self._listener.server_port}"

    def take(self, path: str, headers: Any, body: bytes) -> None:
        """Keep one request."""
        kind = headers.get("content-type", "").partition(";")[0]
        signal = path.rstrip("/").rpartition("/")[2]
        document = _document(signal, kind, body)
        told = {
            "at_ns": time.time_ns(),
            "path": path,
            "kind": kind,
            "chunked": "chunked" in headers.get("transfer-encoding", ""),
            "headers": {name.lower(): value for name, value in headers.items()},
            "bytes": len(body),
        }
        with self._lock:
            self.how.append(told)
            if document is not None:
                self.documents.append(document)

    def lines(self) -> str:
        """All requests as lines of JSON."""
        return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in self.documents)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()


def _document(signal: str, kind: str, body: bytes) -> dict[str, Any] | None:
    if signal not in _REQUESTS:
        return None
    if kind == "application/json":
        return json.loads(body)
    return hex_ids(MessageToDict(_REQUESTS[signal].FromString(body), use_integers_for_enums=True))


def hex_ids(value: Any) -> Any:
    """A message as OTLP/JSON wants it: ids in hex, where the encoder of protobuf writes base64."""
    if isinstance(value, list):
        return [hex_ids(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(one).hex() if key in _IDS and isinstance(one, str) else hex_ids(one)
        for key, one in value.items()
    }


class _Connection(BaseHTTPRequestHandler):
    """Takes the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, recorder: Recorder, *connection: Any) -> None:
        self._recorder = recorder
        super().__init__(*connection)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Take one request; an answer without a body is success in every encoding."""
        body = self._body()
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self._recorder.take(urlsplit(self.path).path, self.headers, body)
        kind = self.headers.get("content-type", "application/json")
        answer = b"{}" if "json" in kind else b""
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body
