"""Sends enriched requests on from a queue on disk, in order, until the endpoint has taken them.

An endpoint that is down costs nothing but room in the queue. A request that a reachable endpoint refuses
again and again is given up, counted, so that the others arrive.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, Self

from turntrace.collect.messages import request_class
from turntrace.collect.spool import Spool, SpoolBounds, segments
from turntrace.collect.spool_reader import Message, SpoolReader
from turntrace.files.out import FILE_MODE

__all__ = ["Forwarder", "SpanSender"]

_POLL_S: Final = 0.1
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
_MOST_REFUSALS: Final = 20


class SpanSender(Protocol):
    """What sends: otel.sender.Sender."""

    def send(self, resource_spans: Any) -> bool:
        """Send; False when the endpoint did not take it."""
        ...

    def close(self) -> None:
        """Give up what is being sent."""
        ...


class Forwarder:
    """``with Forwarder(folder, sender, is_up) as forwarder``: a queue and the thread that empties it.

    ``is_up`` says whether something listens at the endpoint. What was sent is noted after each request, so
    that a restart sends again what was under way, and no more.
    """

    def __init__(
        self,
        folder: Path,
        sender: SpanSender,
        is_up: Callable[[], bool],
        bounds: SpoolBounds | None = None,
        first_wait_s: float = _FIRST_WAIT_S,
    ) -> None:
        self._folder = folder
        self._sender = sender
        self._is_up = is_up
        self._spool = Spool(folder, bounds or SpoolBounds())
        self._first_wait_s = first_wait_s
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="turntrace-forward", daemon=True)
        self.sent_requests = 0
        self.given_up = 0
        self.is_empty = False

    def __enter__(self) -> Self:
        """Open the queue and start.

        Raises:
            OSError: when the folder cannot be used.
        """
        if not (self._folder.exists() and segments(self._folder)):
            self._cursor_path.unlink(missing_ok=True)  # an empty queue counts from the beginning
        self._spool.__enter__()
        self._reader = SpoolReader(self._folder, start=_read_cursor(self._cursor_path))
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop(0)

    def add(self, request: bytes) -> None:
        """Queue a request.

        Raises:
            OSError: when the disk does not take it.
        """
        self.is_empty = False
        self._spool.take("traces", request, "protobuf")

    @property
    def dropped_bytes(self) -> int:
        """What the bounds of the queue cost."""
        return self._spool.dropped_bytes

    def stop(self, deadline_s: float) -> bool:
        """Send what is queued for ``deadline_s`` seconds; False when some is left in the queue."""
        if self._thread.is_alive():
            self._hurry.set()
            self._thread.join(deadline_s)
            self._stop.set()
            if self._thread.is_alive():
                self._sender.close()
            self._thread.join()
            self._sender.close()
        self._spool.close()
        return self.is_empty

    @property
    def _cursor_path(self) -> Path:
        return self._folder / "cursor"

    def _run(self) -> None:
        while not self._stop.is_set():
            is_last = self._hurry.is_set()
            found = False
            for message in self._reader.messages(is_last=is_last):
                found = True
                if not self._sent(message):
                    return
            self._reader.release()
            if is_last and not found:
                self.is_empty = True
                return
            self._hurry.wait(0 if found else _POLL_S)

    def _sent(self, message: Message) -> bool:
        """Send a request until it is taken or given up; False when the thread is to end before that."""
        resource_spans = request_class("traces").FromString(message.body).resource_spans
        wait_s, refusals = self._first_wait_s, 0
        while not self._sender.send(resource_spans):
            if self._stop.is_set():
                return False
            refusals += self._is_up()
            if refusals >= _MOST_REFUSALS:
                self.given_up += 1
                break
            self._stop.wait(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
        else:
            self.sent_requests += 1
        _write_cursor(self._cursor_path, (message.number, message.end))
        return True


def _read_cursor(path: Path) -> tuple[int, int]:
    try:
        number, end = path.read_text(encoding="ascii").split()
        return int(number), int(end)
    except (OSError, ValueError):
        return 0, 0


def _write_cursor(path: Path, cursor: tuple[int, int]) -> None:
    """Note how far the queue was sent; without room for it a restart sends some again."""
    fresh = path.with_suffix(f".{time.monotonic_ns()}")
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(f"{cursor[0]} {cursor[1]}")
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
