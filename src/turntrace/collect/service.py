"""The receiver, its queue and the worker process: what ``turntrace collect`` runs."""

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import orjson

from turntrace.collect.receiver import Receiver, Settings
from turntrace.collect.spool import Spool, SpoolBounds
from turntrace.collect.worker import requests_folder
from turntrace.errors import ConfigurationError
from turntrace.files.lock import FileLock

__all__ = ["DONE", "Service", "ServicePlan", "receiver_lock"]

DONE: Final = b"done\n"
"""What the worker reads from its standard input when all requests are in the queue."""

_STOP_S: Final = 5.0
_LOCK_S: Final = 30.0
_TIDY_S: Final = 60.0
_POLL_S: Final = 0.2
_MOST_RESTARTS: Final = 5

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """``folder`` has the queues; ``command`` starts a worker on it."""

    receiver: Settings
    folder: Path
    command: Sequence[str]
    bounds: SpoolBounds = field(default_factory=SpoolBounds)


def receiver_lock(folder: Path, timeout_s: float) -> FileLock:
    """The lock of the one process that may write to the queues in ``folder``."""
    return FileLock(folder / "lock", timeout_s)


class Service:
    """``with Service(plan, say) as service: service.wait(stop)``; then ``finish()`` has the numbers."""

    def __init__(self, plan: ServicePlan, say: Say) -> None:
        self._plan = plan
        self._say = say
        self._stack = ExitStack()
        self._restarts = 0
        self._worker: subprocess.Popen[bytes]
        self.receiver: Receiver
        self._spool: Spool

    def __enter__(self) -> Self:
        """Take the queue, start the worker and listen.

        Raises:
            ConfigurationError: when the queue is another process's, or an address cannot be bound.
        """
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _open(self) -> None:
        plan = self._plan
        self._spool = Spool(requests_folder(plan.folder), plan.bounds)
        self.receiver = Receiver(self._spool, plan.receiver)
        try:
            plan.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = self._stack.enter_context(receiver_lock(plan.folder, 0))
            if not lock.held:
                self._say(f"an earlier collect still works on {plan.folder}; waiting for it")
                lock = self._stack.enter_context(receiver_lock(plan.folder, _LOCK_S))
            if not lock.held:
                raise ConfigurationError(
                    f"another turntrace collect uses {plan.folder}: give --spool another folder"
                )
            self._stack.enter_context(self._spool)
        except OSError as error:
            raise ConfigurationError(f"cannot use {plan.folder}: {error.strerror or error}") from error
        self._worker = self._started()
        self._stack.callback(self._abandon)
        self._stack.enter_context(self.receiver)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own command
            list(self._plan.command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    def wait(self, stop: threading.Event) -> None:
        """Serve until ``stop`` is set. A worker that dies is started again: the queue has what it was at."""
        tidy_s = time.monotonic() + _TIDY_S
        while not stop.wait(_POLL_S):
            if self._worker.poll() is not None and not self._restarted():
                return
            if time.monotonic() > tidy_s:
                self._spool.tidy()
                tidy_s = time.monotonic() + _TIDY_S

    def _restarted(self) -> bool:
        self._restarts += 1
        status = self._worker.returncode
        if self._restarts > _MOST_RESTARTS:
            self._say(
                f"the process that makes turns ended again (status {status}); what came is in {self._plan.folder}"
            )
            return False
        self._say(f"the process that makes turns ended (status {status}); it is started again")
        time.sleep(min(2.0**self._restarts / 10, 5.0))
        self._abandon()
        self._worker = self._started()
        return True

    def finish(self) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
        """Stop receiving and let the worker finish; what each did. None for a worker that failed."""
        self.receiver.stop(_STOP_S)
        self._spool.close()
        outcome: Mapping[str, Any] | None = None
        try:
            told, _ = self._worker.communicate(DONE)
            outcome = orjson.loads(told) if self._worker.returncode == 0 else None
        except (OSError, ValueError):
            outcome = None
        totals = self.receiver.totals
        received = {
            "requests": totals.requests,
            "items": totals.items,
            "rejected": totals.rejected,
            "dropped": totals.dropped,
            "spool_dropped_bytes": self._spool.dropped_bytes,
        }
        return received, outcome

    @property
    def worker_pid(self) -> int:
        """The process that makes turns."""
        return self._worker.pid

    def _abandon(self) -> None:
        """Let go of the worker; one that still runs sees its input end."""
        for pipe in (self._worker.stdin, self._worker.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._worker.wait(_STOP_S if self._worker.poll() is None else None)
        if self._worker.poll() is None:
            os.kill(self._worker.pid, 9)
            self._worker.wait()
