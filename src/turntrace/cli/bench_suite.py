"""``turntrace bench validate`` and ``list``: whether a suite can be used, and what it holds."""

from typing import Annotated

import typer

from turntrace.bench.listing import as_text, fault_json, suite_json
from turntrace.bench.loading import load_suite
from turntrace.bench.tasks import SuiteError
from turntrace.cli.output import show_lines, write
from turntrace.report.json_report import dumped
from turntrace.report.strings import printable

__all__ = ["list_tasks", "register", "validate"]

SuiteArgument = Annotated[
    str,
    typer.Argument(metavar="SUITE", help="A folder with suite.toml, a JSON manifest, or a shipped suite."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="The result as JSON.")]

_FAILED_STATUS = 1


def validate(suite: SuiteArgument, *, as_json: JsonOption = False) -> None:
    """Check a suite; nothing of it is executed. Every fault is told with file, line and field.

    Exit status 1 when there are faults.

    For example:

        turntrace bench validate my-suite
        turntrace bench validate baseline.json --json
    """
    try:
        found = load_suite(suite)
    except SuiteError as error:
        if as_json:
            faults = [fault_json(fault) for fault in error.faults]
            write([dumped({"schema": 1, "ok": False, "faults": faults}) + b"\n"], None)
        else:
            show_lines(printable(str(fault)) for fault in error.faults)
        raise typer.Exit(_FAILED_STATUS) from error
    if as_json:
        write([dumped({"schema": 1, "ok": True, "faults": [], "suite": suite_json(found)}) + b"\n"], None)
    else:
        show_lines([printable(f"{found.path}: ok, {len(found.tasks)} tasks, sha256 {found.sha256}")])


def list_tasks(suite: SuiteArgument, *, as_json: JsonOption = False) -> None:
    """List the tasks of a suite with class, tier and kind of oracle; nothing of it is executed.

    For example:

        turntrace bench list my-suite
        turntrace bench list my-suite --json
    """
    found = load_suite(suite)
    if as_json:
        write([dumped({"schema": 1, "suite": suite_json(found)}) + b"\n"], None)
    else:
        show_lines(printable(line) for line in as_text(found))


def register(group: typer.Typer) -> None:
    """Add the commands to ``turntrace bench``."""
    group.command("validate")(validate)
    group.command("list")(list_tasks)
