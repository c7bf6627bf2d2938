"""``turntrace tail``: turns while they run."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from turntrace.cli.output import say, standard_output, styled
from turntrace.core.model import Turn
from turntrace.core.running import running
from turntrace.errors import TraceReadError
from turntrace.files.out import DEFAULT_FOLDER, newest
from turntrace.files.watch import Look, Watch
from turntrace.report.blocks import Block
from turntrace.report.case import examine
from turntrace.report.live import Changes, live_view
from turntrace.report.strings import fit, printable
from turntrace.report.text import lines
from turntrace.report.view import turn_view

__all__ = ["register", "tail"]

_INTERRUPTED_STATUS: Final = 130
_EVERY_S: Final = 0.25
_TABLE_ROWS: Final = 22
"""Lines that a turn takes beside its spans."""


def tail(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="A trace that is written, or will be; the newest in .turntrace if unset."
        ),
    ] = None,
) -> None:
    """Watch turns while they run: what each does now, where its time went so far, its tokens.

    The file may appear later, be rotated or be emptied. On a terminal it is a live view; piped, a line for each
    change. Ctrl-C ends it.

    For example:

        turntrace tail
        turntrace tail run.ndjson
        turntrace tail run.ndjson | grep tool
    """
    try:
        _follow(file)
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED_STATUS) from None


def _follow(file: str | None) -> None:
    if standard_output().isatty():
        _show(_looks(file))
    else:
        _print(_looks(file))


def _looks(file: str | None) -> Iterator[tuple[Watch | None, Look]]:
    """What there is, four times a second; less often where looking takes long."""
    watch: Watch | None = None
    said = False
    while True:
        began = time.monotonic()
        path = Path(file) if file else newest(Path(DEFAULT_FOLDER))
        if path is not None and (watch is None or watch.path != path):
            watch = Watch(path)
        if watch is None and not said:
            say(f"turntrace: nothing in {DEFAULT_FOLDER} yet; waiting")
            said = True
        try:
            look = Look() if watch is None else watch.look()
        except OSError as error:
            raise TraceReadError(error.strerror or str(error), path=str(path)) from error
        yield watch, look
        took = time.monotonic() - began
        time.sleep(max(_EVERY_S - took, took, 0.0))


def _print(looks: Iterator[tuple[Watch | None, Look]]) -> None:
    """A line for each change; what was closed before the start is no change."""
    changes = Changes()
    out = standard_output()
    is_first = True
    for _, look in looks:
        for turn in () if is_first else look.closed:
            out.writelines(f"{line}\n" for line in changes.of(turn, is_over=True))
        for turn in look.dead:
            out.writelines(f"{line}\n" for line in changes.of(turn, is_over=True))
        for turn in look.running:
            out.writelines(f"{line}\n" for line in changes.of(turn, is_over=False))
        changes.forget(look.closed)
        out.flush()
        is_first = False


def _show(looks: Iterator[tuple[Watch | None, Look]]) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False, markup=False, emoji=False)
    last: Turn | None = None
    with Live(console=console, auto_refresh=False, transient=False) as live:
        for watch, look in looks:
            last = (look.closed or look.dead or (last,))[-1]
            live.update(_screen(watch, look, last), refresh=True)


def _screen(watch: Watch | None, look: Look, last: Turn | None) -> Any:
    """The running turns, else the last one that ended."""
    from rich.text import Text

    size = shutil.get_terminal_size()
    blocks: list[Block] = []
    if look.running:
        now_ns = time.time_ns()
        room = size.lines // len(look.running) - _TABLE_ROWS
        for turn in look.running:
            blocks += live_view(running(turn, now_ns), room)
    elif last is not None:
        blocks += turn_view(examine(last))
    found = [styled(line) for line in lines(blocks, width=size.columns, bars=True)]
    where = "waiting for a trace" if watch is None else printable(str(watch.path))
    what = f"{len(look.running)} running" if blocks else "no turn yet"
    foot = Text(fit(f"{what} · Ctrl-C ends · {where}", size.columns - 1), "dim")
    return Text("\n", no_wrap=True, overflow="crop").join([*found[: size.lines - 2], Text(""), foot])


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tail", rich_help_panel="Look")(tail)
