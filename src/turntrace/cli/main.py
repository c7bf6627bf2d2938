"""``turntrace``: the commands in four panels, their aliases, and one place where errors become exit statuses.

Exit status: 0 ok, 1 what was measured or checked failed, 2 usage or unreadable input.
"""

import contextlib
import io
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from turntrace.cli import bench, check, collect, convert, demo, doctor, query, report, run, send, tail, view
from turntrace.cli.output import UsageError, say
from turntrace.errors import TurntraceError
from turntrace.version import VERSION

__all__ = ["ALIASES", "Commands", "app", "main"]

ALIASES: Final = {"export": "convert", "diff": "compare", "watch": "tail", "validate": "check"}
"""Names that people guess, and the commands they mean."""

_USAGE_STATUS: Final = 2


class Commands(TyperGroup):
    """The commands; it knows the aliases and turns our errors into a line and status 2."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # click's types move with typer
        """The command called ``cmd_name`` or meant by it."""
        return super().get_command(ctx, ALIASES.get(cmd_name, cmd_name))

    def resolve_command(self, ctx: Any, args: Any) -> Any:  # as above
        """The command that ``args`` begin with.

        Raises:
            UsageError: when they begin with a file instead.
        """
        word = str(args[0])
        if self.get_command(ctx, word) is None and Path(word).is_file():
            message = f"{word} is a file, not a command; write turntrace report {shlex.quote(word)}"
            raise UsageError(message)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # as above
        """Run the command; an error of ours is a message on standard error and status 2."""
        try:
            return super().invoke(ctx)
        except TurntraceError as error:
            say(f"turntrace: {error}")
            raise typer.Exit(_USAGE_STATUS) from error


app = typer.Typer(
    cls=Commands,
    name="turntrace",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(*, wanted: bool) -> None:
    if wanted:
        print(f"turntrace {VERSION}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Where did the turn go? Exclusive time, critical path and tokens of LLM agent turns.

    Without a command: the report of the newest file in .turntrace.
    """
    del version
    if context.invoked_subcommand is None:
        report.newest()


for _command in (
    demo,
    report,
    view,
    tail,
    run,
    collect,
    query,
    check,
    convert,
    send,
    doctor,
    bench,
):  # the order of the help and of its panels
    _command.register(app)


def main() -> None:
    """Run the command line of this process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # An output that cannot hold a character shows a question mark; it never ends the command.
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="turntrace")
    except BrokenPipeError:
        _drop_output()  # whoever read has seen enough
    except OSError as error:
        _drop_output()
        say(f"turntrace: standard output takes no more: {error.strerror or error}")
        sys.exit(_USAGE_STATUS)


def _drop_output() -> None:
    """Send what is left to nowhere, so that closing the stream at exit says nothing again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
