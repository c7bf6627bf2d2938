"""What a report consists of, before it has a medium: headings, tables, lines, findings, pointers.

The views build these records; text and Markdown print them and compute nothing.
"""

from dataclasses import dataclass

from turntrace.core.contract import Kind
from turntrace.report.strings import Words

__all__ = [
    "Block",
    "Column",
    "Facts",
    "FindingRow",
    "Findings",
    "Heading",
    "Pointer",
    "Pointers",
    "Row",
    "Table",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The title of a turn, its figures, and a note on them that goes first when there is no room."""

    title: Words
    figures: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A line of facts; the note of a fact goes first when there is no room."""

    parts: tuple[tuple[Words, str], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures: its title and the cells it takes at least, the gap before it included."""

    title: str
    width: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row: ``cells`` go under the columns, ``fraction`` (0 to 1) is the length of its bar.

    ``kind`` says who spends the time (model, tool, human, process, agent, io); a terminal colours the bar by it.
    """

    label: Words
    cells: tuple[Words, ...]
    depth: int = 0
    fraction: float = 0.0
    note: Words = ()
    quiet: bool = False
    kind: Kind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; ``area`` is the width in cells of label and bar together, ``total`` the sum line."""

    heading: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    total: Row | None = None
    area: int = 32
    bars: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """Something to fix first: where, the evidence, and the time it can save at most."""

    label: Words
    message: Words
    saves: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The findings in order, never empty, under a title with a note, and the title of their last column."""

    rows: tuple[FindingRow, ...]
    title: str = "FIX FIRST"
    note: str = " (on the critical path, yours to change)"
    saves: str = "saves up to"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """A line that leads on: a file or a command, which is never cut, its figures, and a note."""

    name: str
    target: Words
    figures: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointers:
    """Where the trace is and what to do next; or, under a heading, commands that open something."""

    rows: tuple[Pointer, ...]
    heading: str = ""


Block = Heading | Facts | Table | Findings | Pointers
