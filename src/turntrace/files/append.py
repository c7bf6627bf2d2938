"""Appending whole blocks to a trace that any number of processes share."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turntrace.files import lock as locks
from turntrace.files.calls import Calls
from turntrace.files.descriptors import give_back, take
from turntrace.files.lock import FileLock
from turntrace.files.out import FILE_MODE

__all__ = ["Rotation", "append_aside", "append_block", "append_blocks", "write_all"]

_CHUNK_BYTES: Final = 1 << 20
_CALLS: Final = Calls()
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Rotation:
    """When ``OUT`` is moved to ``OUT.1`` before a block, and how many such files are kept."""

    max_bytes: int = 256 * 1024 * 1024
    keep: int = 4


def append_block(out: Path, lines: Iterable[bytes], rotation: Rotation) -> Path:
    """Append one block and return the file it went to: ``out``, or ``OUT.<pid>`` without the lock.

    Raises:
        OSError: when the disk does not take the block; what was written is a torn block.
    """
    block = [b"".join(lines)]
    return append_blocks(out, block, rotation) or append_aside(out, block)


def append_blocks(
    out: Path,
    blocks: Sequence[bytes],
    rotation: Rotation,
    *,
    timeout_s: float | None = None,
    calls: Calls = _CALLS,
) -> Path | None:
    """Append whole blocks under one lock; None when another process kept it for ``timeout_s`` seconds.

    Raises:
        OSError: as append_block.
    """
    seconds = locks.LOCK_TIMEOUT_S if timeout_s is None else timeout_s
    with FileLock(out.with_name(out.name + ".lock"), seconds, calls) as lock:
        if not lock.held:
            return None
        for block in _by_file(out, blocks, rotation, calls):
            _append(out, block, calls)
    return out


def append_aside(out: Path, blocks: Sequence[bytes], calls: Calls = _CALLS) -> Path:
    """Append whole blocks to ``OUT.<pid>``, which no other process writes to.

    Raises:
        OSError: as append_block.
    """
    path = out.with_name(f"{out.name}.{os.getpid()}")
    _append(path, b"".join(blocks), calls)
    return path


def _by_file(out: Path, blocks: Sequence[bytes], rotation: Rotation, calls: Calls) -> Iterator[bytes]:
    """The blocks joined as far as they fit into one file; the file is rotated before each further part."""
    size_bytes = _size_bytes(out, calls)
    joined: list[bytes] = []
    for block in blocks:
        if size_bytes and size_bytes + len(block) > rotation.max_bytes:
            if joined:
                yield b"".join(joined)
            joined, size_bytes = [], 0
            _rotate(out, rotation)
        joined.append(block)
        size_bytes += len(block)
    yield b"".join(joined)


def _append(path: Path, data: bytes, calls: Calls) -> None:
    fd = take(lambda: calls.open(path, _FLAGS, FILE_MODE))
    try:
        write_all(fd, _separator(fd, calls) + data, calls)
    finally:
        give_back(fd, calls.close)


def _size_bytes(path: Path, calls: Calls) -> int:
    fd = take(lambda: calls.open(path, _FLAGS, FILE_MODE))
    try:
        return calls.size_bytes(fd)
    finally:
        give_back(fd, calls.close)


def _separator(fd: int, calls: Calls) -> bytes:
    """A line feed if the file ends inside a line, as a killed writer leaves it."""
    size_bytes = calls.size_bytes(fd)
    return b"" if not size_bytes or calls.byte_at(fd, size_bytes - 1) == b"\n" else b"\n"


def write_all(fd: int, data: bytes, calls: Calls = _CALLS) -> None:
    """Write every byte; a single write(2) may take less than it is given.

    Raises:
        OSError: when a write fails; the bytes before it are in the file.
    """
    written = calls.write(fd, data[:_CHUNK_BYTES])
    while written < len(data):
        written += calls.write(fd, data[written : written + _CHUNK_BYTES])


def _rotate(out: Path, rotation: Rotation) -> None:
    for number in range(rotation.keep, 0, -1):
        older = out.with_name(f"{out.name}.{number}")
        newer = out if number == 1 else out.with_name(f"{out.name}.{number - 1}")
        if newer.exists():
            newer.replace(older)
    if not rotation.keep:
        out.unlink(missing_ok=True)
