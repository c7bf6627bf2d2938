"""One connection of the model server: requests in, scripted replies out, times kept."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BufferedReader, RawIOBase
from itertools import count
from typing import Any, Final, cast

from turntrace.demo.chat_completions import ChatCompletions
from turntrace.demo.encoding import Encoding, Frame
from turntrace.demo.script import ModelRequest, Reply, Script
from turntrace.demo.sse import KEEP_ALIVE, encode
from turntrace.demo.truth import Exchange, ServedOutcome, TruthLog, anchored_clock

__all__ = ["ModelConnection", "Service"]

_ENCODINGS: Final[Mapping[str, Encoding]] = {"/v1/chat/completions": ChatCompletions()}
_MAX_BODY_BYTES: Final = 64 * 1024 * 1024
_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000


@dataclass(slots=True, kw_only=True)
class Service:
    """What all connections of a server share."""

    script: Script
    speed: float
    log: TruthLog
    clock_ns: Callable[[], int] = field(default_factory=anchored_clock)
    numbers: Iterator[int] = field(default_factory=count)
    stopping: threading.Event = field(default_factory=threading.Event)


class _DroppedError(Exception):
    """The script wants the connection broken here."""


class _StoppedError(Exception):
    """The server is being closed."""


class _RefusedError(Exception):
    """The request cannot be given to the script."""

    def __init__(self, status: HTTPStatus) -> None:
        self.status = status
        super().__init__(status)


class _RecordingReader(BufferedReader):
    """A reader that keeps the bytes of the current request."""

    def __init__(self, raw: RawIOBase) -> None:
        super().__init__(raw)
        self.taken = bytearray()

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self.taken += line
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        block = super().read(size)
        self.taken += block
        return block


class ModelConnection(BaseHTTPRequestHandler):
    """Answers the requests of one connection, one after the other."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 30.0  # seconds a connection may idle
    rbufsize = 0  # the recording reader buffers

    def __init__(self, service: Service, *connection: Any) -> None:
        self._service = service
        super().__init__(*connection)

    def setup(self) -> None:
        """Read through a recorder."""
        super().setup()
        self._reader = _RecordingReader(cast("RawIOBase", self.rfile))
        self.rfile = self._reader

    def handle_one_request(self) -> None:
        """Start the recording anew with each request."""
        self._reader.taken.clear()
        super().handle_one_request()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Stay quiet: the truth log says more."""

    def do_POST(self) -> None:
        """Answer one request and write it into the truth log."""
        exchange = Exchange(index=next(self._service.numbers), path=self.path.partition("?")[0])
        outcome: ServedOutcome = "failed"
        try:
            self._answer(exchange)
            outcome = "complete"
        except _DroppedError:
            outcome = "dropped"
        except _StoppedError:
            outcome = "stopped"
        except ConnectionError:
            outcome = "stopped" if self._service.stopping.is_set() else "client_closed"
        finally:
            self.close_connection |= outcome != "complete"
            self._service.log.append(exchange, outcome)

    def _answer(self, exchange: Exchange) -> None:
        """Read the request, ask the script, send what it says."""
        try:
            request = self._receive(exchange)
        except _RefusedError as refused:
            exchange.status = refused.status
            self.send_error(refused.status)
            return
        encoding = _ENCODINGS[exchange.path]
        reply = self._service.script(request)
        self._wait(exchange.received_ns, reply.header_delay_ms)
        exchange.status = reply.status
        if reply.status != HTTPStatus.OK:
            self._send_document(exchange, reply, encoding.error(reply.status))
        elif encoding.streams(request):
            self._send_stream(exchange, reply, encoding.frames(request, reply))
        else:
            self._wait(exchange.received_ns, reply.header_delay_ms + _piece_due_ms(reply, reply.pieces - 1))
            self._send_document(exchange, reply, encoding.body(request, reply))

    def _receive(self, exchange: Exchange) -> ModelRequest:
        """Read the body; its bytes and time go into the exchange.

        Raises:
            _RefusedError: The length is missing or too large, the path unknown, the body not a JSON object.
        """
        raw = self._read_body()
        exchange.received_ns = self._service.clock_ns()
        exchange.request = bytes(self._reader.taken)
        if exchange.path not in _ENCODINGS:
            raise _RefusedError(HTTPStatus.NOT_FOUND)
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise _RefusedError(HTTPStatus.BAD_REQUEST)
        headers = {name.lower(): value for name, value in self.headers.items()}
        return ModelRequest(index=exchange.index, path=exchange.path, headers=headers, body=body)

    def _read_body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED)
        if int(length) > _MAX_BODY_BYTES:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return self.rfile.read(int(length))

    def _send_document(self, exchange: Exchange, reply: Reply, document: bytes) -> None:
        """Send an answer or an error in one piece."""
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(document)))
        if reply.retry_after_ms is not None:
            self.send_header("Retry-After", str(-(-reply.retry_after_ms // 1000)))
            self.send_header("retry-after-ms", str(reply.retry_after_ms))
        self._send_headers(exchange)
        if reply.drop_after_chunks is not None:
            raise _DroppedError
        self.wfile.write(document)
        if reply.status == HTTPStatus.OK:
            exchange.first_token_sent_ns = exchange.last_chunk_sent_ns = exchange.headers_sent_ns
            exchange.usage_sent = reply.reported_usage

    def _send_stream(self, exchange: Exchange, reply: Reply, frames: Iterator[Frame]) -> None:
        """Send the events of a stream, each piece of content when it is due."""
        chunked = self.request_version != "HTTP/1.0"
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header(*(("Transfer-Encoding", "chunked") if chunked else ("Connection", "close")))
        headers_sent_ns = self._send_headers(exchange)
        piece = 0
        for frame in frames:
            if exchange.chunks_sent == reply.drop_after_chunks:
                raise _DroppedError
            if frame.content:
                self._wait_for_piece(headers_sent_ns, reply, piece, chunked=chunked)
                piece += 1
            exchange.last_chunk_sent_ns = self._service.clock_ns()
            if piece == 1 and frame.content:
                exchange.first_token_sent_ns = exchange.last_chunk_sent_ns
            self._write(encode(frame.payload), chunked=chunked)
            exchange.chunks_sent += 1
            exchange.usage_sent = frame.usage or exchange.usage_sent
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _send_headers(self, exchange: Exchange) -> int:
        exchange.headers_sent_ns = self._service.clock_ns()
        self.end_headers()
        return exchange.headers_sent_ns

    def _wait_for_piece(self, headers_sent_ns: int, reply: Reply, piece: int, *, chunked: bool) -> None:
        """Wait until a piece of content is due, with the scripted comments before the first."""
        if piece == 0:
            for number in range(1, reply.keep_alives + 1):
                self._wait(headers_sent_ns, reply.first_token_ms * number // (reply.keep_alives + 1))
                self._write(KEEP_ALIVE, chunked=chunked)
        self._wait(headers_sent_ns, _piece_due_ms(reply, piece))

    def _wait(self, since_ns: int, delay_ms: int) -> None:
        """Wait until ``delay_ms`` of scripted time have passed.

        Raises:
            _StoppedError: The server is being closed.
        """
        due_ns = since_ns + int(delay_ms * _NS_PER_MS / self._service.speed)
        left_ns = due_ns - self._service.clock_ns()
        if left_ns > 0 and self._service.stopping.wait(left_ns / _NS_PER_S):
            raise _StoppedError

    def _write(self, data: bytes, *, chunked: bool) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)


def _piece_due_ms(reply: Reply, piece: int) -> int:
    """Return when a piece is due, in scripted milliseconds after the headers."""
    return reply.first_token_ms + max(piece, 0) * reply.chunk_interval_ms
