"""Appending whole blocks to a trace that any number of processes share."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from turntrace.files.lock import FileLock
from turntrace.files.out import FILE_MODE

__all__ = ["Rotation", "append_block", "append_blocks", "write_all"]

_CHUNK_BYTES = 1 << 20


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
    return append_blocks(out, [b"".join(lines)], rotation)


def append_blocks(out: Path, blocks: Sequence[bytes], rotation: Rotation) -> Path:
    """Append whole blocks under one lock; where they go and what is raised as for append_block."""
    with FileLock(out.with_name(out.name + ".lock")) as lock:
        if not lock.held:
            path = out.with_name(f"{out.name}.{os.getpid()}")
            _append(path, b"".join(blocks))
            return path
        for block in _by_file(out, blocks, rotation):
            _append(out, block)
    return out


def _by_file(out: Path, blocks: Sequence[bytes], rotation: Rotation) -> Iterator[bytes]:
    """The blocks joined as far as they fit into one file; the file is rotated before each further part."""
    size_bytes = _size_bytes(out)
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


def _append(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        write_all(fd, _separator(fd) + data)
    finally:
        os.close(fd)


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _separator(fd: int) -> bytes:
    """A line feed if the file ends inside a line, as a killed writer leaves it."""
    size_bytes = os.fstat(fd).st_size
    return b"" if not size_bytes or os.pread(fd, 1, size_bytes - 1) == b"\n" else b"\n"


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; a single write(2) may take less than it is given.

    Raises:
        OSError: when a write fails; the bytes before it are in the file.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[:_CHUNK_BYTES]) :]


def _rotate(out: Path, rotation: Rotation) -> None:
    for number in range(rotation.keep, 0, -1):
        older = out.with_name(f"{out.name}.{number}")
        newer = out if number == 1 else out.with_name(f"{out.name}.{number - 1}")
        if newer.exists():
            newer.replace(older)
    if not rotation.keep:
        out.unlink(missing_ok=True)
