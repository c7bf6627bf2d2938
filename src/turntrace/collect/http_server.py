"""OTLP over http/protobuf and http/json: an ASGI application on uvicorn's h11 protocol, in a thread.

uvicorn's own server is not used: it looks every 100 ms whether to stop. Its protocol waits for ever for the
head of a request; ours does not.
"""

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from turntrace.collect.acceptance import Acceptance, RawRequest, Share
from turntrace.collect.access import Access
from turntrace.collect.answers import Answer, kind_of, refusal, success
from turntrace.collect.limits import Limits, RefusedError
from turntrace.collect.messages import response
from turntrace.collect.sink import ContentKind, Signal
from turntrace.errors import MissingExtraError

try:
    from uvicorn.config import Config
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import ServerState
except ImportError as error:
    raise MissingExtraError("the OTLP receiver", "collect") from error

__all__ = ["HttpServer"]

_SIGNALS: Final[dict[bytes, Signal]] = {
    b"/v1/traces": "traces",
    b"/v1/metrics": "metrics",
    b"/v1/logs": "logs",
}
_BACKLOG: Final = 1024
_WORKERS: Final = 4
_GRACE_S: Final = 5.0
_SILENT: Final = logging.CRITICAL + 1
"""Nothing of a request reaches a log: uvicorn's warnings quote none, and there would be one for each."""

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class BoundedProtocol(H11Protocol):
    """A connection with a deadline for the head of each request, for the request and for idling."""

    limits: Limits
    acceptance: Acceptance
    open_connections: "dict[BoundedProtocol, None]"

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._deadline: asyncio.TimerHandle | None = None
        self._seen: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Admit the connection; with too many open, the one that has waited longest without a request goes."""
        super().connection_made(transport)
        if len(self.open_connections) >= self.limits.connections:
            idle = next((one for one in self.open_connections if not one.is_busy), self)
            idle.drop("connections")
        self.open_connections[self] = None
        self._expect(self.limits.head_s)

    @property
    def is_busy(self) -> bool:
        """Whether a request is being read or answered."""
        cycle: Any = self.cycle  # None before the first request, whatever its annotation says
        return cycle is not None and not cycle.response_complete

    def drop(self, reason: Any) -> None:
        """Cut the connection, counted."""
        self.acceptance.counts.rejected(reason)
        self.open_connections.pop(self, None)  # it is lost a little later, and must not be chosen twice
        self.transport.abort()

    def _expect(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.drop, "timeout")

    def handle_events(self) -> None:
        """Handle what came; the head of a request starts the time for the rest of it."""
        super().handle_events()
        if self.cycle is not self._seen:
            self._seen = self.cycle
            self._expect(self.limits.request_s + _GRACE_S)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of one that was refused early."""
        super().on_response_complete()
        if not self.transport.is_closing() and not self.is_busy:
            self._expect(self.limits.idle_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.open_connections.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)


