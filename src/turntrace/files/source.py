"""An input as it comes: from a file or a pipe, compressed or not, its start looked at, its lines bounded."""

import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

from turntrace.files.inflate import GZIP, ZSTD, inflated

__all__ = ["SNIFF_BYTES", "bounded_lines", "plain"]

SNIFF_BYTES: Final = 1 << 16
_MAX_LAYERS: Final = 3


def plain(file: BinaryIO, damaged: Callable[[str], None]) -> tuple[BinaryIO, bytes]:
    """``file`` decompressed, with its first bytes, which are still to be read from it.

    Args:
        file: an input; it need not seek.
        damaged: hears of compressed data that is cut or damaged.

    Raises:
        MissingExtraError: for zstd without the extra of that name.
    """
    head = file.read(SNIFF_BYTES)
    for _ in range(_MAX_LAYERS):
        if not head.startswith((GZIP, ZSTD)):
            break
        file = inflated(file, head, damaged)
        head = file.read(SNIFF_BYTES)
    return io.BufferedReader(_Replayed(head, file)), head


def bounded_lines(file: BinaryIO, max_bytes: int) -> Iterator[bytes]:
    """The lines of ``file``; of a longer one its first ``max_bytes``."""
    while line := file.readline(max_bytes):
        if len(line) == max_bytes and not line.endswith(b"\n"):
            line += b"\n"
            while (rest := file.readline(max_bytes)) and not rest.endswith(b"\n"):
                pass
        yield line


class _Replayed(io.RawIOBase):
    """What was read off a stream, then the stream."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        super().__init__()
        self._head = memoryview(head)
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)] or self._file.read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)
