"""``turntrace view``: the report of one or many turns as a picture, one HTML file that needs no network."""

import sys
import webbrowser
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from turntrace.cli.output import UsageError, say, show, write
from turntrace.cli.selection import Selection, load
from turntrace.config import environment
from turntrace.files.out import DEFAULT_FOLDER, safe_name
from turntrace.files.preparation import make_folder
from turntrace.report.blocks import Pointer, Pointers
from turntrace.report.page.document import page
from turntrace.report.rounding import count_text, size_text
from turntrace.report.strings import Data

__all__ = ["register", "show_page", "view"]

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
) -> None:
    """Draw where the wall time went: one HTML file with everything in it, which asks nothing of any network.

    It shows the phases as one bar, what to fix first, the waterfall with the critical path, a flame, every
    span, and the tokens. A browser opens it when the command is typed in a terminal.

    For example:

        turntrace view
        turntrace view run.ndjson -o run.html
        turntrace view monday.ndjson tuesday.ndjson --no-open
    """
    selection = load(files or ())
    if output == "-":
        write(_pieces(selection), None)
        return
    show_page(selection, output, is_opened=not no_open)


def _pieces(selection: Selection) -> Iterable[bytes]:
    return page(selection.cases, selection.paths)


def show_page(selection: Selection, output: str | None = None, *, is_opened: bool = True) -> None:
    """Write the page of the turns, say where it is, and open it.

    Without ``output`` it goes into .turntrace, named after the first file.

    Raises:
        UsageError: when the file cannot be written.
    """
    path = Path(output) if output else _default_path(selection.paths)
    write(_pieces(selection), str(path))
    show([Pointers(rows=(_pointer(path, selection),))])
    if is_opened:
        _open(path)


def _default_path(paths: Sequence[str]) -> Path:
    folder = Path(DEFAULT_FOLDER)
    name = Path(paths[0]).name.partition(".")[0] if paths[0] != "-" else "view"
    try:
        make_folder(folder)
        return folder / f"{safe_name(name)}.html"
    except OSError as error:
        message = f"cannot write to {DEFAULT_FOLDER}: {error.strerror or error}; name a file with -o"
        raise UsageError(message) from error


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
