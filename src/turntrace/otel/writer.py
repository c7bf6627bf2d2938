"""The writer: one daemon thread that encodes, writes, closes turns and keeps time for lingering ones.

It starts with the first thing there is to do, never at configure, so that a fork before that is clean.
In thread mode every journal line passes here, at most 50 ms behind; callers only append to a deque.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from turntrace.otel.guard import Guard

__all__ = ["LATER_LIMIT", "QUEUE_LIMIT", "Flushable", "Writer"]

_TICK_S: Final = 0.05
_SLICE_NS: Final = 20_000_000
"""How long jobs run before what they gathered is written: a long queue delays no line by its length."""

QUEUE_LIMIT: Final = 200_000
"""Jobs that may wait; on a disk that takes nothing, later ones are dropped and counted."""


LATER_LIMIT: Final = 10_000
"""Turns that may wait for their block; later ones stay in the journal."""

Job = tuple[Callable[..., None], tuple[Any, ...]]


class Flushable(Protocol):
    """Something that gathers lines while jobs run and writes them at once afterwards."""

    def flush(self) -> None:
        """Write what was gathered."""
        ...


class Writer:
    """Runs jobs in order on one thread. ``submit`` never blocks and never raises."""

    __slots__ = (
        "_after",
        "_aside",
        "_asleep",
        "_busy",
        "_guard",
        "_jobs",
        "_later",
        "_ran",
        "_start",
        "_stop",
        "_thread",
        "_tick",
        "_wake",
        "gathered",
    )

    def __init__(self, guard: Guard, tick: Callable[[], bool], after: Callable[[], None]) -> None:
        """Make a writer; its thread starts with the first job.

        Args:
            guard: counts what is dropped and takes the errors of jobs.
            tick: called at least every 50 ms while it returns True (something waits for time).
            after: called when a slice of jobs has run and what they gathered was flushed.
        """
        self._guard = guard
        self._tick = tick
        self._after = after
        self._jobs: deque[Job] = deque()
        self._later: deque[tuple[int, Job]] = deque()
        self._ran = 0
        self._wake = threading.Event()
        self._busy = threading.RLock()
        self._start = threading.RLock()
        self._thread: threading.Thread | None = None
        self._asleep = True
        self._stop = False
        self._aside: Callable[[], None] | None = None
        self.gathered: set[Flushable] = set()

    def submit(self, function: Callable[..., None], *arguments: Any) -> bool:
        """Queue a job; a full queue drops it, counts that and says False."""
        if len(self._jobs) >= QUEUE_LIMIT:
            self._guard.drop("journal_queue")
            return False
        self._jobs.append((function, arguments))
        if self._asleep:
            self.wake()
        return True

    def submit_later(self, function: Callable[..., None], *arguments: Any) -> None:
        """Queue a job that runs after all that ``submit`` was given before it, and gives way to more of that.

        A turn that is over is safe in its journal.
        """
        self._later.append((self._ran + len(self._jobs), (function, arguments)))
        if self._asleep:
            self.wake()

    @property
    def is_behind(self) -> bool:
        """Whether more jobs of ``submit_later`` wait than are worth their memory."""
        return len(self._later) >= LATER_LIMIT

    def wake(self) -> None:
        """Start the thread if need be, and let it look at once."""
        if self._thread is None and not self._stop:
            with self._start:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="turntrace-writer", daemon=True)
                    self._thread.start()
        self._wake.set()

    def drain(self, until_s: float = math.inf) -> None:
        """Run every job that waits, on the calling thread, and write what they gathered.

        From the monotonic second ``until_s`` on, jobs of ``submit_later`` are left.
        """
        with self._busy:
            while self._jobs or self.gathered or (self._later and time.monotonic() < until_s):
                self._run_some(self._next_job)
                if time.monotonic() < until_s:
                    self._run_some(self._next_later)

    def run_jobs(self) -> None:
        """Run what was submitted so far, on the calling thread."""
        with self._busy:
            for _ in range(len(self._jobs)):
                self._run_next(self._next_job)

    def paused(self) -> AbstractContextManager[bool]:
        """``with writer.paused():`` no job runs meanwhile."""
        return self._busy

    def run_aside(self, function: Callable[[], None]) -> bool:
        """Run ``function`` on the writer's thread, beside whoever drains, or here when there is no thread.

        True means that it may still be running. At interpreter exit no thread can be started, and
        without one there is nothing that was recorded to wait for.
        """
        if self._thread is None:
            function()
            return False
        self._aside = function
        self._wake.set()
        return True

    def _next_job(self) -> Job | None:
        if not self._jobs:
            return None
        self._ran += 1  # before it leaves the queue: submit_later() may count it twice, never not at all
        return self._jobs.popleft()

    def _next_later(self) -> Job | None:
        if not self._later or self._later[0][0] > self._ran:
            return None
        return self._later.popleft()[1]

    def _run_next(self, take: Callable[[], Job | None]) -> bool:
        job = take()
        if job is not None:
            self._guarded(*job)
        return job is not None

    def _run_some(self, take: Callable[[], Job | None]) -> None:
        """Run the jobs that ``take`` finds for at most a slice of time, then write what they gathered."""
        deadline_ns = time.monotonic_ns() + _SLICE_NS
        while time.monotonic_ns() < deadline_ns and self._run_next(take):
            pass
        while self.gathered:
            self._guarded(self.gathered.pop().flush, ())
        self._guarded(self._after, ())

    def stop(self, timeout_s: float) -> bool:
        """Let the thread finish its jobs and end; False when it did not within ``timeout_s``."""
        self._stop = True
        self._wake.set()
        thread = self._thread
        if thread is None:
            self.drain()
            return True
        thread.join(timeout_s)
        return not thread.is_alive()

    def _run(self) -> None:
        idle = False
        while not self._stop:
            self._rest(idle=idle)
            had_jobs = bool(self._jobs or self._later)
            self.drain()
            waiting = self._ticked()
            self._run_aside()
            idle = not had_jobs and not waiting
        self.drain()

    def _run_aside(self) -> None:
        function, self._aside = self._aside, None
        if function is not None:
            self._guarded(function, ())

    def _rest(self, *, idle: bool) -> None:
        if idle:
            self._asleep = True  # from here on submit() wakes; a job that came just before is seen below
            if not (self._jobs or self._later or self._aside):
                self._wake.wait()
        elif self._thread is not None:
            self._wake.wait(_TICK_S)  # jobs gather, so that one write takes many lines
        self._asleep = False
        self._wake.clear()

    def _ticked(self) -> bool:
        with self._busy:
            return bool(self._guarded(self._tick, ()))

    def _guarded(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        try:
            return function(*arguments)
        except Exception as error:  # noqa: BLE001 - this thread's part of the guard
            self._guard.caught("writer", error)
            return None
