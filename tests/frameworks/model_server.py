"""A scripted model server on loopback for real frameworks, with a log of what went over the wire.

It speaks OpenAI chat, responses and embeddings, Anthropic messages and Gemini. A session is a list of
steps, answered in order; a request names its session by a path that starts with ``/s/NAME``.
"""

import json
import select
import socket
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Self
from urllib.parse import urlsplit

from frameworks.encodings import Asked, Encoding, Event, encoding_of
from frameworks.steps import Step

__all__ = ["Exchange", "ModelServer"]

MAIN = "main"
_HOST = "127.0.0.1"


class _GoneError(Exception):
    """The client closed the connection."""


class _DroppedError(Exception):
    """The script breaks the connection here."""


@dataclass(slots=True)
class Exchange:
    """One request and what it got, in milliseconds since the server began.

    ``tokens`` is what the answer said that it cost, ``input_sent`` the input that a stream told at its start.
    ``came_ns`` and ``sent`` are of the machine's monotonic clock, which other processes read too: when the request
    had come, and for each chunk of a stream when the kernel was given it, its bytes, and whether it has content.
    """

    api: str
    session: str
    status: int
    stream: bool
    received_ms: float
    first_content_ms: float | None = None
    last_content_ms: float | None = None
    done_ms: float | None = None
    content_chunks: int = 0
    finished: bool = False
    dropped: bool = False
    client_gone: bool = False
    retry_count_header: str | None = None
    asked_usage: bool = False
    usage_sent: dict[str, Any] | None = None
    tokens: dict[str, int] | None = None
    input_sent: int | None = None
    scripted: bool = True
    retried: bool = False
    under: str = "turn"
    model: str = ""
    tools: list[str] = field(default_factory=list)
    came_ns: int = 0
    sent: list[tuple[int, int, bool]] = field(default_factory=list)

    @property
    def is_embedding(self) -> bool:
        """Whether it asked for embeddings, which is no call of a model that answers."""
        return self.api == "openai.embeddings"

    def told(self) -> dict[str, Any]:
        """What a truth says of it; the times of one machine since its start mean nothing elsewhere."""
        return {name: value for name, value in asdict(self).items() if name not in {"came_ns", "sent"}}


