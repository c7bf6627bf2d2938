"""Where accepted requests go: the protocol, and the sink that appends them to files as they came.

A request is acknowledged when the sink has returned: what a killed process acknowledged is on disk.
"""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, Protocol, Self

import orjson

from turntrace.files.append import write_all
from turntrace.files.out import FILE_MODE

__all__ = ["MAX_FRAME_BYTES", "ContentKind", "RequestFiles", "Signal", "Sink", "record", "tail_of_frames"]

Signal = Literal["traces", "metrics", "logs"]
ContentKind = Literal["protobuf", "json"]

MAX_FRAME_BYTES: Final = 512 << 20
_LENGTH_BYTES: Final = 4
_FOLDER_MODE: Final = 0o700
_SUFFIXES: Final = {"protobuf": "pb", "json": "jsonl"}


class Sink(Protocol):
    """Takes accepted requests; called from several threads at once."""

    def take(self, signal: Signal, body: bytes, kind: ContentKind) -> None:
        """Store one request, as it was received and inflated; its sender is told that it is safe.

        Raises:
            OSError: when it could not be stored; the sender is told to try again.
        """
        ...


def record(body: bytes, kind: ContentKind) -> bytes:
    """A request as a record of a file: a JSON line, or a protobuf message with four bytes of length before it.

    It is how the collector's file exporter writes them.
    """
    if kind == "protobuf":
        return len(body).to_bytes(_LENGTH_BYTES, "big") + body
    return (orjson.dumps(orjson.loads(body)) if b"\n" in body or b"\r" in body else body) + b"\n"


class RequestFiles:
    """``with RequestFiles(folder) as sink``: a file for each signal and kind, ``traces.pb``, ``traces.jsonl`` ...

    ``turntrace report`` reads those of traces. A file that a killed process left is appended to after what
    was torn at its end, which nobody was told to be safe, is cut off. Files are mode 0600.
    """

    __slots__ = ("_files", "_folder", "_lock")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._files: dict[Path, int] = {}

    def __enter__(self) -> Self:
        self._folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def take(self, signal: Signal, body: bytes, kind: ContentKind) -> None:
        """See Sink."""
        data = record(body, kind)
        path = self._folder / f"{signal}.{_SUFFIXES[kind]}"
        with self._lock:
            append_whole(self._open(path, kind), data)

    def _open(self, path: Path, kind: ContentKind) -> int:
        fd = self._files.get(path)
        if fd is None:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
            self._files[path] = fd
            os.ftruncate(fd, tail_of_frames(fd) if kind == "protobuf" else _tail_of_lines(fd))
        return fd

    def paths(self, signal: Signal) -> Sequence[Path]:
        """The files of a signal that are there."""
        return [
            path for suffix in _SUFFIXES.values() if (path := self._folder / f"{signal}.{suffix}").exists()
        ]

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            for fd in self._files.values():
                os.close(fd)
            self._files = {}


def append_whole(fd: int, data: bytes) -> None:
    """Append ``data`` whole, or not at all.

    Raises:
        OSError: when the disk does not take it; what was written of it is taken back.
    """
    size_bytes = os.fstat(fd).st_size
    try:
        write_all(fd, data)
    except OSError:
        os.ftruncate(fd, size_bytes)
        raise


def tail_of_frames(fd: int) -> int:
    """The offset in bytes after the last whole message of a file of messages with their lengths."""
    end, size_bytes = 0, os.fstat(fd).st_size
    while end + _LENGTH_BYTES <= size_bytes:
        length = int.from_bytes(os.pread(fd, _LENGTH_BYTES, end), "big")
        if length > MAX_FRAME_BYTES or end + _LENGTH_BYTES + length > size_bytes:
            break
        end += _LENGTH_BYTES + length
    return end


def _tail_of_lines(fd: int) -> int:
    """The offset in bytes after the last line feed."""
    end = os.fstat(fd).st_size
    while end:
        start = max(0, end - (1 << 16))
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