class HttpServer:
    """Serves a listening socket in a thread of its own until ``stop``."""

    def __init__(
        self,
        listener: socket.socket,
        access: Access,
        acceptance: Acceptance,
        limits: Limits,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listener = listener
        self._access = access
        self._acceptance = acceptance
        self._limits = limits
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._state = ServerState()
        self._connections: dict[BoundedProtocol, None] = {}
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="turntrace-otlp")
        self._started = threading.Event()
        self._server: asyncio.Server | None = None
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="turntrace-otlp-http", daemon=True)

    def start(self) -> None:
        """Start the thread; returns when connections are accepted."""
        self._thread.start()
        self._started.wait()

    def stop(self, deadline_s: float) -> None:
        """Accept no more, let what is being read finish for ``deadline_s`` seconds, then cut it off."""
        if not self._thread.is_alive():
            return
        stopped = asyncio.run_coroutine_threadsafe(self._stop(deadline_s), self._loop)
        stopped.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._workers.shutdown(wait=True, cancel_futures=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(lambda _loop, _context: None)  # what a peer does is no news
        self._loop.run_until_complete(self._listen())
        self._started.set()
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _listen(self) -> None:
        config = Config(
            self._application,
            interface="asgi3",
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=_SILENT,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=int(self._limits.idle_s) + 1,
        )
        config.load()
        protocol = type(
            "ReceiverProtocol",
            (BoundedProtocol,),
            {
                "limits": self._limits,
                "acceptance": self._acceptance,
                "open_connections": self._connections,
            },
        )
        self._server = await self._loop.create_server(
            lambda: protocol(config=config, server_state=self._state, app_state={}, _loop=self._loop),
            sock=self._listener,
            ssl=self._tls,
            ssl_handshake_timeout=self._limits.head_s if self._tls else None,
            backlog=_BACKLOG,
        )

    async def _stop(self, deadline_s: float) -> None:
        self._is_stopping = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=deadline_s)
        for connection in list(self._connections):
            connection.transport.abort()
        for task in list(self._state.tasks):
            task.cancel()
        await asyncio.sleep(0)  # the transports close

    async def _application(self, scope: Any, receive: Receive, send: Send) -> None:
        """The ASGI application: one request."""
        kind: ContentKind = "json"
        try:
            kind, answer = await self._answer(scope, receive)
        except RefusedError as error:
            self._acceptance.counts.rejected(error.reason)
            answer = refusal(error, _kind_to_answer(scope, kind))
        except Exception:  # noqa: BLE001 - an error of ours costs one request, not the receiver
            self._acceptance.counts.rejected("error")
            answer = refusal(RefusedError("error", 500, "the receiver failed"), kind)
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, scope: Any, receive: Receive) -> tuple[ContentKind, Answer]:
        headers = dict(scope["headers"])
        signal, kind = self._admitted(scope, headers)
        with self._acceptance.share() as share:
            body = await self._body(headers, receive, share)
            request = RawRequest(
                signal=signal,
                body=body,
                kind=kind,
                headers=headers,
                encoding=headers.get(b"content-encoding", b"").decode("latin-1"),
            )
            rejected = await self._loop.run_in_executor(self._workers, self._acceptance.take, request, share)
        return kind, success(response(signal, kind, rejected), kind)

    def _admitted(self, scope: Any, headers: dict[bytes, bytes]) -> tuple[Signal, ContentKind]:
        """The signal and the kind of a request that may be read."""
        self._access.check_source(headers)
        path = self._access.check_token(headers, scope["raw_path"])
        signal = _SIGNALS.get(path.rstrip(b"/"))
        if signal is None:
            raise RefusedError("path", 404, "send to /v1/traces, /v1/metrics or /v1/logs")
        if scope["method"] != "POST":
            raise RefusedError("method", 405, "send with POST")
        kind = kind_of(headers.get(b"content-type", b""))
        if self._is_stopping:
            raise RefusedError("stopping", 503, "the receiver is stopping", 1)
        self._acceptance.budget.admit()
        return signal, kind

    async def _body(self, headers: dict[bytes, bytes], receive: Receive, share: Share) -> bytes:
        charge = share.meter("body")
        stated = headers.get(b"content-length", b"")
        if stated.isdigit() and int(stated) > self._limits.request_bytes:
            raise RefusedError(
                "too_large", 413, f"the body is larger than {self._limits.request_bytes} bytes"
            )
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.request_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusedError("disconnected", 400, "the connection was closed")
                    charge(len(message["body"]))
                    pieces.append(message["body"])
                    if not message["more_body"]:
                        return b"".join(pieces)
        except TimeoutError as error:
            message_ = f"the request took longer than {self._limits.request_s:g} seconds"
            raise RefusedError("timeout", 408, message_) from error


def _kind_to_answer(scope: Any, kind: ContentKind) -> ContentKind:
    """A refused sender of protobuf is told in protobuf, anybody else in JSON."""
    try:
        return kind_of(dict(scope["headers"]).get(b"content-type", b""))
    except RefusedError:
        return kind