class ModelServer:
    """Answers as its script says and remembers what it did; use it in a ``with`` statement.

    A ``director`` decides by what is asked, for clients whose requests come in no certain order.
    """

    def __init__(self, director: Callable[[Asked], Step] | None = None) -> None:
        self.director = director
        self.t0_unix_ns = time.time_ns()
        self._t0 = time.perf_counter()
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._steps: defaultdict[str, list[Step]] = defaultdict(list)
        self._numbers: defaultdict[str, int] = defaultdict(int)
        self.exchanges: list[Exchange] = []
        self._listener = _Listener(self)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(0.05,), name="frameworks-model-server", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address without any path."""
        return f"http://{_HOST}:{self._listener.server_port}"

    def script(self, steps: Iterable[Step], session: str = MAIN) -> None:
        """Add ``steps`` to what a session answers."""
        with self._lock:
            self._steps[session].extend(steps)

    def left(self) -> dict[str, int]:
        """How many steps of each session nobody asked for."""
        with self._lock:
            return {name: len(steps) for name, steps in self._steps.items() if steps}

    def now_ms(self) -> float:
        """Milliseconds since the server began."""
        return round((time.perf_counter() - self._t0) * 1000, 1)

    def take(self, session: str) -> tuple[Step | None, int]:
        """The next step of a session, None when there is none, and the number of the request."""
        with self._lock:
            self._numbers[session] += 1
            steps = self._steps[session]
            return (steps.pop(0) if steps else None), self._numbers[session]

    def note(self, exchange: Exchange) -> None:
        """Remember a request; its times are filled in as they come."""
        with self._lock:
            self.exchanges.append(exchange)

    def end(self, exchange: Exchange) -> None:
        """Remember that a request is done with."""
        with self._ended:
            exchange.done_ms = self.now_ms()
            self._ended.notify_all()

    def settled(self, at_least: int = 0) -> list[Exchange]:
        """All requests, once the server is done with them: a client may know of the end before."""
        with self._ended:
            self._ended.wait_for(lambda: self._is_settled(at_least), timeout=5)
            return list(self.exchanges)

    def _is_settled(self, at_least: int) -> bool:
        return len(self.exchanges) >= at_least and all(one.done_ms is not None for one in self.exchanges)

    def truth(self) -> dict[str, Any]:
        """What went over the wire, with sums."""
        wire = self.settled()
        calls = [exchange for exchange in wire if not exchange.is_embedding]
        said = [exchange.tokens for exchange in calls if exchange.tokens is not None]
        answered = [exchange for exchange in calls if exchange.status == 200]
        total: dict[str, int] = {
            key: sum(tokens[key] for tokens in said)
            for key in ("input", "output", "cached", "cache_write", "reasoning")
        }
        return {
            "http_requests": len(wire),
            "http_ok": sum(exchange.status == 200 and exchange.finished for exchange in wire),
            "usage_sent_total": {
                **total,
                "requests_with_usage": len(said),
                "requests_without_usage": len(answered) - len(said),
            },
            "wire": [exchange.told() for exchange in wire],
        }

    def close(self) -> None:
        """Stop listening and end what is open."""
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Listener(ThreadingHTTPServer):
    """Accepts connections, each in a thread."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, server: ModelServer) -> None:
        super().__init__((_HOST, 0), partial(_Connection, server))

    def server_bind(self) -> None:
        """Bind without asking for the host's name."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = _HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what the server did wrong; a client that went away is its own business."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Connection(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60.0

    def __init__(self, server: ModelServer, *connection: Any) -> None:
        self._model = server
        super().__init__(*connection)

    def log_message(self, *args: Any) -> None:
        """Say nothing; the log of exchanges has it."""

    def do_GET(self) -> None:
        """Some clients list the models first."""
        self._send_json(200, {"object": "list", "data": [{"id": "gpt-fake", "object": "model"}]}, {})

    def do_POST(self) -> None:
        """Answer with the next step of the session."""
        received_ms, came_ns = self._model.now_ms(), time.perf_counter_ns()
        data = self._data()
        path = urlsplit(self.path).path
        session = MAIN
        if path.startswith("/s/"):
            session, _, path = path[3:].partition("/")
        encoding = encoding_of(path)
        if encoding is None:
            self._send_json(404, {"error": {"message": f"no such path: {path}"}}, {})
            return
        body = json.loads(data or b"{}")
        step, number = self._model.take(session)
        model = path.rpartition("/")[2].partition(":")[0] if encoding.api == "gemini" else body.get("model")
        stream = bool(body.get("stream")) or path.endswith(":streamGenerateContent")
        asked = Asked(encoding.api, number, body, str(model), stream)
        if self._model.director is not None:
            step = self._model.director(asked)
        exchange = Exchange(
            encoding.api,
            session,
            step.status if step else 500,
            stream,
            received_ms,
            retry_count_header=self.headers.get("x-stainless-retry-count"),
            asked_usage=asked.wants_usage,
            scripted=step is not None,
            retried=step is not None and step.is_attempt,
            under=step.under if step else "turn",
            model=asked.model,
            tools=[tool.name for tool in step.tools] if step else [],
            came_ns=came_ns,
        )
        self._model.note(exchange)
        try:
            self._answer(step or Step(status=500, text="nothing is scripted"), encoding, asked, exchange)
        except (_GoneError, ConnectionError):
            exchange.client_gone = True
            self.close_connection = True
        except _DroppedError:
            exchange.dropped = True
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        finally:
            self._model.end(exchange)

    def _data(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _answer(self, step: Step, encoding: Encoding, asked: Asked, exchange: Exchange) -> None:
        if step.status != 200:
            self._wait(step.latency_s)
            self._send_json(step.status, encoding.error(step.status, step.text), _retry_after(step))
        elif asked.stream:
            self._stream(step, encoding, asked, exchange)
        else:
            self._wait(step.latency_s)
            if step.drop_after is not None:
                raise _DroppedError
            tokens = step.tokens()
            if tokens is not None:
                exchange.tokens, exchange.usage_sent = tokens, encoding.usage(tokens)
            self._send_json(200, encoding.whole(step, asked), {})
            exchange.finished = True

    def _stream(self, step: Step, encoding: Encoding, asked: Asked, exchange: Exchange) -> None:
        if step.drop_after == -1:
            raise _DroppedError
        self._wait(step.headers_s)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for _ in range(step.keep_alive):
            self._wait(step.ttft_s / (step.keep_alive + 1))
            self._chunk(b": keep-alive\n\n", exchange)
        for event in () if step.empty else encoding.events(step, asked):
            if event.content:
                self._pace(step, encoding, exchange)
            self._send_event(event, encoding, exchange)
        self._chunk(b"", exchange)
        exchange.finished = True

    def _pace(self, step: Step, encoding: Encoding, exchange: Exchange) -> None:
        """Before a piece of content: its pause, or what the script has in store instead of it."""
        if exchange.content_chunks == step.drop_after:
            raise _DroppedError
        if exchange.content_chunks == step.error_after:
            self._send_event(encoding.in_band(), encoding, exchange)
            raise _DroppedError
        if exchange.content_chunks:
            self._wait(step.gap_s)
        else:
            self._wait(step.ttft_s / (step.keep_alive + 1))

    def _send_event(self, event: Event, encoding: Encoding, exchange: Exchange) -> None:
        self._chunk(event.frame(), exchange, content=event.content)
        if event.tokens is not None:
            exchange.tokens, exchange.usage_sent = event.tokens, encoding.usage(event.tokens)
        if event.input_tokens is not None:
            exchange.input_sent = event.input_tokens
        if event.content:
            exchange.last_content_ms = self._model.now_ms()
            exchange.first_content_ms = exchange.first_content_ms or exchange.last_content_ms
            exchange.content_chunks += 1

    def _chunk(self, data: bytes, exchange: Exchange, *, content: bool = False) -> None:
        exchange.sent.append((time.perf_counter_ns(), len(data), content))
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _wait(self, seconds: float) -> None:
        """Wait, but not for a client that has gone."""
        if seconds <= 0:
            return
        end = time.perf_counter() + seconds
        if select.select([self.connection], [], [], seconds)[0]:
            try:
                gone = not self.connection.recv(1, socket.MSG_PEEK)
            except OSError:
                gone = True
            if gone:
                raise _GoneError
            time.sleep(max(0.0, end - time.perf_counter()))

    def _send_json(self, status: int, value: Any, headers: dict[str, str]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", **headers}.items():
            self.send_header(name, text)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()


def _retry_after(step: Step) -> dict[str, str]:
    """The headers that say when to come again; half a second is said in both ways that clients know."""
    if step.retry_after_s is None:
        return {}
    return {"retry-after": f"{step.retry_after_s:g}", "retry-after-ms": f"{step.retry_after_s * 1000:g}"}
