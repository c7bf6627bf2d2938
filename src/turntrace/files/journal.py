"""The journal of one live turn: one write(2) a line, marked as alive by a lock of the kernel's."""

import os
import threading
import time
from pathlib import Path
from typing import Final

from turntrace.files.append import write_all
from turntrace.files.calls import Calls, fcntl
from turntrace.files.descriptors import give_back, take
from turntrace.files.out import FILE_MODE

__all__ = ["JournalFile"]

_PATIENCE_NS: Final = 10_000_000


class JournalFile:
    """An append-only file that is created at the first line and deleted when its block is written."""

    __slots__ = ("_calls", "_fd", "_is_deleted", "_is_torn", "_lock", "is_written", "path", "size_bytes")

    def __init__(self, path: Path, calls: Calls | None = None) -> None:
        self.path = path
        self.is_written = False
        self._calls = calls or Calls()
        self._fd = -1
        self._is_torn = False
        self._is_deleted = False
        self._lock = threading.RLock()  # a descriptor that one thread closes may be another file's at once
        self.size_bytes = 0

    def write(self, lines: bytes) -> int:
        """Append whole lines at once and return the offset of the first.

        After a write that failed the next one starts a line of its own. A journal that was deleted takes
        nothing more: its turn stands in the file.

        Raises:
            OSError: when the file cannot be opened or the disk does not take the lines.
        """
        with self._lock:
            if self._is_deleted:
                return self.size_bytes
            if self._fd < 0:
                self._open()
            if self._is_torn:
                self._mend()
            start = self.size_bytes
            self._is_torn = True
            written = self._calls.write(self._fd, lines)
            if written != len(lines):
                write_all(self._fd, lines[written:])
            self._is_torn = False
            self.size_bytes = start + len(lines)
            return start

    def _mend(self) -> None:
        """Start a line of its own after one that may be cut."""
        write_all(self._fd, b"\n")
        self.size_bytes = self._calls.size_bytes(self._fd)

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        while self._fd < 0:
            fd = take(lambda: self._calls.open(self.path, flags, FILE_MODE))
            self._mark(fd)
            if os.fstat(fd).st_nlink:
                self._fd = fd
            else:  # whoever had joined it deleted it in between
                give_back(fd, self._calls.close)
        self.is_written = True

    def _mark(self, fd: int) -> None:
        """Lock the file; who looks at a lock or deletes the file holds it for a moment only."""
        deadline_ns = time.monotonic_ns() + _PATIENCE_NS
        while not self._calls.lock(fd) and fcntl is not None and time.monotonic_ns() < deadline_ns:
            time.sleep(0.0005)

    def leave(self) -> None:
        """Let the file stand as it is, for the next process."""
        self.close()

    def close(self) -> None:
        """Close the descriptor; the next line opens the file again."""
        with self._lock:
            if self._fd >= 0:
                fd, self._fd = self._fd, -1
                give_back(fd)

    def forget(self) -> None:
        """In a forked child, which has no descriptor of it, and a lock that may be held for ever."""
        self._fd, self._lock = -1, threading.RLock()

    def delete(self) -> None:
        """Remove the file; nothing happens when it never was written."""
        with self._lock:
            if self.is_written:
                self._is_deleted = True
                self.path.unlink(missing_ok=True)
                self.close()

    def read(self) -> list[bytes]:
        """The lines written so far, line feeds included; empty when there is no file."""
        if not self.is_written:
            return []
        with self.path.open("rb") as file:
            return file.readlines()

    def part(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset`` on."""
        return os.pread(self._fd, length, offset) if self._fd >= 0 else b""
