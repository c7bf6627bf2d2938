"""Compressed input, read as far as it goes: gzip and zstd, in one piece or several, cut or damaged."""

import io
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from turntrace.errors import MissingExtraError

__all__ = ["GZIP", "ZSTD", "inflated"]

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
_CHUNK_BYTES: Final = 1 << 16
_GZIP_WINDOW: Final = 31

Damaged = Callable[[str], None]


def inflated(file: BinaryIO, head: bytes, damaged: Damaged) -> BinaryIO:
    """What ``file``, off which ``head`` was read, holds compressed; ``damaged`` hears where it ends early.

    Raises:
        MissingExtraError: for zstd without the extra of that name.
    """
    make = _gzip if head.startswith(GZIP) else _zstd()
    return io.BufferedReader(_Inflated(file, head, make, damaged), _CHUNK_BYTES)


def _gzip() -> Any:
    return zlib.decompressobj(_GZIP_WINDOW)


def _zstd() -> Callable[[], Any]:
    try:
        import zstandard  # noqa: PLC0415 - an extra, loaded for a file that needs it
    except ImportError as error:
        raise MissingExtraError("reading zstd", "zstd") from error
    return lambda: zstandard.ZstdDecompressor().decompressobj()


class _Inflated(io.RawIOBase):
    """A stream of decompressed bytes that ends where the damage begins."""

    def __init__(self, file: BinaryIO, head: bytes, make: Callable[[], Any], damaged: Damaged) -> None:
        super().__init__()
        self._file = file
        self._packed = head
        self._make = make
        self._damaged = damaged
        self._inflater = make()
        self._ready = memoryview(b"")
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._is_over:
            self._ready = memoryview(self._more())
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _more(self) -> bytes:
        packed = self._packed or self._file.read(_CHUNK_BYTES)
        self._packed = b""
        if not packed:
            return self._ended()
        if self._inflater.eof:
            if not packed.strip(b"\0"):
                return b""  # padding, as tapes and crashes leave it
            self._inflater = self._make()
        try:
            unpacked: bytes = self._inflater.decompress(packed)
        except Exception as error:  # noqa: BLE001 - zlib.error or zstandard.ZstdError
            self._is_over = True
            self._damaged(f"the compressed input is damaged ({type(error).__name__}); it ends there")
            return b""
        self._packed = self._inflater.unused_data
        return unpacked

    def _ended(self) -> bytes:
        self._is_over = True
        if not self._inflater.eof:
            self._damaged("the compressed input is cut")
        return b""
