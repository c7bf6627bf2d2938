"""A queue of requests on disk: segments of whole records, appended by one process and read by another.

A segment has a number, holds one signal in one encoding, and is a file that ``turntrace report`` reads. The
queue is bounded in bytes and in age: the oldest segments go, counted.
"""

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self, cast

from turntrace.collect.sink import ContentKind, Signal, append_whole, record
from turntrace.files.out import FILE_MODE

__all__ = ["Segment", "Spool", "SpoolBounds", "segments"]

_NAME: Final = re.compile(r"(\d{12})\.(traces|metrics|logs)\.(pb|jsonl)")
_SUFFIXES: Final[dict[ContentKind, str]] = {"protobuf": "pb", "json": "jsonl"}
_KINDS: Final[dict[str, ContentKind]] = {suffix: kind for kind, suffix in _SUFFIXES.items()}
_FOLDER_MODE: Final = 0o700


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolBounds:
    """How much a queue holds, for how long, and how large a segment gets."""

    max_bytes: int = 2 << 30
    max_age_s: float = 86_400.0
    segment_bytes: int = 8 << 20


class Segment(NamedTuple):
    """A file of a queue."""

    number: int
    signal: Signal
    kind: ContentKind
    path: Path


def segments(folder: Path) -> list[Segment]:
    """The segments in ``folder``, the oldest first."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = _NAME.fullmatch(entry.name)
            if name is not None:
                signal, kind = cast("Signal", name[2]), _KINDS[name[3]]
                found.append(Segment(int(name[1]), signal, kind, folder / entry.name))
    return sorted(found)


class _Current(NamedTuple):
    segment: Segment
    fd: int


_DEFAULTS: Final = SpoolBounds()


class Spool:
    """``with Spool(folder) as sink``: the writing end. What ``take`` has returned for survives a kill."""

    __slots__ = ("_bounds", "_current", "_folder", "_lock", "_next", "_now_s", "dropped_bytes")

    def __init__(
        self, folder: Path, bounds: SpoolBounds = _DEFAULTS, now_s: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._bounds = bounds
        self._now_s = now_s
        self._lock = threading.Lock()
        self._current: dict[tuple[Signal, ContentKind], _Current] = {}
        self._next = 0
        self.dropped_bytes = 0

    def __enter__(self) -> Self:
        """Make the folder; segments that are there stay, and are never appended to again.

        Raises:
            OSError: when the folder cannot be made or read.
        """
        self._folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        self._next = max((one.number for one in segments(self._folder)), default=0) + 1
        self.tidy()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def take(self, signal: Signal, body: bytes, kind: ContentKind) -> None:
        """See Sink."""
        data = record(body, kind)
        with self._lock:
            current = self._current.get((signal, kind))
            if current is None or os.fstat(current.fd).st_size + len(data) > self._bounds.segment_bytes:
                current = self._rotated(signal, kind, len(data))
            append_whole(current.fd, data)

    def _rotated(self, signal: Signal, kind: ContentKind, size_bytes: int) -> _Current:
        self._tidy(max(size_bytes, self._bounds.segment_bytes))
        path = self._folder / f"{self._next:012}.{signal}.{_SUFFIXES[kind]}"
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        old = self._current.get((signal, kind))
        if old is not None:
            os.close(old.fd)
        current = _Current(Segment(self._next, signal, kind, path), fd)
        self._current[signal, kind] = current
        self._next += 1
        return current

    def tidy(self) -> None:
        """Delete what is too old, or too much."""
        with self._lock:
            self._tidy(0)

    def _tidy(self, wanted_bytes: int) -> None:
        """Delete the oldest segments that are not being written, until ``wanted_bytes`` have room."""
        writing = {current.segment.number for current in self._current.values()}
        sizes = [(one, stat) for one in segments(self._folder) if (stat := _stat(one.path)) is not None]
        total_bytes = wanted_bytes + sum(stat.st_size for _, stat in sizes)
        oldest_s = self._now_s() - self._bounds.max_age_s
        for segment, stat in sizes:
            is_due = total_bytes > self._bounds.max_bytes or stat.st_mtime < oldest_s
            if is_due and segment.number not in writing:
                segment.path.unlink(missing_ok=True)
                total_bytes -= stat.st_size
                self.dropped_bytes += stat.st_size

    def close(self) -> None:
        """Close the segments that are being written."""
        with self._lock:
            for current in self._current.values():
                os.close(current.fd)
            self._current = {}


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:  # read and deleted meanwhile
        return None
