"""``turntrace bench run``: agents over a suite, one row a run."""

import hashlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import orjson
import typer

from turntrace.bench.agents import Agent, agent_of
from turntrace.bench.campaign import campaign
from turntrace.bench.gates import gate_of
from turntrace.bench.isolation import CANNOT_STOP, Confinement
from turntrace.bench.isolation_group import ProcessGroups, Watchdog
from turntrace.bench.isolation_sandbox import BubbleWrap, bubblewrap
from turntrace.bench.loading import load_suite
from turntrace.bench.machine import machine
from turntrace.bench.masking import Masking, secrets_of
from turntrace.bench.order import Turn, schedule
from turntrace.bench.rows import Header, Row, RowFile, read_results
from turntrace.bench.runner import Runner, Wish
from turntrace.bench.tasks import Suite, Task
from turntrace.bench.trust import refusal
from turntrace.cli.bench_report import conclude, show_results
from turntrace.cli.output import UsageError, say
from turntrace.cli.progress import ProgressBar
from turntrace.config import environment

__all__ = ["register", "run"]

_INTERRUPTED: Final = 130
_VERSION_TIMEOUT_S: Final = 10.0
_TRIAL: Final = "Reply with the single word ready and do nothing else."

IsolationName = Literal["sandbox", "process"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """How runs are confined here, and why not better."""

    mode: IsolationName
    found: str | None
    reason: str


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
    gates = [gate_of(text) for text in fail_on or ()]
    found = load_suite(suite)
    chosen = agent_of(agent, agent_cmd)
    if chosen.needs_model and model is None:
        raise UsageError(f"the agent {chosen.name} needs --model")
    place = _place(isolation)
    why = refusal(found, place.mode, trust_manifest=trust_manifest)
    if why is not None:
        raise UsageError(why)
    tasks = _selected(found, select)
    earlier = None if resume is None else read_results(resume)
    if seed is None:
        seed = time.time_ns() % 2**31 if earlier is None else earlier.header.seed
    names, login = _auth(auth)
    wish = Wish(
        agent=chosen, model=model, seed=seed, serial=serial, timeout_s=timeout, trace=not no_trace,
        auth=names, login=login, readable=tuple(path.resolve() for path in ro or ()),
    )  # fmt: skip
    planned = list(schedule([task.id for task in tasks], iterations, seed))
    if dry_run:
        _dry(found, chosen, planned, place)
        return
    header = _header(found, tasks, wish, place, iterations=iterations, jobs=jobs)
    path = resume or out or Path(f".turntrace/bench-{found.id}-{datetime.now(UTC):%Y%m%d-%H%M%S}.ndjson")
    mask = Masking(secrets_of(environment(), names))
    if earlier is not None and (differing := header.differs(earlier.header)):
        raise UsageError(f"{path} is of other runs: {', '.join(differing)} differ; begin anew with -o")
    done = set() if earlier is None else {row.key for row in earlier.rows}
    stopping = threading.Event()
    with ExitStack() as stack:
        file = stack.enter_context(
            RowFile.create(path, header, mask) if earlier is None else RowFile.resume(path, mask)
        )
        confinement = stack.enter_context(_confined(place, stopping))
        runner = stack.enter_context(Runner(found, wish, confinement, environment(), Path.home().resolve()))
        say(_said(header))
        left = [turn for turn in planned if turn.key not in done]
        for number in range(warmups if left else 0):
            runner.run(Turn(left[number % len(left)].task, 0, -1))
        bar = stack.enter_context(ProgressBar(_counted([]), len(left)))
        told: list[Row] = []

        def tell(row: Row) -> None:
            file.add(row)
            told.append(row)
            bar.advance()
            bar.rename(_counted(told))

        whole = campaign(left, runner.run, jobs=jobs, stopping=stopping, tell=tell)
        if whole:
            file.end()
    results = read_results(path)
    say(f"turntrace: {len(results.rows)} rows in {path}")
    if not whole:
        say(f"turntrace: interrupted; go on with --resume {path}")
        raise typer.Exit(_INTERRUPTED)
    show_results(results, "text", export_zero=export_zero)
    conclude(results, gates, needs_trace=not no_trace and chosen.traces == "native")


def _place(asked: IsolationName | None) -> _Place:
    found, reason = bubblewrap()
    if asked == "sandbox" and found is None:
        raise UsageError(f"no sandbox: {reason}; --isolation process runs without one")
    if asked == "process" or found is None:
        return _Place(mode="process", found=None, reason="asked for" if asked == "process" else reason)
    return _Place(mode="sandbox", found=found, reason="")


@contextmanager
def _confined(place: _Place, stopping: threading.Event) -> Iterator[Confinement]:
    if place.found is not None:
        yield BubbleWrap(place.found, stopping)
        return
    with Watchdog() as watchdog:
        yield ProcessGroups(watchdog, stopping)


def _selected(suite: Suite, expression: str | None) -> tuple[Task, ...]:
    """The tasks that an expression of words over ids and classes keeps."""
    if expression is None:
        return suite.tasks
    if re.fullmatch(r"[\w .()-]+", expression) is None:
        raise UsageError(f"-k {expression}: words of ids and classes with and, or, not and parentheses")
    kept = tuple(task for task in suite.tasks if _matches(expression, f"{task.id} {task.task_class}"))
    if not kept:
        raise UsageError(f"-k {expression} keeps none of the {len(suite.tasks)} tasks of {suite.id}")
    return kept


def _matches(expression: str, words: str) -> bool:
    """Each word is true where it is part of ``words``; what is left is nothing but logic."""
    tokens = re.findall(r"[()]|[\w.-]+", expression)
    logic = [token if token in {"and", "or", "not", "(", ")"} else str(token in words) for token in tokens]
    try:
        return bool(eval(" ".join(logic), {"__builtins__": {}}))  # noqa: S307 - True, False, and, or, not, parentheses only
    except SyntaxError as error:
        raise UsageError(f"-k {expression}: not an expression of words with and, or, not") from error


def _auth(given: str | None) -> tuple[tuple[str, ...], bool]:
    if given is None:
        return (), False
    if given == "login":
        return (), True
    if not given.startswith("env:") or not given.removeprefix("env:"):
        raise UsageError(f"--auth {given}: write env:NAME or login")
    return (given.removeprefix("env:"),), False


def _header(
    suite: Suite, tasks: tuple[Task, ...], wish: Wish, place: _Place, *, iterations: int, jobs: int
) -> Header:
    agent = wish.agent
    return Header(
        suite=suite.id,
        suite_sha256=suite.sha256,
        agent=agent.name,
        agent_sha256=_agent_sha256(agent),
        agent_argv=agent.argv,
        model=wish.model,
        seed=wish.seed,
        iterations=iterations,
        tasks=tuple(task.id for task in tasks),
        start="cold",
        serial=wish.serial,
        isolation=place.mode,
        isolation_reason=place.reason,
        cannot_stop=CANNOT_STOP[place.mode],
        network=agent.network or place.mode == "process",
        auth=(*(f"env:{name}" for name in wish.auth), *(("login",) if wish.login else ())),
        jobs=jobs,
        machine=asdict(machine()),
        created_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        agent_version=_version(agent),
    )


def _agent_sha256(agent: Agent) -> str:
    shown = {**asdict(agent), "incomplete": sorted(agent.incomplete)}
    shown["argv"] = [word if word != sys.executable else "python" for word in agent.argv]
    return hashlib.sha256(orjson.dumps(shown)).hexdigest()


def _version(agent: Agent) -> str | None:
    """What a coding agent says of its version; nobody else is asked."""
    if not agent.network or agent.name == "command" or agent.name.startswith("python:"):
        return None
    try:
        ran = subprocess.run(
            [agent.argv[0], "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )  # noqa: S603 - a preset
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.strip()[:100] or None


def _said(header: Header) -> str:
    reason = f" ({header.isolation_reason})" if header.isolation_reason else ""
    return (
        f"turntrace: {header.suite}, {len(header.tasks)} tasks x {header.iterations}, seed {header.seed}; isolation "
        f"{header.isolation}{reason} cannot stop: {', '.join(header.cannot_stop)}"
    )


def _counted(rows: list[Row]) -> str:
    """What stands beside the bar: passes by tier."""
    tiers = sorted({row.tier for row in rows})
    parts = [
        f"{tier} {sum(row.passed for row in rows if row.tier == tier)}/{sum(row.tier == tier for row in rows)}"
        for tier in tiers
    ]
    return " · ".join(["bench", *parts])


def _dry(suite: Suite, agent: Agent, planned: list[Turn], place: _Place) -> None:
    print(f"{suite.id}: {len(planned)} runs with {agent.name}, isolation {place.mode}")
    for turn in planned:
        print(f"{turn.position + 1:4}  {turn.task}  iteration {turn.iteration}")


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("run")(run)
