"""Strings from data made harmless: escaped, measured in terminal cells and cut.

Names of agents, models, tools, spans and files come from outside. A renderer marks them as ``Data`` and
never prints them raw; what turntrace says itself is a plain ``str``.
"""

import unicodedata
from dataclasses import dataclass
from typing import Final

__all__ = ["UNKNOWN", "Data", "Words", "cells", "fit", "joined", "plain", "printable"]

UNKNOWN: Final = "\u2013"
"""What stands for a figure that nobody knows: an en dash, never a zero."""

_SHORT_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ELLIPSIS: Final = "…"
_MARKS_A_CELL: Final = 4
"""Combining marks take no cell: at most this many characters are kept for each cell of width."""


@dataclass(frozen=True, slots=True)
class Data:
    """A string that came from outside."""

    text: str


Words = tuple[str | Data, ...]
"""A text in pieces: our own words as ``str``, everything else as ``Data``."""


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if code < 0x100:  # noqa: PLR2004  # the widths of Python's own escapes
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004  # as above


def printable(text: str) -> str:
    r"""``text`` with every control, bidirectional, invisible or unassigned character escaped.

    >>> printable("rm\x1b[2J\u202e")
    'rm\\x1b[2J\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def plain(words: Words) -> str:
    r"""The words as one harmless string.

    >>> plain(("hidden behind ", Data("a\tb")))
    'hidden behind a\\tb'
    """
    return "".join(piece if isinstance(piece, str) else printable(piece.text) for piece in words)


def joined(parts: "list[Words] | tuple[Words, ...]", separator: str = " · ") -> Words:
    """The parts as one text with ``separator`` between them."""
    pieces: list[str | Data] = []
    for part in parts:
        if pieces:
            pieces.append(separator)
        pieces.extend(part)
    return tuple(pieces)


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cells(text: str) -> int:
    """How many terminal cells ``text`` takes.

    >>> cells("abc"), cells("東京")
    (3, 4)
    """
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def fit(text: str, width: int) -> str:
    """``text`` cut to ``width`` cells, the cut shown by an ellipsis.

    >>> fit("provider_connect", 9)
    'provider…'
    """
    if cells(text) <= width and len(text) <= width * _MARKS_A_CELL:
        return text
    kept: list[str] = []
    room = width - 1
    for character in text[: max(width, 0) * _MARKS_A_CELL]:
        room -= _cells_of(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + _ELLIPSIS if width > 0 else ""
