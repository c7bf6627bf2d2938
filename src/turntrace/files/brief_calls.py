"""System calls for a writer's thread that keep the interpreter lock while they run.

A call that takes a microsecond costs five milliseconds when the lock has to be asked back from a busy
thread: with hundreds of journals a writer would fall seconds behind. A disk that is slow is noticed
once, and from then on every call gives the lock away as usual.
"""

import ctypes
import os
import time
from pathlib import Path
from typing import Any, Final

from turntrace.files.lock import fcntl, lock_for_life

__all__ = ["BriefCalls", "Calls"]

_SLOW_NS: Final = 5_000_000


def _libc() -> Any:
    try:
        libc = ctypes.PyDLL(None, use_errno=True)
        libc.write.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
        libc.write.restype = ctypes.c_ssize_t
        libc.open.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_uint)
    except (OSError, AttributeError, TypeError):  # no libc to be had: a platform without dlopen(NULL)
        return None
    return libc


class Calls:
    """open(2), write(2) and flock(2) as the standard library makes them."""

    __slots__ = ()

    def open(self, path: Path, flags: int, mode: int) -> int:
        """As os.open.

        Raises:
            OSError: when the file cannot be opened.
        """
        return os.open(path, flags, mode)

    def write(self, fd: int, data: bytes) -> int:
        """As os.write.

        Raises:
            OSError: when nothing could be written.
        """
        return os.write(fd, data)

    def lock(self, fd: int) -> None:
        """As lock_for_life."""
        lock_for_life(fd)


class BriefCalls(Calls):
    """The same for one writer, with the interpreter lock kept; ``is_brief`` until a call was slow."""

    __slots__ = ("_libc", "is_brief")

    def __init__(self) -> None:
        self._libc = _libc()
        self.is_brief = self._libc is not None

    def open(self, path: Path, flags: int, mode: int) -> int:
        """See Calls."""
        if not self.is_brief:
            return super().open(path, flags, mode)
        start_ns = time.monotonic_ns()
        fd: int = self._libc.open(os.fsencode(path), flags, mode)
        return self._checked(fd, start_ns, str(path))

    def write(self, fd: int, data: bytes) -> int:
        """See Calls."""
        if not self.is_brief:
            return super().write(fd, data)
        start_ns = time.monotonic_ns()
        written: int = self._libc.write(fd, data, len(data))
        return self._checked(written, start_ns, None)

    def lock(self, fd: int) -> None:
        """See Calls."""
        if not self.is_brief or fcntl is None:
            super().lock(fd)
        else:
            self._libc.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _checked(self, result: int, start_ns: int, path: str | None) -> int:
        if time.monotonic_ns() - start_ns > _SLOW_NS:
            self.is_brief = False
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return result
