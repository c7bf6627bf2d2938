"""``turntrace bench init`` and ``add``: suites of one's own."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from turntrace.bench.from_git import DEFAULT_COMMAND, Added, Adder, Recipe
from turntrace.bench.history import History
from turntrace.bench.plain_child import run_plain_child
from turntrace.bench.starting import starter_files, write_starter
from turntrace.cli.output import UsageError, say, show_lines, write
from turntrace.report.json_report import dumped
from turntrace.report.strings import printable

__all__ = ["add", "init", "register"]

_FAILED_STATUS = 1
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be written; write nothing.")]


def init(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A folder that is not there yet, or empty.")],
    *,
    dry_run: DryRunOption = False,
) -> None:
    """Write a suite of one task that can be validated, proven and run as it is.

    A folder that holds something already is left alone.

    For example:

        turntrace bench init my-suite
        turntrace bench validate my-suite --prove --trust-manifest
    """
    root = Path(folder)
    if not dry_run:
        write_starter(root)
    show_lines(printable(str(root / relative)) for relative in starter_files())


def add(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's folder.")],
    *,
    from_git: Annotated[
        str,
        typer.Option("--from-git", metavar="REPO[@REV]", help="A local repository, and one commit of it."),
    ],
    newest: Annotated[
        int | None,
        typer.Option("--newest", metavar="N", min=1, help="Try the newest N commits instead of one."),
    ] = None,
    command: Annotated[
        str, typer.Option("--test-command", metavar="CMD", help="How tests run; {tests} are the test files.")
    ] = DEFAULT_COMMAND,
    set_up: Annotated[
        list[str] | None,
        typer.Option(
            "--set-up", metavar="CMD", help="Run once in each fixture, outside every measured time."
        ),
    ] = None,
    task_class: Annotated[
        str, typer.Option("--class", metavar="NAME", help="The class of the tasks.")
    ] = "fix",
    dry_run: DryRunOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Make tasks of commits: the parent is the fixture, the commit's tests the oracle, the rest the solution.

    A commit is kept only if its tests fail before it and pass after it; this runs the repository's tests.
    Exit status 1 when none was kept.

    For example:

        turntrace bench add my-suite --from-git ../project@4f2c1a9
        turntrace bench add my-suite --from-git ../project --newest 50 --dry-run
    """
    repository, revisions = _revisions(from_git, newest)
    adder = Adder(
        Path(suite),
        Recipe(command=command, set_up=tuple(set_up or ()), task_class=task_class),
        run_plain_child,
    )
    added = []
    for number, revision in enumerate(revisions, 1):
        if sys.stderr.isatty():
            say(f"{number} of {len(revisions)}: {revision[:10]}")
        added.append(adder.add(repository, revision, dry_run=dry_run))
    _tell(added, as_json=as_json)
    if not any(one.task for one in added):
        raise typer.Exit(_FAILED_STATUS)


def _revisions(from_git: str, newest: int | None) -> tuple[History, Sequence[str]]:
    """The repository and the commits that are asked for.

    Raises:
        UsageError: for no repository, or both a commit and a number.
    """
    place, _, revision = from_git.partition("@")
    if not Path(place).is_dir():
        raise UsageError(f"{place} is no folder; clone the repository first")
    if newest is not None and revision:
        raise UsageError("--newest and a commit exclude each other")
    history = History(Path(place))
    return history, [revision or "HEAD"] if newest is None else history.newest(newest)


def _tell(added: Sequence[Added], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"revision": one.revision, "subject": one.subject, "task": one.task, "reason": one.reason or None}
            for one in added
        ]
        write([dumped({"schema": 1, "commits": rows}) + b"\n"], None)
        return
    for one in added:
        outcome = f"added as {one.task}" if one.task else f"left out: it {one.reason}"
        show_lines([printable(f"{one.revision[:10]}  {outcome}  ({one.subject[:60]})")])


def register(group: typer.Typer) -> None:
    """Add the commands to ``turntrace bench``."""
    group.command("init")(init)
    group.command("add")(add)
