"""Puts report and page together: one HTML file that asks nothing of the network.

The page is ``page.html``, built from ``web/`` by ``make web`` with its script and style inlined and named
in its Content-Security-Policy by their hashes. What is added here is data: two JSON texts in elements that
no browser executes, and a static table for readers without scripts.
"""

import base64
import gzip
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape
from importlib import resources
from typing import Any, Final

from turntrace.core.phase_colors import PHASE_COLORS
from turntrace.report.blocks import Block
from turntrace.report.case import Case
from turntrace.report.json_report import dumped, json_report
from turntrace.report.page.flame import flame
from turntrace.report.page.static_table import static_html
from turntrace.report.page.words import blocks_words, overview_words, turn_words
from turntrace.report.strings import printable
from turntrace.report.view import turn_view

__all__ = ["page", "title_of"]

_COMPRESS_FROM_BYTES: Final = 1_000_000
"""Larger reports are compressed, so that the page of a long turn still fits into a mail."""

_UNSAFE: Final = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def page(
    cases: Sequence[Case], names: Sequence[str], beside: Sequence[Block] | None = None
) -> Iterator[bytes]:
    """The HTML in pieces.

    ``names`` are the files as a person knows them. ``beside`` lays two lots of turns beside each other; a
    page that has it opens with it.
    """
    words = {
        "turns": [turn_words(case) for case in cases],
        "all": overview_words(outermost(cases)) if len(outermost(cases)) > 1 else None,
        "flames": [flame([case]) for case in cases],
        "flame": flame(outermost(cases)) if len(cases) > 1 else None,
        "colors": dict(PHASE_COLORS),
        "files": [printable(name) for name in names],
        "beside": None if beside is None else blocks_words(beside),
    }
    values = {
        b"title": escape(title_of(words)).encode(),
        b"words": _element("words", dumped(words)),
        b"report": _element("report", b"".join(json_report(cases))),
        b"static": static_html(turn_view(outermost(cases)[0]), bars=False).encode(),
    }
    for piece, name in _template():
        yield piece
        yield values.get(name, b"")


def outermost(cases: Sequence[Case]) -> list[Case]:
    """The cases that lie in no other; all of them where none is outermost."""
    return [case for case in cases if case.turn.parent_run_id is None] or list(cases)


def title_of(words: dict[str, Any]) -> str:
    """What the window is called: the turn and its length, or how many turns there are."""
    first, *others = words["turns"]
    if others:
        return f"{len(words['turns'])} turns · turntrace"
    return f"{first['name']} {first['wall']} · turntrace"


@lru_cache(maxsize=1)
def _template() -> tuple[tuple[bytes, bytes], ...]:
    """The page in pieces, each with the name of the value that follows it."""
    text = resources.files("turntrace.report.page").joinpath("page.html").read_bytes()
    first, *others = text.split(b"<!--turntrace:")
    pieces: list[tuple[bytes, bytes]] = []
    for other in others:
        name, _, rest = other.partition(b"-->")
        pieces.append((first, name))
        first = rest
    return (*pieces, (first, b""))


def _embedded(json_text: bytes) -> bytes:
    """JSON that ends no element and opens no comment, whatever its strings hold."""
    for character, written in _UNSAFE:
        json_text = json_text.replace(character, written)
    return json_text


def _element(name: str, text: bytes) -> bytes:
    """An element with JSON that no browser executes, compressed when it is large."""
    if len(text) < _COMPRESS_FROM_BYTES:
        return b'<script type="application/json" id="%b">%b</script>' % (name.encode(), _embedded(text))
    packed = base64.b64encode(gzip.compress(text, 6, mtime=0))
    return b'<script type="text/plain" id="%b" data-encoding="gzip">%b</script>' % (name.encode(), packed)
