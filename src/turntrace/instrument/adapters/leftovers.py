"""Calls whose streams were dropped unread: the garbage collector finds them, a thread ends them.

The collector runs in any thread and with any lock held, so what it finds is only put in a queue. The
thread starts with the first stream and sleeps until there is something.
"""

import atexit
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

__all__ = ["LEFTOVERS", "Leftovers"]

_EXIT_S: Final = 1.0


class Leftovers:
    """Runs what ``add`` was given, on a thread of its own; what it runs raises nothing."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._start = threading.Lock()

    def watch(self) -> None:
        """Be ready: called when a stream opens, since a finalizer can start no thread."""
        if self._thread is None:
            with self._start:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="turntrace-leftovers", daemon=True)
                    self._thread.start()
                    atexit.register(self.settle, _EXIT_S)

    def add(self, end: Callable[[], None]) -> None:
        """Run ``end`` soon; may be called from a finalizer."""
        self._queue.put(end)

    def settle(self, timeout_s: float) -> bool:
        """Wait until what was added so far has run; False when it has not within ``timeout_s``."""
        if self._thread is None:
            return True
        done = threading.Event()
        self._queue.put(done.set)
        return done.wait(timeout_s)

    def renew(self) -> None:
        """In a forked child: the thread is not there, and what waited is the parent's."""
        self.__init__()  # type: ignore[misc]  # the same object, as new

    def _run(self) -> None:
        while True:
            self._queue.get()()


LEFTOVERS: Final = Leftovers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LEFTOVERS.renew)
