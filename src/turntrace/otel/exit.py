"""The end of the process: live turns closed, the file complete, exporters given a bounded time.

No signal handler is installed by default: a SIGINT handler would switch off asyncio's own, a SIGTERM
handler would delay death, and the journal needs neither.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from turntrace.otel.processor import TurnSpanProcessor

__all__ = ["at_exit", "end", "flush_on_sigterm"]


def end(processor: TurnSpanProcessor, shut_down: Callable[[], None], timeout_s: float) -> None:
    """Close every turn and meanwhile give ``shut_down`` (the exporters) at most ``timeout_s`` seconds.

    The exporters run on the writer's daemon thread, beside this one, which writes the file; when time is
    up they are left to die with the process: what they held is counted, and in the file.
    """
    deadline_s = time.monotonic() + timeout_s
    writer = processor.recording.writer
    writer.run_jobs()  # the last metrics
    processor.closer.measure_live()
    done = threading.Event()

    def work() -> None:
        try:
            shut_down()
        finally:
            done.set()

    is_aside = writer.run_aside(work)
    processor.closer.close_all(deadline_s)
    if is_aside and not done.wait(max(0.0, deadline_s - time.monotonic())) and processor.unsettled:
        processor.recording.guard.drop("export_unfinished", processor.unsettled)
    writer.stop(0.0)


def at_exit(callback: Callable[[], None]) -> Callable[[], None]:
    """Register ``callback`` for the end of this process and of its forked children; returns what undoes it."""
    return _AtExit(callback).undo


class _AtExit:
    """A callback on the lists of all the ways in which a process ends by itself.

    multiprocessing ends its workers without atexit and has a list of its own, which it empties in a
    forked worker before it asks who wants to be on it again.
    """

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._is_wanted = True
        atexit.register(self._once)
        self._list_in_worker()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._ask_in_child)

    def undo(self) -> None:
        self._is_wanted = False
        atexit.unregister(self._once)

    def _once(self) -> None:
        if self._is_wanted:
            self._callback()

    def _list_in_worker(self, _: object = None) -> None:
        util = sys.modules.get("multiprocessing.util")
        if util is not None and multiprocessing.parent_process() is not None:
            util.Finalize(None, self._once, exitpriority=0)

    def _ask_in_child(self) -> None:
        util = sys.modules.get("multiprocessing.util")
        if util is not None and self._is_wanted:
            util.register_after_fork(self, _AtExit._list_in_worker)


def flush_on_sigterm(flush: Callable[[], None]) -> bool:
    """Flush on SIGTERM, then die of it as if nothing had been there; False where that cannot be.

    Only from the main thread and only over the default action. The flush runs in a daemon thread, since
    a handler may interrupt code that holds the very locks it needs.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return False

    def handler(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

        def flush_and_die() -> None:
            try:
                flush()
            finally:
                os.kill(os.getpid(), number)

        threading.Thread(target=flush_and_die, name="turntrace-sigterm", daemon=True).start()

    signal.signal(signal.SIGTERM, handler)
    return True
