"""The events in the bytes of a stream that the agent reads itself: looked at as they pass, and not kept."""

import zlib
from typing import Any, Final

import orjson

from turntrace.instrument.adapters.answers import Answer, code_of

__all__ = ["EventLines"]

_MAX_BYTES: Final = 4_000_000
"""Of one event; a longer one says nothing."""

_ANY_ZLIB: Final = 47
_COMPRESSIONS: Final = frozenset({"gzip", "deflate"})
_PLAIN: Final = frozenset({"", "identity"})


class _Record:
    """A decoded event with its fields as attributes, as an SDK's events have them; None where there is none."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        value = self._fields.get(name)
        if isinstance(value, list):
            return [_Record(item) if isinstance(item, dict) else item for item in value]
        return _Record(value) if isinstance(value, dict) else value


class EventLines:
    """Tells an answer of the server-sent events in a body, whose pieces may end anywhere."""

    __slots__ = ("_answer", "_inflate", "_is_off", "_line", "_room")

    def __init__(self, answer: Answer, encoding: str) -> None:
        """``encoding``: the body's Content-Encoding; one that cannot be read here says nothing."""
        self._answer = answer
        self._inflate = zlib.decompressobj(_ANY_ZLIB) if encoding in _COMPRESSIONS else None
        self._is_off = self._inflate is None and encoding not in _PLAIN
        self._line: list[bytes] = []
        self._room = _MAX_BYTES

    def add(self, piece: bytes) -> None:
        """Look at the next piece of the body; never raises."""
        if self._is_off:
            return
        try:
            self._add(piece if self._inflate is None else self._inflated(piece))
        except Exception:  # noqa: BLE001 - a damaged body is the agent's business
            self._is_off = True

    def _inflated(self, piece: bytes) -> bytes:
        inflate = self._inflate
        data = b"" if inflate is None else inflate.decompress(piece, _MAX_BYTES)
        self._is_off = inflate is None or bool(inflate.unconsumed_tail)
        return data

    def _add(self, data: bytes) -> None:
        *ended, rest = data.split(b"\n")
        for end in ended:
            self._keep(end)
            self._see(b"".join(self._line))
            self._line.clear()
            self._room = _MAX_BYTES
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        self._room -= len(part)
        if self._room >= 0:
            self._line.append(part)
        else:
            self._line.clear()

    def _see(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        try:
            event = orjson.loads(line[5:])
            if error := event.get("error"):
                self._answer.failure = code_of(error)
            self._answer.see(_Record(event))
        except Exception:  # noqa: BLE001 - an event of another shape says nothing that we know
            return
