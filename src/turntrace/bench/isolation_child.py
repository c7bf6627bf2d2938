"""Waiting for one child: its output kept within bounds, its end timed, TERM and then KILL when it is late."""

import os
import selectors
import threading
import time
from collections.abc import Callable
from subprocess import Popen
from typing import IO, Final, Protocol

from turntrace.bench.isolation import Captured, Ended

__all__ = ["GRACE_S", "Capture", "Reach", "attend"]

GRACE_S: Final = 2.0
"""How long a child may take to end after it was asked to."""

_DRAIN_S: Final = 0.5
_CHUNK_BYTES: Final = 1 << 16
_POLL_S: Final = 0.1


class Reach(Protocol):
    """The processes of a command, as far as they can be reached."""

    def terminate(self) -> None:
        """Ask them to end."""
        ...

    def kill(self) -> None:
        """End them."""
        ...

    def clear(self) -> bool | None:
        """After the command has ended: end what is left; whether something was, None if that is unseen."""
        ...


class Capture:
    """The two ends of a stream of any length."""

    def __init__(self, most_bytes: int) -> None:
        self._half = most_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._half + _CHUNK_BYTES:
            del self._tail[: -self._half]

    def captured(self) -> Captured:
        """What is kept, and how much there was."""
        tail = self._tail if len(self._tail) <= self._half else self._tail[-self._half :]
        return Captured(data=bytes(self._head + tail), total_bytes=self._total)


class _Attendance:
    """The state of the wait for one child."""

    def __init__(self, process: Popen[bytes], reach: Reach, most_bytes: int) -> None:
        self._process = process
        self._reach = reach
        self._selector = selectors.DefaultSelector()
        self._captures = {}
        for stream in (process.stdout, process.stderr):
            assert stream is not None  # noqa: S101 - both are pipes, for the type checker
            self._captures[stream] = Capture(most_bytes)
            self._selector.register(stream, selectors.EVENT_READ)
        self._ended, self._ends = os.pipe()
        self._selector.register(self._ended, selectors.EVENT_READ)
        self.ended_ns: int | None = None
        threading.Thread(target=self._wait, name="bench-wait", daemon=True).start()

    def _wait(self) -> None:
        """Note the moment of the end. The child stays a zombie, so that its number is not given away."""
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self.ended_ns = time.monotonic_ns()
        os.close(self._ends)

    def until(self, is_over: Callable[[], bool]) -> None:
        """Read output until ``is_over``."""
        while not is_over():
            for key, _ in self._selector.select(_POLL_S):
                self._read(key.fileobj)

    def _read(self, found: object) -> None:
        if found == self._ended:
            self._selector.unregister(self._ended)
            return
        for stream, capture in self._captures.items():
            if found is stream:
                data = os.read(stream.fileno(), _CHUNK_BYTES)
                capture.add(data)
                if not data:
                    self._selector.unregister(stream)

    @property
    def is_drained(self) -> bool:
        """Whether both streams and the child have ended."""
        return not self._selector.get_map()

    def stop(self) -> bool:
        """Ask the child to end, and end it; whether it had to be."""
        self._reach.terminate()
        late = time.monotonic() + GRACE_S
        self.until(lambda: self.ended_ns is not None or time.monotonic() > late)
        forced = self.ended_ns is None
        if forced:
            self._reach.kill()
            self.until(lambda: self.ended_ns is not None)
        return forced

    def close(self) -> tuple[Captured, Captured]:
        """Take what is still in the pipes, for a moment only: who left the session may hold them open."""
        late = time.monotonic() + _DRAIN_S
        self.until(lambda: self.is_drained or time.monotonic() > late)
        self._selector.close()
        os.close(self._ended)
        captured = [self._finish(stream, capture) for stream, capture in self._captures.items()]
        return captured[0], captured[1]

    def _finish(self, stream: IO[bytes], capture: Capture) -> Captured:
        stream.close()
        return capture.captured()


def attend(
    process: Popen[bytes],
    reach: Reach,
    *,
    started_ns: int,
    timeout_s: float,
    most_bytes: int,
    stopping: threading.Event,
) -> Ended:
    """Wait for ``process`` until it ends, is late, or ``stopping`` is set; return when all are dead.

    The wall ends with the child itself, whatever its children do with the pipes.
    """
    attendance = _Attendance(process, reach, most_bytes)
    late_ns = started_ns + int(timeout_s * 1e9)
    try:
        attendance.until(
            lambda: attendance.ended_ns is not None or stopping.is_set() or time.monotonic_ns() > late_ns
        )
        in_time = attendance.ended_ns is not None
        forced = False if in_time else attendance.stop()
    except BaseException:  # a key pressed twice, in this thread: nothing may live on
        reach.kill()
        raise
    left_running = reach.clear()
    stdout, stderr = attendance.close()
    status = process.wait()
    return Ended(
        status=status,
        wall_ns=(attendance.ended_ns or started_ns) - started_ns,
        stdout=stdout,
        stderr=stderr,
        timed_out=not in_time and not stopping.is_set(),
        interrupted=not in_time and stopping.is_set(),
        forced=forced,
        left_running=left_running,
    )
