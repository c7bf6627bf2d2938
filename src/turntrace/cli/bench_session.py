"""What a benchmark decides before its first run, and the runs: planned, gone on with, written as they finish."""

import hashlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, NamedTuple

import orjson

from turntrace.bench.agents import Agent
from turntrace.bench.campaign import campaign
from turntrace.bench.isolation import CANNOT_STOP, Confinement
from turntrace.bench.isolation_group import ProcessGroups, Watchdog
from turntrace.bench.isolation_sandbox import BubbleWrap, bubblewrap
from turntrace.bench.machine import machine
from turntrace.bench.masking import Masking, secrets_of
from turntrace.bench.order import Turn, schedule
from turntrace.bench.rows import Header, Row, RowFile, read_results
from turntrace.bench.runner import Runner, Wish
from turntrace.bench.tasks import Suite, Task
from turntrace.bench.trust import refusal
from turntrace.cli.output import UsageError, say
from turntrace.cli.progress import ProgressBar
from turntrace.config import environment

__all__ = [
    "How",
    "IsolationName",
    "Place",
    "Session",
    "confined",
    "perform",
    "place_of",
    "refuse",
    "session_of",
    "show_plan",
]

_VERSION_TIMEOUT_S: Final = 10.0

IsolationName = Literal["sandbox", "process"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How runs are confined here, and why not better."""

    mode: IsolationName
    found: str | None
    reason: str


class How(NamedTuple):
    """How often, how many at once, and where to."""

    iterations: int
    warmups: int
    jobs: int
    seed: int | None
    resume: Path | None
    out: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything that is decided before the first run. ``left`` are the runs that have no row yet."""

    suite: Suite
    wish: Wish
    place: Place
    how: How
    header: Header
    path: Path
    left: tuple[Turn, ...]


def refuse(suite: Suite, wish: Wish, place: Place, *, trust_manifest: bool) -> None:
    """Raise what forbids the runs before anything is executed."""
    if wish.agent.needs_model and wish.model is None:
        raise UsageError(f"the agent {wish.agent.name} needs --model")
    why = refusal(suite, place.mode, trust_manifest=trust_manifest)
    if why is not None:
        raise UsageError(why)


def session_of(suite: Suite, tasks: tuple[Task, ...], wish: Wish, place: Place, how: How) -> Session:
    """Plan the runs; of a file that is gone on with, those that it lacks.

    Raises:
        UsageError: the file is of other runs.
    """
    earlier = None if how.resume is None else read_results(how.resume)
    seed = how.seed
    if seed is None:
        seed = time.time_ns() % 2**31 if earlier is None else earlier.header.seed
    wish = replace(wish, seed=seed)
    header = _header(suite, tasks, wish, place, how)
    if earlier is not None and (differing := header.differs(earlier.header)):
        raise UsageError(f"{how.resume} is of other runs: {', '.join(differing)} differ; begin anew with -o")
    done = set() if earlier is None else {row.key for row in earlier.rows}
    planned = schedule(header.tasks, how.iterations, seed)
    return Session(
        suite=suite,
        wish=wish,
        place=place,
        how=how,
        header=header,
        path=how.resume
        or how.out
        or Path(f".turntrace/bench-{suite.id}-{datetime.now(UTC):%Y%m%d-%H%M%S}.ndjson"),
        left=tuple(turn for turn in planned if turn.key not in done),
    )


def perform(session: Session) -> bool:
    """Make the runs that are left, each row on disk as it finishes; False when a person broke it off."""
    mask = Masking(secrets_of(environment(), session.wish.auth))
    stopping = threading.Event()
    with ExitStack() as stack:
        enter = stack.enter_context
        is_new = session.how.resume is None
        file = enter(
            RowFile.create(session.path, session.header, mask)
            if is_new
            else RowFile.resume(session.path, mask)
        )
        confinement = enter(confined(session.place, stopping))
        runner = enter(Runner(session.suite, session.wish, confinement, environment(), Path.home().resolve()))
        say(_said(session.header))
        told: list[Row] = []
        bar = enter(ProgressBar(_counted(told), len(session.left)))

        def tell(row: Row) -> None:
            file.add(row)
            told.append(row)
            bar.advance()
            bar.rename(_counted(told))

        whole = campaign(_warm_ups(session), runner.run, jobs=1, stopping=stopping, tell=lambda _: None)
        whole = whole and campaign(
            session.left, runner.run, jobs=session.how.jobs, stopping=stopping, tell=tell
        )
        if whole:
            file.end()
    say(f"turntrace: {len(told)} rows added to {session.path}")
    return whole


def _warm_ups(session: Session) -> list[Turn]:
    """Runs that fill caches of the machine; they have iteration 0 and no row."""
    left = session.left
    return [
        Turn(left[number % len(left)].task, 0, -1) for number in range(session.how.warmups if left else 0)
    ]


def place_of(asked: IsolationName | None) -> Place:
    """The best isolation there is here, or the one asked for.

    Raises:
        UsageError: a sandbox is asked for and none works.
    """
    found, reason = bubblewrap()
    if asked == "sandbox" and found is None:
        raise UsageError(f"no sandbox: {reason}; --isolation process runs without one")
    if asked == "process" or found is None:
        return Place(mode="process", found=None, reason="asked for" if asked == "process" else reason)
    return Place(mode="sandbox", found=found, reason="")


@contextmanager
def confined(place: Place, stopping: threading.Event) -> Iterator[Confinement]:
    """What runs commands at ``place`` until the block ends or ``stopping`` is set."""
    if place.found is not None:
        yield BubbleWrap(place.found, stopping)
        return
    with Watchdog() as watchdog:
        yield ProcessGroups(watchdog, stopping)


def _header(suite: Suite, tasks: tuple[Task, ...], wish: Wish, place: Place, how: How) -> Header:
    agent = wish.agent
    return Header(
        suite=suite.id,
        suite_sha256=suite.sha256,
        agent=agent.name,
        agent_sha256=_agent_sha256(agent),
        agent_argv=agent.argv,
        model=wish.model,
        seed=wish.seed,
        iterations=how.iterations,
        tasks=tuple(task.id for task in tasks),
        start="cold",
        serial=wish.serial,
        isolation=place.mode,
        isolation_reason=place.reason,
        cannot_stop=CANNOT_STOP[place.mode],
        network=agent.network or place.mode == "process",
        auth=(*(f"env:{name}" for name in wish.auth), *(("login",) if wish.login else ())),
        jobs=how.jobs,
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
        ran = subprocess.run(  # noqa: S603 - a preset
            [agent.argv[0], "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
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


def show_plan(session: Session) -> None:
    """Print what would be run, one line a run."""
    print(
        f"{session.suite.id}: {len(session.left)} runs with {session.wish.agent.name}, "
        f"isolation {session.place.mode}, seed {session.header.seed}"
    )
    for turn in session.left:
        print(f"{turn.position + 1:4}  {turn.task}  iteration {turn.iteration}")
