"""One run from a fresh copy of the fixture to a row: start, wait, read, judge, tell."""

import shutil
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import orjson

from turntrace.bench.agents import Agent
from turntrace.bench.answers import answer_of
from turntrace.bench.changes import Changes, changes, put_changes
from turntrace.bench.confined_child import ConfinedChild
from turntrace.bench.isolation import Command, Confinement, Ended, allowed_env
from turntrace.bench.isolation_folder import RunFolder
from turntrace.bench.isolation_sandbox import interpreter_prefixes
from turntrace.bench.judging import judge
from turntrace.bench.machine import load_now
from turntrace.bench.order import Turn, run_seed
from turntrace.bench.readout import Readout, read_trace, self_reported
from turntrace.bench.rows import Row
from turntrace.bench.services import Services
from turntrace.bench.sight import hidden_folders, program_prefixes
from turntrace.bench.solutions import patch_and_answer
from turntrace.bench.tasks import Suite, Task, Verdict, VerdictStatus
from turntrace.core.overlap import Overlap, OverlapVerdict
from turntrace.core.owed_usage import OwedUsage, owed_usage
from turntrace.errors import TurntraceError

__all__ = ["Runner", "SetUpError", "Wish"]

_RESPONSE_ID: Final = "gen_ai.response.id"
_TOO_MANY: Final = 429


