"""Blocks as a small piece of HTML without scripts: for notebooks, and for readers that run none."""

from collections.abc import Iterable, Iterator
from html import escape

from turntrace.core.phase_colors import PHASE_COLORS
from turntrace.report.blocks import Block, Facts, Findings, Heading, Row, Table
from turntrace.report.strings import Words, plain

__all__ = ["static_html"]

_BAR_PX = 120
_PLAIN_COLOR = "#808080"


def static_html(blocks: Iterable[Block], *, bars: bool = True) -> str:
    """The blocks as HTML in one ``div``; with ``bars`` the rows have bars in the colours of their phases."""
    return f"<div>{''.join(piece for block in blocks for piece in _block(block, bars=bars))}</div>"


def _text(words: Words) -> str:
    return escape(plain(words))


def _block(block: Block, *, bars: bool) -> Iterator[str]:
    match block:
        case Heading():
            yield f"<p><b>{_text(block.title)}</b><br>{escape(block.figures + block.note)}</p>"
        case Facts():
            yield f"<p>{' · '.join(_text(words) + escape(note) for words, note in block.parts)}</p>"
        case Table():
            yield from _table(block, bars=bars)
        case Findings():
            yield "<p><b>Fix first</b> (on the critical path, yours to change)</p><ol>"
            for row in block.rows:
                yield f"<li><b>{_text(row.label)}</b>: {_text(row.message)}; saves up to {escape(row.saves)}</li>"
            yield "</ol>"
        case _:
            return


def _table(table: Table, *, bars: bool) -> Iterator[str]:
    titles = ["", *([""] if bars else []), *(column.title for column in table.columns), ""]
    yield f"<table><caption>{escape(table.heading.capitalize())}</caption><thead><tr>"
    yield "".join(f"<th>{escape(title)}</th>" for title in titles)
    yield "</tr></thead><tbody>"
    for row in table.rows:
        yield _row(row, bars=bars)
    if table.total is not None:
        yield _row(table.total, bars=bars)
    yield "</tbody></table>"


def _row(row: Row, *, bars: bool) -> str:
    label = plain(row.label)
    bar = f"<td>{_bar(label, row.fraction)}</td>" if bars else ""
    cells = "".join(f"<td>{_text(cell)}</td>" for cell in row.cells)
    indent = "&emsp;" * row.depth
    return f"<tr><td>{indent}{escape(label)}</td>{bar}{cells}<td>{_text(row.note)}</td></tr>"


def _bar(label: str, fraction: float) -> str:
    if fraction <= 0:
        return ""
    width = max(round(fraction * _BAR_PX), 1)
    color = PHASE_COLORS.get(label, _PLAIN_COLOR)
    return f'<div style="width:{width}px;height:0.8em;background:{color}"></div>'
