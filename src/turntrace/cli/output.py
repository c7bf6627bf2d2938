"""Where results go: standard output, in colour on a terminal, or a file."""

import shutil
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from turntrace.config import environment
from turntrace.errors import TurntraceError
from turntrace.report.blocks import Block
from turntrace.report.strings import printable
from turntrace.report.text import Line, Style, lines, text

__all__ = ["UsageError", "say", "show", "show_lines", "standard_output", "styled", "write", "write_binary"]

_PLAIN_WIDTH = 100
_COLOURS: Final[Mapping[Style, str]] = {
    "": "",
    "bold": "bold",
    "dim": "dim",
    "warn": "yellow",
    "bar": "bright_black",
    "model": "blue",
    "tool": "yellow",
    "human": "magenta",
    "process": "green",
    "agent": "cyan",
    "io": "red",
}
"""Of the styles and, for bars, of who spends the time: the sixteen colours that every terminal has in its own tone."""


class UsageError(TurntraceError):
    """A command cannot do what its arguments ask; the message names the way out."""


def say(message: str) -> None:
    """Print one line for people on standard error."""
    print(printable(message), file=sys.stderr)


def standard_output() -> TextIO:
    """The standard output.

    Raises:
        UsageError: when it is closed.
    """
    out: TextIO | None = sys.stdout
    if out is None:
        message = "standard output is closed; nothing can be shown"
        raise UsageError(message)
    return out


def show_lines(found: Iterable[str]) -> None:
    """Print lines that are harmless already."""
    out = standard_output()
    for line in found:
        print(line, file=out)
    out.flush()


def show(blocks: Iterable[Block]) -> None:
    """Print a report: bars and colours on a terminal, the same rows in plain text otherwise."""
    out = standard_output()
    if not out.isatty():
        out.write(text(blocks, width=_PLAIN_WIDTH))
        out.flush()
        return
    width = shutil.get_terminal_size().columns
    env = environment()
    if env.get("NO_COLOR") or env.get("TERM") == "dumb":
        sys.stdout.write(text(blocks, width=width, bars=True))
        return
    _show_in_colour(blocks, width)


def _show_in_colour(blocks: Iterable[Block], width: int) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    for line in lines(blocks, width=width, bars=True):
        console.print(styled(line), soft_wrap=True)


def styled(line: Line) -> Any:
    """A line as text of rich, each piece in its colour."""
    from rich.text import Text

    return Text.assemble(*((piece, _COLOURS[style]) for piece, style in line))


def write_binary(pieces: Iterable[bytes], path: str | None) -> None:
    """As ``write``, for what no terminal can show.

    Raises:
        UsageError: when that is where it would go, or when the file cannot be written.
    """
    if path in {None, "-"} and standard_output().isatty():
        raise UsageError("that is no text; write it to a file with -o PATH")
    write(pieces, path)


def write(pieces: Iterable[bytes], path: str | None) -> None:
    """Write bytes to the file ``path``, or to standard output for None and ``-``.

    Raises:
        UsageError: when the file cannot be written.
    """
    left = iter(pieces)
    try:
        _write(left, path)
    finally:
        if isinstance(left, Generator):
            left.close()  # what it holds is given back now, not when somebody collects it


def _write(pieces: Iterator[bytes], path: str | None) -> None:
    if path in {None, "-"}:
        out = standard_output()
        out.flush()
        for piece in pieces:
            out.buffer.write(piece)
        out.buffer.flush()
        return
    first = next(pieces, b"")  # what cannot be made leaves the file as it was
    try:
        with Path(str(path)).open("wb") as file:
            file.write(first)
            file.writelines(pieces)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror or error}"
        raise UsageError(message) from error
