"""The end of the process: live turns closed, the file complete, exporters given a bounded time.

No signal handler is installed by default: a SIGINT handler would switch off asyncio's own, a SIGTERM
handler would delay death, and the journal needs neither.
"""

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from turntrace.otel.processor import TurnSpanProcessor

__all__ = ["at_exit", "end", "flush_on_sigterm"]


def end(processor: TurnSpanProcessor, shut_down: Callable[[], None], timeout_s: float) -> None:
    """Close every turn and meanwhile give ``shut_down`` (the exporters) at most ``timeout_s`` seconds.

    The exporters run on the writer's daemon thread, beside this one, which writes the file; when time is
    up they are left to die with the process, and what they held is in the file.
    """
    deadline_s = time.monotonic() + timeout_s
    writer = processor.recording.writer
    writer.run_jobs()  # the last metrics
    done = threading.Event()

    def work() -> None:
        try:
            shut_down()
        finally:
            done.set()

    is_aside = writer.run_aside(work)
    processor.closer.close_all()
    if is_aside:
        done.wait(max(0.0, deadline_s - time.monotonic()))
    writer.stop(0.0)


def at_exit(callback: Callable[[], None]) -> Callable[[], None]:
    """Register ``callback`` for the end of this process only; returns what undoes it."""
    pid = os.getpid()

    def once() -> None:
        if os.getpid() == pid:
            callback()

    atexit.register(once)
    return lambda: atexit.unregister(once)


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