class SetUpError(TurntraceError):
    """A suite's own preparation of a fixture failed: no run of the task would say anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be run, beside the suite. ``readable`` are folders shown to the agent read-only."""

    agent: Agent
    model: str | None = None
    seed: int = 0
    serial: bool = False
    timeout_s: float | None = None
    trace: bool = True
    auth: tuple[str, ...] = ()
    login: bool = False
    readable: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What is known once the agent is dead."""

    ended: Ended
    started_at_ns: int
    readout: Readout
    owed: OwedUsage | None
    requests: int | None
    throttled: bool
    overlap: Overlap | None


class Runner:
    """Runs tasks, from several threads at once if need be. ``env`` is the harness's own environment."""

    def __init__(
        self, suite: Suite, wish: Wish, confinement: Confinement, env: Mapping[str, str], home: Path
    ) -> None:
        self._tasks = {task.id: task for task in suite.tasks}
        self._wish = wish
        self._confinement = confinement
        self._env = env
        self._home = home
        self._hidden = hidden_folders(suite, home)
        self._child = ConfinedChild(confinement, env, self._hidden)
        self._readable = (*interpreter_prefixes(), *program_prefixes(wish.agent.argv, home), *wish.readable)
        self._prepared: dict[str, Path | None] = {}
        self._lock = threading.Lock()
        self._responses: set[str] = set()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, turn: Turn) -> Row:
        """Make one run. An overlap that load made inconclusive is tried once more."""
        row = self._run(turn)
        if row.overlap is not None and row.overlap["verdict"] == OverlapVerdict.INCONCLUSIVE:
            row = self._run(turn)
        return row

    def _run(self, turn: Turn) -> Row:
        task = self._tasks[turn.task]
        before = asdict(load_now())
        clock_ns = time.monotonic_ns
        began_ns = clock_ns()
        fixture = self._fixture(task)
        with RunFolder(fixture) as folder:
            set_up_ns = clock_ns() - began_ns
            seen = self._agent(task, folder)
            after = asdict(load_now())
            dead_ns = clock_ns()
            found = changes(fixture, folder.workspace, task.allowed)
            verdict = self._verdict(task, turn, folder, found, seen.ended)
            oracle_ns = clock_ns() - dead_ns
        row = self._row(task, turn, seen, verdict, found)
        return replace(row, set_up_ns=set_up_ns, oracle_ns=oracle_ns, load_before=before, load_after=after)

    def _fixture(self, task: Task) -> Path | None:
        """The fixture, or a copy on which the task's set-up has been run: once, outside every measured time."""
        if not task.set_up:
            return task.fixture
        with self._lock:
            if task.id not in self._prepared:
                folder = self._stack.enter_context(RunFolder(task.fixture))
                for argv in task.set_up:
                    command = Command(
                        argv=argv,
                        cwd=folder.workspace,
                        env={**allowed_env(self._env), **folder.env()},
                        timeout_s=task.timeout_s,
                        writable=folder.writable,
                        readable=self._readable,
                        hidden=self._hidden,
                        network=True,
                    )
                    ended = self._confinement.run(command)
                    if ended.status != 0:
                        said = ended.stderr.data.decode(errors="replace").strip().splitlines()
                        raise SetUpError(
                            f"the set-up of task {task.id} failed: {said[-1] if said else ended.status}"
                        )
                self._prepared[task.id] = folder.workspace
            return self._prepared[task.id]

    def _agent(self, task: Task, folder: RunFolder) -> _Seen:
        """Run the agent and read what it and the harness's servers have to tell."""
        agent = self._wish.agent
        trace = folder.traces / "trace.ndjson"
        self._log_in(folder)
        with Services(
            agent, task, folder.traces, self._confinement.mode, serial=self._wish.serial
        ) as services:
            words = {
                "prompt": task.prompt,
                "workspace": str(folder.workspace),
                "task_id": task.id,
                "model": self._wish.model or "",
                "answer_file": str(folder.traces / "answer.txt"),
                "trace": str(trace),
            }
            env = {
                **allowed_env(self._env, self._wish.auth),
                **folder.env(),
                **({"TURNTRACE_TRACE": str(trace)} if self._wish.trace else {"TURNTRACE_DISABLED": "1"}),
                **{name: value.replace("{trace}", str(trace)) for name, value in agent.env},
                **services.env,
            }
            command = Command(
                argv=agent.command(words),
                cwd=folder.workspace,
                env=env,
                timeout_s=self._wish.timeout_s or task.timeout_s,
                stdin=self._stdin(task),
                writable=folder.writable,
                readable=self._readable,
                hidden=self._hidden,
                network=agent.network,
                served=services.served,
            )
            started_at_ns = time.time_ns()
            ended = self._confinement.run(command)
            ended_at_ns = time.time_ns()
            exchanges, calls = services.exchanges(), services.calls()
            overlap = services.overlap()
        requests = None if calls is None else sum(call.owes for call in calls)
        readout = Readout(status="off")
        if self._wish.trace and agent.traces == "native":
            readout = read_trace(trace, began_ns=started_at_ns, ended_ns=ended_at_ns, requests=requests)
        owing = readout.calls if calls is None and readout.turns else calls
        return _Seen(
            ended=ended,
            started_at_ns=started_at_ns,
            readout=readout,
            owed=None if owing is None else owed_usage(owing),
            requests=requests,
            throttled=any(one.status == _TOO_MANY for one in exchanges or ()),
            overlap=overlap,
        )

    def _stdin(self, task: Task) -> bytes:
        agent = self._wish.agent
        if agent.feeds == "solution":
            return orjson.dumps(patch_and_answer(task))
        return b"" if agent.takes_prompt else task.prompt.encode()

    def _log_in(self, folder: RunFolder) -> None:
        """Copy the files that log the agent in, when the person asked for it."""
        for name in self._wish.agent.login if self._wish.login else ():
            source = self._home / name
            if source.is_file():
                target = folder.home / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                target.chmod(0o600)

    def _verdict(self, task: Task, turn: Turn, folder: RunFolder, found: Changes, ended: Ended) -> Verdict:
        """Judge what was allowed to change, on a copy that the agent never saw."""
        if ended.interrupted or ended.status is None:
            return Verdict(status=VerdictStatus.ERROR, reason="the agent did not run", details={})
        answer = answer_of(self._wish.agent, ended.stdout.data, folder.traces / "answer.txt")
        with RunFolder(self._fixture(task)) as fresh:
            put_changes(found, folder.workspace, fresh.workspace)
            seed = run_seed(self._wish.seed, turn.task, turn.iteration)
            return judge(task, fresh.workspace, answer, seed, self._child)

    def _row(self, task: Task, turn: Turn, seen: _Seen, verdict: Verdict, found: Changes) -> Row:
        ended = seen.ended
        failures = _failures(task, seen, found)
        counts = ended.status == 0 or ended.status in self._wish.agent.incomplete
        is_whole = counts and not (ended.timed_out or ended.interrupted)
        twice = self._seen_twice(seen.readout)
        error = ended.error
        usage = None if seen.owed is None else asdict(seen.owed)
        return Row(
            task=task.id,
            task_class=task.task_class,
            tier=task.tier.value,
            iteration=turn.iteration,
            position=turn.position,
            seed=run_seed(self._wish.seed, turn.task, turn.iteration),
            start="cold",
            expect=None if task.expect is None else task.expect.value,
            started_at_ns=seen.started_at_ns,
            exit=ended.status,
            timed_out=ended.timed_out,
            forced=ended.forced,
            left_running=ended.left_running,
            interrupted=ended.interrupted,
            error=error,
            verdict=verdict.status.value,
            reason=verdict.reason or _why_not(ended),
            passed=verdict.status is VerdictStatus.PASS and is_whole and not failures,
            failures=failures,
            outside=found.outside,
            samples=is_whole and not (seen.throttled or twice),
            throttled=seen.throttled,
            cached_twice=twice,
            wall_ns=ended.wall_ns,
            set_up_ns=0,
            oracle_ns=0,
            output_bytes=ended.stdout.total_bytes + ended.stderr.total_bytes,
            output_cut_bytes=ended.stdout.cut_bytes + ended.stderr.cut_bytes,
            requests=seen.requests,
            attempts_refused=None if seen.owed is None else seen.owed.attempts_refused,
            usage=usage,
            overlap=None if seen.overlap is None else asdict(seen.overlap),
            trace=seen.readout.status,
            trace_issues=seen.readout.issues,
            self_reported=self_reported(seen.readout),
        )

    def _seen_twice(self, readout: Readout) -> bool:
        """Whether an answer came that an earlier run had: somebody keeps answers, and times nothing.

        The bundled model server numbers its answers anew for every run.
        """
        spans = [span for turn in readout.turns for span in turn.spans]
        found = {str(span.attributes[_RESPONSE_ID]) for span in spans if _RESPONSE_ID in span.attributes}
        if self._wish.agent.feeds == "model":
            return False
        with self._lock:
            twice = bool(found & self._responses)
            self._responses |= found
        return twice


def _failures(task: Task, seen: _Seen, found: Changes) -> tuple[str, ...]:
    """Why a case does not pass whatever its oracle says."""
    failures = list(seen.owed.failures) if seen.owed is not None else []
    if seen.overlap is not None and seen.overlap.verdict is not OverlapVerdict.PROVEN:
        failures.append(f"overlap_{seen.overlap.verdict.value}")
    if task.strict and found.outside:
        failures.append("changed_outside")
    return tuple(failures)


def _why_not(ended: Ended) -> str:
    """One line on an end that is no pass."""
    if ended.timed_out:
        return "the agent took too long"
    return f"exit status {ended.status}" if ended.status else ""
