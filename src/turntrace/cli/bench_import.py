"""``turntrace bench import``: tasks in the formats of others."""

from pathlib import Path
from typing import Annotated

import typer

from turntrace.bench.harbor import import_harbor
from turntrace.bench.plain_child import run_plain_child
from turntrace.cli.output import UsageError, show_lines, write
from turntrace.report.json_report import dumped
from turntrace.report.strings import printable

__all__ = ["harbor", "register"]

_FAILED_STATUS = 1


def harbor(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="A task in Harbor's format, or a folder of them.")
    ],
    *,
    into: Annotated[
        str, typer.Option("--into", metavar="SUITE", help="The suite's folder; made where it is not there.")
    ] = "harbor-suite",
    solve: Annotated[
        bool, typer.Option("--solve", help="Run each solve.sh in a copy to write solution.patch.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be taken; write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Take tasks that need nothing of a container, and say of the others what they need.

    Nothing of them is executed without --solve. Exit status 1 when none was taken.

    For example:

        turntrace bench import harbor ./tasks --into my-suite --dry-run
        turntrace bench import harbor ./tasks/hello --into my-suite --solve
    """
    if not Path(folder).is_dir():
        raise UsageError(f"{folder} is no folder")
    found = import_harbor(Path(folder), Path(into), run_plain_child if solve else None, dry_run=dry_run)
    if as_json:
        rows = [{"task": one.name, "taken": not one.reasons, "reasons": list(one.reasons)} for one in found]
        write([dumped({"schema": 1, "tasks": rows}) + b"\n"], None)
    else:
        for one in found:
            show_lines([printable(f"{one.name}: {'left out' if one.reasons else 'taken'}")])
            show_lines(printable(f"  {reason}") for reason in one.reasons)
    if all(one.reasons for one in found):
        raise typer.Exit(_FAILED_STATUS)


def register(group: typer.Typer) -> None:
    """Add the group of formats to ``turntrace bench``."""
    formats = typer.Typer(name="import", no_args_is_help=True)
    formats.command("harbor")(harbor)
    formats.callback()(_formats)
    group.add_typer(formats)


def _formats() -> None:
    """Take tasks in the formats of others.

    What cannot be taken is named with its reason.

    For example:

        turntrace bench import harbor ./tasks --into my-suite --dry-run
    """
