"""The process beside ``turntrace collect`` that makes turns of what came: ``python -m`` this module.

Its one argument is JSON that ``collect`` made. Its input says when all is received; its output is what it did.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import orjson

from turntrace.cli.selection import rule_of
from turntrace.collect.forwarder import Forwarder
from turntrace.collect.gathering import Waits
from turntrace.collect.service import DONE, receiver_lock
from turntrace.collect.worker import Work, Worker
from turntrace.config import Settings
from turntrace.files.append import Rotation
from turntrace.files.lock import FileLock

__all__ = ["main"]

_EARLIER_S: Final = 3_600.0
_FAILED_STATUS: Final = 1
_NICENESS: Final = 5


def main() -> None:
    """Work until the receiver is done, or gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the receiver decides; its end is the end of our input
    with contextlib.suppress(AttributeError, OSError):
        os.nice(_NICENESS)  # what comes in is acknowledged before what came is analysed
    given: dict[str, Any] = orjson.loads(sys.argv[1])
    settings = Settings.from_env()
    folder = Path(given["folder"])
    out = None if given["out"] is None else Path(given["out"])
    work = Work(
        folder=folder,
        out=out,
        rotation=Rotation(settings.trace_max_bytes, settings.trace_keep),
        waits=Waits(linger_s=settings.linger_s),
        exit_s=settings.exit_timeout_s,
    )
    rule = None if settings.turn_rule is None else rule_of(settings.turn_rule)
    with ExitStack() as stack:
        stack.enter_context(FileLock(folder / "worker.lock", _EARLIER_S))  # an earlier one finishes first
        forwarder = _forwarder(given, settings, folder)
        if forwarder is not None:
            stack.enter_context(forwarder)
        ending = _Ending(folder, stack)
        worker = stack.enter_context(Worker(work, rule, forwarder))
        outcome = worker.run(ending.is_over)
    sys.stdout.buffer.write(orjson.dumps(outcome.as_dict()) + b"\n")


def _forwarder(given: dict[str, Any], settings: Settings, folder: Path) -> Forwarder | None:
    endpoint = given["endpoint"]
    if endpoint is None:
        return None
    from turntrace.otel.probe import is_listening
    from turntrace.otel.sender import Sender

    sender = Sender(settings, endpoint, keeps_content=given["keeps_content"])
    return Forwarder(folder / "forward", sender, lambda: is_listening(endpoint))


class _Ending:
    """Knows from the standard input whether the receiver is done, and what to do when it was killed."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._over = threading.Event()
        threading.Thread(target=self._listen, name="turntrace-ending", daemon=True).start()

    @property
    def is_over(self) -> Callable[[], bool]:
        """Whether nothing more will be written to the queue."""
        return self._over.is_set

    def _listen(self) -> None:
        told = b""
        while piece := os.read(0, len(DONE)):  # not through sys.stdin: this thread may be there at the exit
            told += piece
        if told != DONE:
            lock = self._stack.enter_context(receiver_lock(self._folder, 0))
            if not lock.held:  # another receiver has the queue by now, and a worker of its own to come
                os._exit(_FAILED_STATUS)
        self._over.set()


if __name__ == "__main__":
    main()
