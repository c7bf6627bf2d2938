"""An advisory lock on a file, opened anew for each use, which a forked child never keeps."""

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from turntrace.files.calls import Calls, fcntl
from turntrace.files.descriptors import give_back, take
from turntrace.files.out import FILE_MODE

__all__ = ["LOCK_TIMEOUT_S", "FileLock", "claimed", "is_locked"]

LOCK_TIMEOUT_S: Final = 1.0
_CALLS: Final = Calls()
_POLL_S: Final = 0.005


class FileLock:
    """``with FileLock(path) as lock``: exclusive while ``lock.held``; waits at most ``timeout_s``."""

    __slots__ = ("_calls", "_fd", "_path", "_timeout_s", "held")

    def __init__(self, path: Path, timeout_s: float = LOCK_TIMEOUT_S, calls: Calls = _CALLS) -> None:
        self._path = path
        self._calls = calls
        self._timeout_s = timeout_s
        self._fd = -1
        self.held = False

    def __enter__(self) -> Self:
        if fcntl is None:
            return self
        deadline = time.monotonic() + self._timeout_s
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._fd = take(lambda: self._calls.open(self._path, flags, FILE_MODE))
        while not (held := self._calls.lock(self._fd)) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self.held = held
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            give_back(self._fd, self._calls.close)  # the only descriptor of this open file: the lock is free
        self._fd = -1
        self.held = False


def is_locked(path: Path) -> bool:
    """Whether a living process has locked ``path``; False where locks do not exist."""
    if fcntl is None:
        return False
    try:
        fd = take(lambda: os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        return False
    try:
        return not _CALLS.lock(fd)
    finally:
        give_back(fd)


class claimed:  # noqa: N801 - reads as a word: with claimed(path) as is_mine
    """``with claimed(path) as is_mine``: True for the one process that may take the file away."""

    __slots__ = ("_fd", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> bool:
        try:
            self._fd = take(lambda: os.open(self._path, os.O_RDWR | os.O_CLOEXEC))
        except FileNotFoundError:
            return False
        return fcntl is None or _CALLS.lock(self._fd)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            give_back(self._fd)
            self._fd = -1
