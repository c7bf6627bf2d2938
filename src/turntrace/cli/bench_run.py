"""``turntrace bench run``: agents over a suite, one row a run."""

from pathlib import Path
from typing import Annotated, Final

import typer

from turntrace.bench.agents import agent_of
from turntrace.bench.gates import gate_of
from turntrace.bench.loading import load_suite
from turntrace.bench.rows import read_results
from turntrace.bench.runner import Wish
from turntrace.bench.selecting import selected
from turntrace.cli.bench_report import conclude, show_results
from turntrace.cli.bench_session import How, IsolationName, perform, place_of, refuse, session_of, show_plan
from turntrace.cli.output import UsageError, say

__all__ = ["register", "run"]

_INTERRUPTED: Final = 130


def run(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A shipped suite, a folder, or a manifest of zero's.")
    ],
    *,
    agent: Annotated[str | None, typer.Option("--agent", help="A preset, or python:MODULE:FUNC.")] = None,
    agent_cmd: Annotated[
        str | None,
        typer.Option(
            "--agent-cmd", metavar="CMD", help="{prompt} {workspace} {task_id} {model} are filled in."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="For agents that ask for one.")] = None,
    iterations: Annotated[int, typer.Option("-r", "--iterations", min=1, help="Runs of each task.")] = 3,
    warmups: Annotated[
        int, typer.Option("-w", "--warm-ups", min=0, help="Runs before the first; not counted.")
    ] = 1,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", min=1, help="Runs at once; above 1 they disturb each other.")
    ] = 1,
    select: Annotated[
        str | None, typer.Option("-k", help="Words of ids and classes with and, or, not.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0.1, help="Seconds of a run; the task's if unset.")
    ] = None,
    isolation: Annotated[
        IsolationName | None, typer.Option("--isolation", help="The sandbox where it works.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of order and inputs; drawn if unset, stored.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="FILE", help="Go on with a file.")
    ] = None,
    serial: Annotated[
        bool, typer.Option("--serial", help="The bundled agent runs its tools one by one.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run; execute nothing.")
    ] = False,
    trust_manifest: Annotated[
        bool, typer.Option("--trust-manifest", help="Run the suite's commands unsandboxed.")
    ] = False,
    ro: Annotated[
        list[Path] | None, typer.Option("--ro", metavar="DIR", help="Show the agent a folder, read-only.")
    ] = None,
    auth: Annotated[
        str | None, typer.Option("--auth", metavar="env:NAME|login", help="What logs the agent in.")
    ] = None,
    no_trace: Annotated[bool, typer.Option("--no-trace", help="Do not ask the agent for a trace.")] = False,
    export_zero: Annotated[
        Path | None, typer.Option("--export-zero", metavar="P", help="Also zero's document.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The result file.")
    ] = None,
    fail_on: Annotated[
        list[str] | None, typer.Option("--fail-on", metavar="EXPR", help="As correctness<90%.")
    ] = None,
) -> None:
    """Run an agent over the tasks of a suite, each run in a fresh copy and judged apart, and keep a row of each.

    Exit status: 0 ran; 1 a --fail-on held, an expectation of the suite failed, every run errored or none left
    a usable trace; 2 usage; 130 interrupted, rows kept.

    For example:

        turntrace bench run mock --agent reference
        turntrace bench run mock --agent-cmd 'my-agent --prompt {prompt}' -r 5 -o mine.ndjson
        turntrace bench run mock --agent reference --resume mine.ndjson
    """
    place = place_of(isolation)
    names, login = _auth(auth)
    wish = Wish(
        agent=agent_of(agent, agent_cmd),
        model=model,
        seed=0,
        serial=serial,
        timeout_s=timeout,
        trace=not no_trace,
        auth=names,
        login=login,
        readable=tuple(path.resolve() for path in ro or ()),
    )
    gates = [gate_of(text) for text in fail_on or ()]
    found = load_suite(suite)
    refuse(found, wish, place, trust_manifest=trust_manifest)
    session = session_of(
        found, selected(found, select), wish, place, How(iterations, warmups, jobs, seed, resume, out)
    )
    if dry_run:
        show_plan(session)
        return
    if not perform(session):
        say(f"turntrace: interrupted; go on with --resume {session.path}")
        raise typer.Exit(_INTERRUPTED)
    results = read_results(session.path)
    show_results(results, "text", export_zero=export_zero)
    conclude(results, gates, needs_trace=not no_trace and wish.agent.traces == "native")


def _auth(given: str | None) -> tuple[tuple[str, ...], bool]:
    if given is None:
        return (), False
    if given == "login":
        return (), True
    if not given.startswith("env:") or not given.removeprefix("env:"):
        raise UsageError(f"--auth {given}: write env:NAME or login")
    return (given.removeprefix("env:"),), False


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("run")(run)
