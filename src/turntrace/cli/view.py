"""``turntrace view``: the report of one or many turns as a picture, one HTML file that needs no network."""

import sys
import webbrowser
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from turntrace.cli.output import UsageError, say, show, write
from turntrace.cli.selection import Selection, load
from turntrace.config import environment
from turntrace.core.beside import beside
from turntrace.files.out import DEFAULT_FOLDER, FILE_MODE, safe_name
from turntrace.files.preparation import make_folder
from turntrace.report.beside import beside_view
from turntrace.report.blocks import Block, Pointer, Pointers
from turntrace.report.page.document import page
from turntrace.report.rounding import count_text, size_text
from turntrace.report.strings import Data

__all__ = ["Shown", "register", "show_page", "view"]

_TWO: Final = 2
_SUFFIXES: Final = {".gz", ".zst", ".ndjson", ".jsonl", ".json", ".otlp", ".pb"}
_NOTE: Final = ", one file, no network"
Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE", help="Traces of turntrace, OTLP or Jaeger; without one the newest in .turntrace."
    ),
]


def view(
    files: Files = None,
    *,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="PATH", help="Where the page goes; - is standard output."),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Write the page and open no browser.")] = False,
    side_by_side: Annotated[
        bool, typer.Option("--beside", help="Two files beside each other: medians and differences.")
    ] = False,
) -> None:
    """Draw where the wall time went: one HTML file with everything in it, which asks nothing of any network.

    It shows the phases as one bar, what to fix first, the waterfall with the critical path, a flame, every
    span, and the tokens. A browser opens it when the command is typed in a terminal.

    For example:

        turntrace view
        turntrace view run.ndjson -o run.html
        turntrace view monday.ndjson tuesday.ndjson --no-open
        turntrace view before.ndjson after.ndjson --beside
    """
    shown = _beside(files or ()) if side_by_side else Shown(load(files or ()))
    if output == "-":
        write(shown.page(), None)
    else:
        show_page(shown, output, is_opened=not no_open)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page is made of: turns, and the blocks that lay two files beside each other if that is wanted."""

    selection: Selection
    beside: tuple[Block, ...] | None = None

    def page(self) -> Iterable[bytes]:
        """The page in pieces."""
        return page(self.selection.cases, self.selection.paths, self.beside)


def _beside(files: Sequence[str]) -> Shown:
    """The turns of two files, and their medians beside each other.

    Raises:
        UsageError: when there are not two files.
    """
    if len(files) != _TWO:
        raise UsageError("--beside takes two files")
    sides = [load([path]) for path in files]
    found = beside(*([(case.turn, case.attribution) for case in side.outermost] for side in sides))
    both = Selection(paths=tuple(files), cases=tuple(case for side in sides for case in side.cases))
    return Shown(both, beside_view(found, files))


def show_page(shown: Shown, output: str | None = None, *, is_opened: bool = True) -> None:
    """Write the page, say where it is, and open it.

    Without ``output`` it goes into .turntrace, named after the first file.

    Raises:
        UsageError: when the file cannot be written.
    """
    selection = shown.selection
    path = Path(output) if output else _default_path(selection.paths)
    write(shown.page(), str(path))
    show([Pointers(rows=(_pointer(path, selection),))])
    if is_opened:
        _open(path)


def _default_path(paths: Sequence[str]) -> Path:
    path = Path(DEFAULT_FOLDER) / f"{_name_of(paths[0])}.html"
    try:
        make_folder(path.parent)
        path.touch(FILE_MODE)  # as private as the traces beside it
    except OSError as error:
        message = f"cannot write to {DEFAULT_FOLDER}: {error.strerror or error}; name a file with -o"
        raise UsageError(message) from error
    return path


def _name_of(trace: str) -> str:
    """The name of a trace without what only says how it is written: ``a.b`` of ``runs/a.b.ndjson.gz``."""
    path = Path(trace)
    while path.suffix in _SUFFIXES:
        path = path.with_suffix("")
    return safe_name(path.name) if trace != "-" else "view"


def _pointer(path: Path, selection: Selection) -> Pointer:
    """The line that names the page, with the number of its turns and its size."""
    turns = len(selection.cases)
    figures = f"{count_text(turns)} turn{'s' if turns != 1 else ''}, {size_text(path.stat().st_size)}"
    return Pointer(name="view", target=(Data(str(path)),), figures=figures, note=_NOTE)


def _open(path: Path) -> None:
    """Open the page in the browser of whoever sits at the terminal; where there is none, say so."""
    if not sys.stdout.isatty():
        return
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & set(environment()):
        say("turntrace: no display here; copy the file to where a browser is")
        return
    try:
        is_open = webbrowser.open(path.absolute().as_uri())
    except webbrowser.Error:
        is_open = False
    if not is_open:
        say("turntrace: no browser could be started; open the file with one")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("view", rich_help_panel="Look")(view)
