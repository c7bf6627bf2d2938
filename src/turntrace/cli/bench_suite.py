"""``turntrace bench validate`` and ``list``: whether a suite can be used, and what it holds."""

import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from turntrace.bench.confined_child import ConfinedChild
from turntrace.bench.listing import as_text, fault_json, suite_json
from turntrace.bench.loading import load_suite
from turntrace.bench.matrix import matrix_json, matrix_text
from turntrace.bench.proofs import Proof, prove
from turntrace.bench.sight import hidden_folders
from turntrace.bench.tasks import Suite, SuiteError
from turntrace.bench.trust import refusal
from turntrace.cli.bench_session import IsolationName, Place, confined, place_of
from turntrace.cli.output import UsageError, say, show_lines, write
from turntrace.config import environment
from turntrace.report.json_report import dumped
from turntrace.report.strings import printable

__all__ = ["list_tasks", "register", "validate"]

SuiteArgument = Annotated[
    str,
    typer.Argument(metavar="SUITE", help="A folder with suite.toml, a JSON manifest, or a shipped suite."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="The result as JSON.")]

_FAILED_STATUS = 1


def validate(
    suite: SuiteArgument,
    *,
    proven: Annotated[
        bool,
        typer.Option(
            "--prove", help="Run each oracle on what must fail and what must pass; this executes it."
        ),
    ] = False,
    isolation: Annotated[
        IsolationName | None,
        typer.Option("--isolation", help="Where --prove runs: the sandbox where it works."),
    ] = None,
    trust_manifest: Annotated[
        bool, typer.Option("--trust-manifest", help="Run what the suite brings without a sandbox.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a suite; nothing of it is executed without --prove. Every fault is told with file, line and field.

    Exit status 1 when there are faults, or an oracle is not proven.

    For example:

        turntrace bench validate my-suite
        turntrace bench validate baseline.json --json
        turntrace bench validate examples --prove
    """
    try:
        found = load_suite(suite)
    except SuiteError as error:
        _tell_faults(error, as_json=as_json)
        raise typer.Exit(_FAILED_STATUS) from error
    if proven:
        _prove(found, place_of(isolation), trust_manifest=trust_manifest, as_json=as_json)
    elif as_json:
        write([dumped({"schema": 1, "ok": True, "faults": [], "suite": suite_json(found)}) + b"\n"], None)
    else:
        show_lines(
            [printable(f"{found.id}: ok, {len(found.tasks)} tasks, {found.origin}, sha256 {found.sha256}")]
        )


def _tell_faults(error: SuiteError, *, as_json: bool) -> None:
    if as_json:
        faults = [fault_json(fault) for fault in error.faults]
        write([dumped({"schema": 1, "ok": False, "faults": faults}) + b"\n"], None)
    else:
        show_lines(printable(str(fault)) for fault in error.faults)


def _prove(suite: Suite, place: Place, *, trust_manifest: bool, as_json: bool) -> None:
    """Prove every oracle.

    Raises:
        UsageError: when the suite must not be run here.
    """
    why = refusal(suite, place.mode, trust_manifest=trust_manifest)
    if why is not None:
        raise UsageError(why)
    asked = [task for task in suite.tasks if task.oracle is not None]

    def told(proof: Proof) -> None:
        if sys.stderr.isatty():
            say(f"{proof.task}: {'proven' if proof.is_proven else 'not proven'} ({len(proof.trials)} trials)")

    home = Path.home()
    with confined(place, threading.Event()) as confinement:
        child = ConfinedChild(confinement, environment(), hidden_folders(suite, home))
        proofs = prove(suite, child, told)
    is_proven = all(proof.is_proven for proof in proofs)
    if as_json:
        result = {"schema": 1, "ok": is_proven, "suite": suite_json(suite), "proofs": matrix_json(proofs)}
        write([dumped(result) + b"\n"], None)
    else:
        show_lines(printable(line) for line in matrix_text(proofs))
        trials = sum(len(proof.trials) for proof in proofs)
        show_lines([f"{sum(p.is_proven for p in proofs)} of {len(asked)} oracles proven by {trials} trials"])
    if not is_proven:
        raise typer.Exit(_FAILED_STATUS)


def list_tasks(suite: SuiteArgument, *, as_json: JsonOption = False) -> None:
    """List the tasks of a suite with class, tier and kind of oracle.

    Nothing of the suite is executed.

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
