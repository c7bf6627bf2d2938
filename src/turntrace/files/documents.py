"""JSON documents out of an input: one a line, one over many lines, several in one line, cut or torn ones.

Exporters write a record a line, downloads are one document, and a crash leaves half a record that the next
one continues. Damage costs what it hits: of a torn record the spans before the tear are read.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import orjson

from turntrace.core.codec.issues import IssueLog

__all__ = ["MAX_DOCUMENT_BYTES", "Document", "Documents"]

MAX_DOCUMENT_BYTES: Final = 512 << 20
"""A longer document is read as far as this."""

_BOM: Final = b"\xef\xbb\xbf"
_PADDING: Final = b"\0 \t\r\n"
_RECORD: Final = re.compile(rb'\{\s*"(?:resource_?(?:spans|metrics|logs)|batches)"\s*:', re.IGNORECASE)
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
"""Possessive: a string that never ends is passed once, and nothing is kept to go back to."""

_SPANS: Final = re.compile(r'"spans"\s*:\s*$')
_MOST_OPEN: Final = 64
"""Brackets around a span of any format are few; this bounds what is done for each of its spans."""

_CLOSING: Final = {"{": "}", "[": "]", "spans": "]"}


class Document(NamedTuple):
    """A JSON object, the 1-based line it starts in, and that line's offset in bytes."""

    value: dict[str, Any]
    line: int
    offset: int


class Documents:
    """Iterates over the objects of ``lines``, each line with its end; ``log`` hears of every loss.

    A record that stands in one line is given before the next line is asked for.
    """

    __slots__ = ("_found", "_lines", "_log")

    def __init__(self, lines: Iterable[bytes], log: IssueLog) -> None:
        self._lines = _numbered(lines)
        self._log = log
        self._found = False

    def __iter__(self) -> Iterator[Document]:
        for raw, line, offset in self._lines:
            text = self._bare(raw, line, offset)
            if not text:
                continue
            values = _objects(text)
            if values is None and text.startswith((b"{", b"[")) and not self._found:
                yield from self._whole(raw, line, offset)
            else:
                yield from self._of_line(raw, text, values, line, offset)

    def _bare(self, raw: bytes, line: int, offset: int) -> bytes:
        if line == 1 and raw.startswith(_BOM):
            self._log.add("bom", "the input starts with a byte order mark", line, offset)
            raw = raw.removeprefix(_BOM)
        return raw.strip(_PADDING)

    def _of_line(
        self, raw: bytes, text: bytes, values: list[dict[str, Any]] | None, line: int, offset: int
    ) -> Iterator[Document]:
        for value in self._salvaged(text, raw, line, offset) if values is None else values:
            self._found = True
            yield Document(value, line, offset)

    def _whole(self, first: bytes, line: int, offset: int) -> Iterator[Document]:
        """One document that runs over many lines, or else what lines after a bad one hold."""
        rest, size_bytes = [(first, line, offset)], len(first)
        for numbered in self._lines:
            rest.append(numbered)
            size_bytes += len(numbered[0])
            if size_bytes > MAX_DOCUMENT_BYTES:
                break
        joined = b"".join(raw for raw, _, _ in rest)
        text = joined.removeprefix(_BOM).strip(_PADDING)
        values = _objects(text)
        if values is None and any(_is_record(raw) for raw, _, _ in rest):
            for raw, number, start in rest:
                bare = raw.strip(_PADDING)
                if bare:
                    yield from self._of_line(raw, bare, _objects(bare), number, start)
        else:
            yield from self._of_line(joined, text, values, line, offset)

    def _salvaged(self, text: bytes, raw: bytes, line: int, offset: int) -> Iterator[dict[str, Any]]:
        """The objects of a text that is not JSON: several in a row, and of a torn one what it has."""
        starts = [found.start() for found in _RECORD.finditer(text)]
        edges = sorted({0, *starts, len(text)})
        for start, end in pairwise(edges):
            piece = text[start:end].strip(_PADDING)
            values = _objects(piece) if piece else []
            if values is None:
                values = self._torn(piece, raw, (line, offset), is_last=end == len(text))
            yield from values

    def _torn(
        self, piece: bytes, raw: bytes, place: tuple[int, int], *, is_last: bool
    ) -> list[dict[str, Any]]:
        text, not_utf8 = _decoded(piece)
        values = _objects(text.encode()) if not_utf8 else None
        if values is not None:
            self._log.add("bad_utf8", "bytes that are not UTF-8 became U+FFFD", *place)
            return values
        values = _before_damage(text)
        is_cut = is_last and not raw.endswith(b"\n")
        code, what = ("truncated_tail", "the last line is cut") if is_cut else ("bad_json_line", _NO_OBJECT)
        told = f"{what}; the spans before the damage are read" if values else what
        self._log.add(code, told, *place)
        return values


_NO_OBJECT: Final = "the line is no JSON object"


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[bytes, int, int]]:
    offset = 0
    for number, raw in enumerate(lines, 1):
        yield raw, number, offset
        offset += len(raw)


def _objects(text: bytes) -> list[dict[str, Any]] | None:
    """The object that ``text`` is, or those of the array that it is; None when it is neither."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, dict):
        return [value]
    objects = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    return objects or ([] if value == [] else None)


def _is_record(raw: bytes) -> bool:
    text = raw.strip(_PADDING)
    return _RECORD.match(text) is not None and _objects(text) is not None


def _decoded(piece: bytes) -> tuple[str, bool]:
    text = piece.decode("utf-8", "replace")
    return text, "\ufffd" in text and "\ufffd".encode() not in piece


def _before_damage(text: str) -> list[dict[str, Any]]:
    """What ``text`` says up to the last whole span before it stops being JSON."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        text = text[: error.pos]
    closed = _closed(text)
    return (_objects(closed.encode()) or []) if closed else []


def _closed(text: str) -> str:
    """``text`` up to its last whole span, with all that is open closed; "" when there is none."""
    open_brackets: list[str] = []
    whole = ""
    end = 0
    for token in _TOKEN.finditer(text):
        sign = token.group()
        if sign in "{[":
            is_spans = sign == "[" and _SPANS.search(text, max(0, token.start() - 32), token.start())
            open_brackets.append("spans" if is_spans else sign)
            if len(open_brackets) > _MOST_OPEN:
                break
        elif sign in "}]":
            if not open_brackets or _CLOSING[open_brackets.pop()] != sign:
                break
            if sign == "}" and open_brackets[-1:] == ["spans"]:
                end = token.end()
                whole = "".join(_CLOSING[opened] for opened in reversed(open_brackets))
        elif sign == '"':
            break
    return text[:end] + whole if end else ""
