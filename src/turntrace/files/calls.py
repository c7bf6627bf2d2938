"""The few system calls that writing takes, as the standard library makes them."""

import os
from pathlib import Path
from typing import Any

fcntl: Any  # the name stays bound where the module is missing, so that callers can test it
try:
    import fcntl
except ImportError:  # not on Windows: every process writes to a file of its own there
    fcntl = None

__all__ = ["Calls", "fcntl"]


class Calls:
    """open(2), write(2), close(2), flock(2), and the end of a file."""

    __slots__ = ()

    @property
    def is_brief(self) -> bool:
        """Whether a call keeps the interpreter lock."""
        return False

    def open(self, path: Path, flags: int, mode: int) -> int:
        """As os.open.

        Raises:
            OSError: when the file cannot be opened.
        """
        return os.open(path, flags, mode)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """As os.write.

        Raises:
            OSError: when nothing could be written.
        """
        return os.write(fd, data)

    def close(self, fd: int) -> None:
        """As os.close."""
        os.close(fd)

    def lock(self, fd: int) -> bool:
        """Take the exclusive lock of an open file at once; False when another one has it or there is none.

        The kernel frees it when the descriptor is closed or the process ends, however it ends.
        """
        if fcntl is None:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # taken, or a file system that has no locks
            return False
        return True

    def size_bytes(self, fd: int) -> int:
        """The size of an open file."""
        return os.lseek(fd, 0, os.SEEK_END)

    def byte_at(self, fd: int, offset: int) -> bytes:
        """One byte of an open file."""
        return os.pread(fd, 1, offset)
