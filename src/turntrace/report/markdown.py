"""Blocks as GitHub-flavoured Markdown; everything from data stands in a code span."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from turntrace.report.blocks import Block, Facts, Findings, Heading, Pointers, Row, Table
from turntrace.report.strings import Data, Words, fit, printable

__all__ = ["markdown"]

_LONGEST_NAME: Final = 80
_BACKTICKS: Final = re.compile("`+")
_SYNTAX: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown, ending in a line feed."""
    return "\n".join(line for block in blocks for line in (*_block(block), "")) or "\n"


def _code(text: str) -> str:
    """``text`` in a code span: no markup, no HTML, no mention, no table cell can start in it.

    A pipe ends a cell even in a code span and its escape is read differently outside of tables, so it
    is shown as an escape of the kind that control characters get.
    """
    safe = fit(printable(text), _LONGEST_NAME).replace("|", "\\x7c")
    longest = max(map(len, _BACKTICKS.findall(safe)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if not safe or safe[0] in "` " or safe[-1] in "` " else ""
    return f"{fence}{pad}{safe}{pad}{fence}"


def _inline(words: Words) -> str:
    return "".join(
        _code(piece.text) if isinstance(piece, Data) else _SYNTAX.sub(r"\\\1", piece) for piece in words
    ).strip()


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"### {_inline(block.title)}"
            yield ""
            yield block.figures + block.note
        case Facts():
            yield " · ".join(_inline(words) + note for words, note in block.parts)
        case Table():
            yield from _table(block)
        case Findings():
            yield f"**{block.title.capitalize()}**{block.note}"
            yield ""
            yield f"| | where | evidence | {block.saves} |"
            yield "|---:|---|---|---:|"
            for number, row in enumerate(block.rows, start=1):
                yield f"| {number} | {_inline(row.label)} | {_inline(row.message)} | {row.saves} |"
        case _:
            yield from _pointers(block)


def _pointers(block: Pointers) -> Iterator[str]:
    if block.heading:
        yield f"**{block.heading.capitalize()}**"
        yield ""
    for pointer in block.rows:
        beside = pointer.figures + pointer.note
        name = f"{pointer.name}: " if pointer.name else ""
        yield f"- {name}{_inline(pointer.target)}{f' ({beside})' if beside else ''}"


def _table(block: Table) -> Iterator[str]:
    titles = "".join(f" {column.title} |" for column in block.columns)
    yield f"| {block.heading.capitalize()} |{titles} |"
    yield "|---|" + "---:|" * len(block.columns) + "---|"
    for row in block.rows:
        yield _row(row, len(block.columns))
    if block.total is not None:
        yield _row(block.total, len(block.columns), strong=True)


def _row(row: Row, columns: int, *, strong: bool = False) -> str:
    figures = [_inline(cell) for cell in row.cells]
    figures += [""] * (columns - len(figures))
    if strong:
        figures = [f"**{figure}**" if figure else "" for figure in figures]
    label = "&nbsp;&nbsp;" * row.depth + _inline(row.label)
    return f"| {label} | {' | '.join(figures)} | {_inline(row.note)} |"
