"""Request bodies decompressed, bounded while they are inflated: a bomb costs what the bound says, no more."""

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from turntrace.collect.limits import RefusedError
from turntrace.errors import MissingExtraError
from turntrace.files.inflate import GZIP, ZSTD

__all__ = ["ENCODINGS", "encoding_of", "inflated"]

ENCODINGS: Final = ("gzip", "deflate", "zstd")
_CHUNK_BYTES: Final = 1 << 18
_WINDOW: Final = {"gzip": 31, "deflate": 15}
_RAW_WINDOW: Final = -15
_ZSTD_STEP_BYTES: Final = 256
_ZSTD_WINDOW_BYTES: Final = 8 << 20
"""What RFC 8878 asks every decoder to support, and no more."""

Charge = Callable[[int], None]
"""Told how many bytes were inflated; raises RefusedError when they are too many."""


def encoding_of(body: bytes) -> str:
    """The compression of a grpc message, which does not say it: no message of OTLP starts so."""
    if body.startswith(GZIP):
        return "gzip"
    if body.startswith(ZSTD):
        return "zstd"
    return "deflate" if body[:1] == b"\x78" else ""


def inflated(body: bytes, encoding: str, charge: Charge) -> bytes:
    """``body`` as it was before ``encoding``; "" and "identity" stand for none.

    Raises:
        RefusedError: for an unknown encoding, damaged data, or when ``charge`` refuses.
    """
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return body
    if name not in ENCODINGS:
        raise RefusedError("encoding", 415, f"Content-Encoding must be one of {', '.join(ENCODINGS)}")
    pieces = []
    try:
        for piece in _zstd(body) if name == "zstd" else _zlib(body, _window(body, name)):
            charge(len(piece))
            pieces.append(piece)
    except (RefusedError, MissingExtraError):
        raise
    except Exception as error:
        raise RefusedError("malformed", 400, f"the body is no {name}") from error
    return b"".join(pieces)


def _window(body: bytes, name: str) -> int:
    """What zlib is to expect; some senders of "deflate" leave the header of zlib out."""
    is_raw = name == "deflate" and (len(body) < 2 or body[0] & 0x0F != 8 or (body[0] << 8 | body[1]) % 31)  # noqa: PLR2004 - RFC 1950
    return _RAW_WINDOW if is_raw else _WINDOW[name]


def _zlib(body: bytes, window: int) -> Iterator[bytes]:
    """The members of ``body`` in pieces of a bounded size.

    Raises:
        ValueError: when the body is cut.
    """
    rest = body
    while rest:
        inflater = zlib.decompressobj(window)
        while not inflater.eof:
            piece = inflater.decompress(rest, _CHUNK_BYTES)
            rest = inflater.unconsumed_tail
            if not piece and not rest and not inflater.eof:
                raise ValueError("cut")
            yield piece
        rest = inflater.unused_data


def _zstd(body: bytes) -> Iterator[bytes]:
    """The frames of ``body`` in pieces of a bounded size: three bytes of zstd are a block of 128 KiB at most.

    Raises:
        ValueError: when the body is cut.
    """
    try:
        import zstandard  # noqa: PLC0415 - an extra, loaded for a request that needs it
    except ImportError as error:
        raise RefusedError("encoding", 415, str(MissingExtraError("zstd", "collect"))) from error
    inflater = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    frame = None
    for start in range(0, len(body), _ZSTD_STEP_BYTES):
        rest = body[start : start + _ZSTD_STEP_BYTES]
        while rest:
            if frame is None or frame.eof:
                frame = inflater.decompressobj()
            yield frame.decompress(rest)
            rest = frame.unused_data if frame.eof else b""
    if frame is not None and not frame.eof:
        raise ValueError("cut")
