"""Blocks as lines of text: plain when piped, with bars and styles on a terminal."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from turntrace.core.contract import Kind
from turntrace.report.blocks import Block, Facts, Findings, Heading, Pointers, Row, Table
from turntrace.report.strings import Words, cells, fit, plain

__all__ = ["Line", "Style", "lines", "text"]

Style = Literal["", "bold", "dim", "bar", "warn"] | Kind
Line = tuple[tuple[str, Style], ...]
"""A line in styled pieces; a terminal colours them, everything else joins them."""

_BLOCK_CELLS: Final = 95
"""Titles and findings are never wider than this; it leaves a margin in a window of 100."""
_LEAST_NOTE_CELLS: Final = 16
_NOTE_GAP: Final = "   "
_LABEL_CELLS: Final = 18
_LEAST_BAR_CELLS: Final = 4
_FULL_BAR_CELLS: Final = 25
_LONGEST_CELL: Final = 28
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_FINDING_LABEL_CELLS: Final = 11


def text(blocks: Iterable[Block], *, width: int = 100, bars: bool = False) -> str:
    """The blocks as plain text of at most ``width`` cells a line, ending in a line feed."""
    return "".join(f"{_joined(line)}\n" for line in lines(blocks, width=width, bars=bars))


def _joined(line: Line) -> str:
    return "".join(piece for piece, _ in line).rstrip()


def lines(blocks: Iterable[Block], *, width: int = 100, bars: bool = False) -> Iterator[Line]:
    """The blocks line by line, an empty line before each table, list of findings or list of pointers."""
    first = True
    for block in blocks:
        if not first and isinstance(block, Table | Findings | Pointers | Heading):
            yield ()
        first = False
        yield from _block(block, width, bars=bars)


def _block(block: Block, width: int, *, bars: bool) -> Iterator[Line]:
    match block:
        case Heading():
            yield from _heading(block, min(width, _BLOCK_CELLS))
        case Facts():
            yield from _facts(block, width)
        case Table():
            yield from _table(block, width, bars=bars)
        case Findings():
            yield from _findings(block, min(width, _BLOCK_CELLS))
        case _:
            yield from _pointers(block, width)


def _heading(block: Heading, width: int) -> Iterator[Line]:
    title = fit(plain(block.title), width)
    for figures in (block.figures + block.note, block.figures):
        room = width - cells(title) - cells(figures)
        if room >= 1:
            yield (title, "bold"), (" " * room, ""), (figures, "")
            return
    yield ((title, "bold"),)
    yield ((block.figures, ""),)


def _facts(block: Facts, width: int) -> Iterator[Line]:
    """The facts joined by dots, over several lines where needed; in a narrow window without notes."""
    parts = [plain(words) + (note if width >= _BLOCK_CELLS else "") for words, note in block.parts]
    line = ""
    for part in parts:
        longer = f"{line} · {part}" if line else fit(part, width)
        if line and cells(longer) > width:
            yield ((line, ""),)
            longer = fit(part, width)
        line = longer
    if line:
        yield ((line, ""),)


def _label(row: Row) -> str:
    return "  " * row.depth + plain(row.label)


def _figure(cell: Words) -> str:
    """A cell; only a name from data can be so long that it is cut."""
    return fit(plain(cell), _LONGEST_CELL)


def _column_widths(block: Table) -> list[int]:
    widths = [max(column.width, cells(column.title) + 1) for column in block.columns]
    for row in (*block.rows, *((block.total,) if block.total else ())):
        for at, cell in enumerate(row.cells):
            widths[at] = max(widths[at], cells(_figure(cell)) + 1)
    return widths


def _table(block: Table, width: int, *, bars: bool) -> Iterator[Line]:
    widths = _column_widths(block)
    area = max(_LABEL_CELLS, min(block.area, width - sum(widths)))
    labels = min(area, max([_LABEL_CELLS, *(cells(_label(row)) + 2 for row in block.rows)]))
    bar_cells = area - labels if bars and block.bars else 0
    if bar_cells < _LEAST_BAR_CELLS:
        bar_cells, labels = 0, area
    largest = max((row.fraction for row in block.rows), default=0.0)
    scale = min(_FULL_BAR_CELLS, bar_cells / largest) if largest else 0.0
    notes = width - area - sum(widths) - len(_NOTE_GAP)
    titles = [column.title for column in block.columns]
    yield ((fit(block.heading, area).ljust(area), "bold"), (_aligned(titles, widths), "dim"))
    for row in block.rows:
        label = fit(_label(row), labels - 1)
        yield (
            (label + " " * (labels - cells(label)), "dim" if row.quiet else ""),
            (_bar(row.fraction * scale).ljust(bar_cells), row.kind or "bar"),
            (_aligned([_figure(cell) for cell in row.cells], widths), ""),
            *_note(row, notes),
        )
    if block.total is not None:
        yield from _total(block.total, area, widths, notes)


def _total(total: Row, area: int, widths: Sequence[int], notes: int) -> Iterator[Line]:
    figures = [_figure(cell) for cell in total.cells]
    rules = ["─" * len(figure) for figure in figures]
    yield ((" " * area, ""), (_aligned(rules, widths), "dim"))
    label = fit(plain(total.label), area - 1)
    yield (
        (label + " " * (area - cells(label)), ""),
        (_aligned(figures, widths), "bold"),
        *_note(total, notes),
    )


def _note(row: Row, room: int) -> Line:
    if not row.note or room < _LEAST_NOTE_CELLS:
        return ()
    return ((_NOTE_GAP + fit(plain(row.note), room), "dim"),)


def _aligned(figures: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(
        " " * (width - cells(figure)) + figure for figure, width in zip(figures, widths, strict=False)
    )


def _bar(length: float) -> str:
    """A bar of ``length`` cells, cut to eighths; at least a sliver when there is anything."""
    eighths = max(int(length * 8), 1) if length > 0 else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _findings(block: Findings, width: int) -> Iterator[Line]:
    title, saves = block.title, block.saves
    note = block.note if cells(title + block.note + saves) < width else ""
    gap = " " * (width - cells(title + note + saves))
    yield (title, "bold"), (note, "dim"), (gap, ""), (saves, "dim")
    labels = [plain(row.label) for row in block.rows]
    label_cells = min(_LABEL_CELLS - 2, max([_FINDING_LABEL_CELLS, *map(cells, labels)]))
    for number, (row, full) in enumerate(zip(block.rows, labels, strict=True), start=1):
        label = fit(full, label_cells)
        lead = f"{number:2}  {label}" + " " * (label_cells - cells(label) + 2)
        message = fit(plain(row.message), width - cells(lead) - len(row.saves) - 2)
        room = width - cells(lead) - cells(message) - len(row.saves)
        yield (lead, "warn"), (message, ""), (" " * room, ""), (row.saves, "bold")


def _pointers(block: Pointers, width: int) -> Iterator[Line]:
    """Names and targets in two columns; what stands beside a target loses its note first."""
    if block.heading:
        yield ((block.heading, "bold"),)
    name_cells = max(cells(row.name) for row in block.rows) + 2
    targets = [plain(row.target) for row in block.rows]
    target_cells = max(map(cells, targets))
    for row, target in zip(block.rows, targets, strict=True):
        lead = f"{row.name:<{name_cells}}{target}" + " " * (target_cells - cells(target))
        fits = cells(lead + row.figures + row.note) + len(_NOTE_GAP) <= width
        beside = row.figures + row.note if fits else row.figures
        yield (lead, ""), (_NOTE_GAP + beside, "dim")
