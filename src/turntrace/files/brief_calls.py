"""System calls for a writer's thread that keep the interpreter lock while they run.

A call that takes a microsecond costs five milliseconds when the lock has to be asked back from a busy
thread: with hundreds of journals a writer would fall seconds behind, and one that holds the lock of a
shared file would hold up the writers of other processes. A disk that is slow is noticed after two calls;
then every call gives the lock away as usual, and now and then one finds out whether it still is.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import Any, Final

from turntrace.files.calls import Calls, fcntl

__all__ = ["BriefCalls", "Calls"]

_SLOW_NS: Final = 5_000_000
_PAUSE_NS: Final = 5_000_000_000
_LONGEST_PAUSE_NS: Final = 300_000_000_000
"""How long a slow disk is written to as usual before the next brief call is tried."""

_LARGE_BYTES: Final = 256 << 10
"""A write of more than this takes so long that the five milliseconds are well spent."""


def _libc() -> Any:
    try:
        libc = ctypes.PyDLL(None, use_errno=True)
        libc.write  # noqa: B018 - its arguments fit an int: to convert them by type takes longer than the call
        libc.open.argtypes = (ctypes.c_char_p, ctypes.c_int)  # the mode is variadic, which matters on arm64
        libc.lseek.argtypes = (ctypes.c_int, ctypes.c_longlong, ctypes.c_int)
        libc.lseek.restype = ctypes.c_longlong
        libc.pread.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_longlong)
        libc.pread.restype = ctypes.c_ssize_t
    except (OSError, AttributeError, TypeError):  # no libc to be had: a platform without dlopen(NULL)
        return None
    return libc


class BriefCalls(Calls):
    """The same with the interpreter lock kept, as long as the disk is not slow."""

    __slots__ = ("_again_ns", "_libc", "_pause_ns", "_slow")

    def __init__(self) -> None:
        self._libc = _libc()
        self._slow = 0
        self._again_ns = 0
        self._pause_ns = _PAUSE_NS

    def open(self, path: Path, flags: int, mode: int) -> int:
        """See Calls."""
        if not self.is_brief:
            return super().open(path, flags, mode)
        name, variadic = os.fsencode(path), ctypes.c_uint(mode)
        return self._made(lambda: self._libc.open(name, flags, variadic), str(path))

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """See Calls."""
        is_usual = self._libc is None or (self._again_ns and not self._is_time())
        if is_usual or len(data) > _LARGE_BYTES or type(data) is not bytes:
            return super().write(fd, data)
        start_ns = monotonic_ns()
        written: int = self._libc.write(fd, data, len(data))
        if written < 0:
            return self._made(lambda: self._libc.write(fd, data, len(data)))
        if self._slow or monotonic_ns() - start_ns > _SLOW_NS:
            self._judge(start_ns)
        return written

    def close(self, fd: int) -> None:
        """See Calls."""
        if self.is_brief:
            self._made(lambda: self._libc.close(fd))
        else:
            super().close(fd)

    def lock(self, fd: int) -> bool:
        """See Calls."""
        if not self.is_brief or fcntl is None:
            return super().lock(fd)
        taken: bool = self._libc.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB) == 0
        return taken

    def size_bytes(self, fd: int) -> int:
        """See Calls."""
        if not self.is_brief:
            return super().size_bytes(fd)
        return self._made(lambda: self._libc.lseek(fd, 0, os.SEEK_END))

    def byte_at(self, fd: int, offset: int) -> bytes:
        """See Calls."""
        if not self.is_brief:
            return super().byte_at(fd, offset)
        found = ctypes.create_string_buffer(1)
        length_bytes = self._made(lambda: self._libc.pread(fd, found, 1, offset))
        return found.raw[:length_bytes]

    def _made(self, call: Callable[[], int], path: str | None = None) -> int:
        """The result of ``call``, made again when a signal came in between."""
        start_ns = monotonic_ns()
        while (result := call()) < 0:
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number), path)
        self._judge(start_ns)
        return result

    def _judge(self, start_ns: int) -> None:
        """Note how long a call took: two slow ones in a row are a slow disk.

        A single one may have waited for the interpreter lock, which another thread took just before it.
        """
        now_ns = monotonic_ns()
        if now_ns - start_ns <= _SLOW_NS:
            self._slow, self._pause_ns = 0, _PAUSE_NS
            return
        self._slow += 1
        if self._slow > 1:
            self._again_ns = now_ns + self._pause_ns
            self._pause_ns = min(2 * self._pause_ns, _LONGEST_PAUSE_NS)

    @property
    def is_brief(self) -> bool:
        """Whether calls keep the lock: on a disk that was not slow lately."""
        return self._libc is not None and (not self._again_ns or self._is_time())

    def _is_time(self) -> bool:
        """Whether the disk has had its rest; one more slow call gives it a longer one."""
        if monotonic_ns() < self._again_ns:
            return False
        self._slow, self._again_ns = 1, 0
        return True
