"""Isolation by process group alone: what every system has, with a watchdog for the harness's own death."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from turntrace.bench.isolation import Command, Ended, Mode
from turntrace.bench.isolation_child import attend

__all__ = ["ProcessGroups", "Watchdog"]

_WATCHDOG: Final = """\
import os, signal, sys
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


_LISTED: Final = Path("/proc/self")
_GROUP_FIELD: Final = 2
"""Of what follows the name in a process's stat."""


class Watchdog:
    """A child that kills the process groups it was told of once its pipe from here closes, whatever the cause."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own text
            [sys.executable, "-I", "-S", "-u", "-c", _WATCHDOG],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
        )
        self._lock = threading.Lock()

    def watch(self, group: int) -> None:
        """Kill ``group`` too."""
        self._say(f"+{group}\n")

    def forget(self, group: int) -> None:
        """``group`` is gone; its number may be given to somebody else."""
        self._say(f"-{group}\n")

    def _say(self, line: str) -> None:
        pipe = self._process.stdin
        if pipe is not None:
            with self._lock:
                pipe.write(line.encode())
                pipe.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()


class _Group:
    """The processes that stayed in the group of the one that was started."""

    def __init__(self, group: int) -> None:
        self._group = group

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def clear(self) -> bool | None:
        """The first is a zombie by now: another one in its group was left behind."""
        left = any(pid != self._group for pid in _members(self._group)) if _LISTED.is_dir() else None
        self.kill()
        return left

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):  # macOS refuses a group of zombies
            os.killpg(self._group, number)


def _members(group: int) -> Iterator[int]:
    """The processes of a group, from what the system lists. A name may hold blanks and parentheses."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[_GROUP_FIELD]) == group:
                yield int(entry.name)


class ProcessGroups:
    """Runs commands in process groups of their own."""

    mode: Mode = "process"

    def __init__(self, watchdog: Watchdog, stopping: threading.Event) -> None:
        self._watchdog = watchdog
        self._stopping = stopping

    def run(self, command: Command) -> Ended:
        """Run a command; what left its session is not reached."""
        with tempfile.TemporaryFile() as stdin:
            stdin.write(command.stdin)
            stdin.seek(0)
            started_ns = time.monotonic_ns()
            try:
                process = subprocess.Popen(  # noqa: S603 - running what the person names is the purpose
                    command.argv,
                    cwd=command.cwd,
                    env=dict(command.env),
                    stdin=stdin if command.stdin else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                return Ended(status=None, wall_ns=0, error=f"{Path(command.argv[0]).name}: {error.strerror}")
        self._watchdog.watch(process.pid)
        try:
            return attend(
                process,
                _Group(process.pid),
                started_ns=started_ns,
                timeout_s=command.timeout_s,
                most_bytes=command.output_bytes,
                stopping=self._stopping,
            )
        finally:
            self._watchdog.forget(process.pid)
