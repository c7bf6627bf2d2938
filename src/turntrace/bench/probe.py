"""The barrier that tools of a parallel task go through, held by the harness and reached by a socket in a file.

A file's socket reaches into any network namespace. One line tells a handler's start, the answer lets it
go on, a second line tells its end; who only hangs up has ended too.
"""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from turntrace.core.overlap import BarrierEvent, Overlap, overlap_of

__all__ = ["Barrier", "ProbeServer", "pass_barrier"]

_MAX_NAME_BYTES = 200


class Barrier:
    """Starts, waits and ends of handlers, in one order. For threads of any kind."""

    def __init__(
        self, expected: int, timeout_s: float, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._expected = expected
        self._timeout_s = timeout_s
        self._clock_ns = clock_ns
        self._begun_ns = clock_ns()
        self._changed = threading.Condition()
        self._events: list[BarrierEvent] = []
        self._is_open = False

    def start(self, handler: str) -> None:
        """Note a start and wait for the others. Once the barrier has given up, nobody waits any more."""
        with self._changed:
            self._note(handler, "start")
            self._is_open |= sum(event.kind == "start" for event in self._events) >= self._expected
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._is_open, self._timeout_s):
                self._note(handler, "timeout")
                self._is_open = True
                self._changed.notify_all()

    def finish(self, handler: str) -> None:
        """Note an end, a failed one too."""
        with self._changed:
            self._note(handler, "finish")

    def record(self) -> Overlap:
        """What has happened so far."""
        with self._changed:
            return overlap_of(tuple(self._events), expected=self._expected)

    def _note(self, handler: str, kind: str) -> None:
        event = BarrierEvent(handler=handler, kind=kind, t_ns=self._clock_ns() - self._begun_ns)  # type: ignore[arg-type]  # the three kinds are written above
        self._events.append(event)


class ProbeServer:
    """``with ProbeServer(path, barrier): ...`` lets other processes come to ``barrier``."""

    def __init__(self, path: Path, barrier: Barrier) -> None:
        self._barrier = barrier
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(str(path))
        self._listening.listen(64)
        self._thread = threading.Thread(target=self._accept, name="bench-probe", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(OSError):  # a closed listener wakes nobody, one that is shut down does
            self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as lines, suppress(OSError):
            handler = lines.readline(_MAX_NAME_BYTES).decode(errors="replace").strip()
            if not handler:
                return
            self._barrier.start(handler)
            try:
                lines.write(b"go\n")
                lines.flush()
                lines.readline(_MAX_NAME_BYTES)
            finally:
                self._barrier.finish(handler)


class pass_barrier:  # noqa: N801 - read as a verb: with pass_barrier(path, "a"):
    """``with pass_barrier(path, "a"): work()`` from inside a tool: waits for the others, then works."""

    def __init__(self, path: str, handler: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path = path
        self._handler = handler

    def __enter__(self) -> None:
        self._socket.connect(self._path)
        self._socket.sendall(f"{self._handler}\n".encode())
        self._socket.recv(3)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(OSError):  # the harness has gone: its record is what it saw
            self._socket.sendall(b"done\n")
        self._socket.close()
