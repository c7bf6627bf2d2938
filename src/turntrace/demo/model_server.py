"""A model server on loopback: real sockets, scripted replies, and a log of what really happened."""

import socket
import sys
import threading
from contextlib import suppress
from functools import partial
from http.server import ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Final, Self

from turntrace.demo.connection import ModelConnection, Service
from turntrace.demo.script import Script
from turntrace.demo.truth import TruthLog

__all__ = ["ModelServer"]

_HOST: Final = "127.0.0.1"
_POLL_S: Final = 0.05
_CLOSE_TIMEOUT_S: Final = 5.0


class _Listener(ThreadingHTTPServer):
    """Accepts connections, each in a daemon thread, never more than ``max_connections`` at once."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(
        self, service: Service, port: int, max_connections: int, listening: socket.socket | None
    ) -> None:
        self._stopping = service.stopping
        self._slots = threading.Semaphore(max_connections)
        self._open: set[socket.socket] = set()
        self._closed_one = threading.Condition()
        super().__init__(
            (_HOST, port), partial(ModelConnection, service), bind_and_activate=listening is None
        )
        if listening is not None:
            self.socket.close()
            self.socket = listening
            self.server_name, self.server_port = listening.getsockname()

    def server_bind(self) -> None:
        """Bind without asking DNS for the host's name."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = _HOST, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a thread once a slot is free; meanwhile others wait in the backlog."""
        if not self._take_slot():
            self.shutdown_request(request)
            return
        with self._closed_one:
            self._open.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()
            with self._closed_one:
                self._open.discard(request)
                self._closed_one.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what the server did wrong; a client that went away is its own business."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def _take_slot(self) -> bool:
        """Wait for a free slot; false when the server is closed first."""
        while not self._slots.acquire(timeout=_POLL_S):
            if self._stopping.is_set():
                return False
        return not self._stopping.is_set()

    def hang_up(self) -> None:
        """End every open connection and wait for its thread."""
        with self._closed_one:
            for connection in self._open:
                with suppress(OSError):  # its thread has closed it already
                    connection.shutdown(socket.SHUT_RDWR)
            self._closed_one.wait_for(lambda: not self._open, _CLOSE_TIMEOUT_S)


class ModelServer:
    """An OpenAI-style model server for demos and tests, listening as soon as it exists.

    Args:
        script: Chooses the reply to each request.
        port: 0 takes any free one.
        speed: Divides every scripted delay.
        max_connections: Further clients wait until one is closed.
        keep_requests: Keep the raw bytes of each request in the log.
        listening: A socket that listens already, of another network namespace for instance; ``port`` is its own.

    >>> from turntrace.demo.script import InOrder, Reply
    >>> with ModelServer(InOrder((Reply(content=("hi",)),))) as server:
    ...     server.base_url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        script: Script,
        *,
        port: int = 0,
        speed: float = 1.0,
        max_connections: int = 1024,
        keep_requests: bool = False,
        listening: socket.socket | None = None,
    ) -> None:
        if speed <= 0:
            message = f"speed must be above 0, not {speed}"
            raise ValueError(message)
        self.log = TruthLog(keep_requests=keep_requests)
        self._service = Service(script=script, speed=speed, log=self.log)
        self._listener = _Listener(self._service, port, max_connections, listening)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(_POLL_S,), name="model-server", daemon=True
        )
        self._thread.start()

    @property
    def base_url(self) -> str:
        """The address to give to a client, without the ``/v1``."""
        return f"http://{_HOST}:{self._listener.server_port}"

    def close(self) -> None:
        """Break off what is being answered, close every connection and stop listening."""
        self._service.stopping.set()
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()
        self._listener.hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
