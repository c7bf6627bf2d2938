"""A whole answer that comes in pieces of its body, and the body that brings them."""

import zlib
from typing import Final

import orjson

from turntrace.instrument.adapters.answers import Answer

__all__ = ["Parts"]

_MAX_BYTES: Final = 16_000_000
_ANY_ZLIB: Final = 47
_COMPRESSIONS: Final = frozenset({"gzip", "deflate"})


class Parts:
    """The pieces of a JSON body, kept until its end: what it cost stands there."""

    __slots__ = ("_encoding", "_pieces", "_room")

    def __init__(self, encoding: str) -> None:
        """``encoding``: the body's Content-Encoding."""
        self._encoding = encoding
        self._pieces: list[bytes] = []
        self._room = _MAX_BYTES

    def add(self, piece: bytes) -> None:
        """Keep a piece; of a body that is too long, none."""
        self._room -= len(piece)
        if self._room >= 0:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def tell(self, answer: Answer) -> None:
        """Give ``answer`` what the body says; a body that cannot be read says nothing."""
        data, self._pieces = b"".join(self._pieces), []
        try:
            if self._encoding in _COMPRESSIONS:
                data = zlib.decompress(data, _ANY_ZLIB)
            answer.whole(orjson.loads(data))
        except Exception:  # noqa: BLE001 - another compression, a body that is no JSON
            return
