"""Proving an oracle: what must fail fails, the solution always passes, mutants of it are told apart."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from turntrace.bench.attempts import PatchError, apply_patch, changed_modules, workspace_of
from turntrace.bench.cheats import CHEATS, Cheat
from turntrace.bench.judging import judge
from turntrace.bench.mutants import answer_mutants, program_mutants
from turntrace.bench.tasks import ProgramOracle, RunChild, Suite, Task, Verdict, VerdictStatus

__all__ = ["MAX_EQUIVALENT_SHARE", "SOLUTION_RUNS", "Proof", "Trial", "prove", "prove_task"]

SOLUTION_RUNS: Final = 20
MAX_EQUIVALENT_SHARE: Final = 0.05

Attempted = Callable[[Path], str]
"""Changes a workspace and returns the agent's last words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt and what the oracle said of it. ``kind`` is untouched, empty, cheat, wrong, mutant, solution."""

    kind: str
    name: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """All trials of a task. ``faults`` are why the oracle is not proven, empty where it is.

    ``equivalent`` counts mutants that passed and are listed with a reason.
    """

    task: str
    task_class: str
    trials: tuple[Trial, ...]
    equivalent: int
    faults: tuple[str, ...]

    @property
    def is_proven(self) -> bool:
        """Whether every trial ended as it has to."""
        return not self.faults

    def count(self, kind: str, status: VerdictStatus) -> tuple[int, int]:
        """How many trials of ``kind`` ended with ``status``, and how many there are."""
        of_kind = [trial for trial in self.trials if trial.kind == kind]
        return sum(trial.verdict.status == status for trial in of_kind), len(of_kind)


def prove(
    suite: Suite, run_child: RunChild, done: Callable[[Proof], None] | None = None
) -> tuple[Proof, ...]:
    """The proofs of all tasks with an oracle; ``done`` is told each as it ends."""
    found = []
    for task in suite.tasks:
        if task.oracle is not None:
            found.append(prove_task(task, run_child))
            (done or _nobody)(found[-1])
    return tuple(found)


def prove_task(task: Task, run_child: RunChild) -> Proof:
    """Try everything on one task."""
    prover = _Prover(task, run_child)
    try:
        trials = tuple(prover.trials())
    except (PatchError, SyntaxError, OSError) as error:
        return Proof(
            task=task.id,
            task_class=task.task_class,
            trials=(),
            equivalent=0,
            faults=(f"cannot be tried: {error}",),
        )
    survivors = {t.name for t in trials if t.kind == "mutant" and t.verdict.status is not VerdictStatus.FAIL}
    equivalent = survivors & set(task.equivalent)
    return Proof(
        task=task.id,
        task_class=task.task_class,
        trials=trials,
        equivalent=len(equivalent),
        faults=tuple(_faults(task, trials, survivors)),
    )


def _faults(task: Task, trials: Sequence[Trial], survivors: set[str]) -> Iterator[str]:
    yield from _solution_faults([trial.verdict for trial in trials if trial.kind == "solution"])
    for trial in trials:
        if trial.kind not in {"solution", "mutant"} and trial.verdict.status is not VerdictStatus.FAIL:
            yield f"does not reject {trial.kind} {trial.name}: {trial.verdict.status} {trial.verdict.reason}".rstrip()
    mutants = [trial.name for trial in trials if trial.kind == "mutant"]
    listed = set(task.equivalent)
    yield from (f"does not tell the mutant {name} from the solution" for name in sorted(survivors - listed))
    for name in sorted(listed - survivors):
        yield f"lists the mutant {name} as equivalent, which " + (
            "is told apart" if name in mutants else "is none"
        )
    if len(survivors & listed) > MAX_EQUIVALENT_SHARE * len(mutants):
        yield f"lists more than {MAX_EQUIVALENT_SHARE:.0%} of its {len(mutants)} mutants as equivalent"


def _solution_faults(runs: Sequence[Verdict]) -> Iterator[str]:
    if not runs:
        yield "has no solution: neither solution.patch nor answer.txt"
    elif len({verdict.status for verdict in runs}) > 1:
        yield "is flaky: the solution's verdict differs from run to run"
    elif runs[0].status is not VerdictStatus.PASS:
        yield f"rejects the solution: {runs[0].reason}"


class _Prover:
    """Makes the workspaces of one task and asks the judge."""

    def __init__(self, task: Task, run_child: RunChild) -> None:
        self._task = task
        self._run = run_child
        folder = task.folder
        self._patch = _content(folder, "solution.patch")
        answer = _content(folder, "answer.txt")
        self._answer = None if answer is None else answer.decode()

    def trials(self) -> Iterator[Trial]:
        """Every attempt, the cheap ones first."""
        yield self._try("untouched", "fixture", partial(_say, ""))
        yield self._try("empty", "folder", partial(_say, ""), empty=True)
        for name, cheat in CHEATS.items():
            yield self._try("cheat", name, partial(_cheat, cheat, self._task))
        yield from self._wrong()
        if self._patch is None and self._answer is None:
            return
        for seed in range(SOLUTION_RUNS):
            yield self._try("solution", f"run {seed + 1}", self._solve, seed=seed)
        yield from self._mutants()

    def _try(self, kind: str, name: str, attempt: Attempted, *, seed: int = 0, empty: bool = False) -> Trial:
        with workspace_of(self._task, empty=empty) as at:
            answer = attempt(at)
            return Trial(kind=kind, name=name, verdict=judge(self._task, at, answer, seed, self._run))

    def _solve(self, at: Path) -> str:
        if self._patch is not None:
            apply_patch(at, self._patch, self._run)
        return self._answer or ""

    def _wrong(self) -> Iterator[Trial]:
        folder = None if self._task.folder is None else self._task.folder / "mutants"
        for path in sorted(folder.iterdir()) if folder is not None and folder.is_dir() else ():
            content = path.read_bytes()
            is_patch = path.suffix == ".patch"
            attempt = partial(self._patched, content) if is_patch else partial(_say, content.decode())
            yield self._try("wrong", path.stem, attempt)

    def _patched(self, patch: bytes, at: Path) -> str:
        apply_patch(at, patch, self._run)
        return self._answer or ""

    def _mutants(self) -> Iterator[Trial]:
        if self._answer is not None and isinstance(self._task.oracle, ProgramOracle):
            for name, text in answer_mutants(self._answer):
                yield self._try("mutant", name, partial(self._solve_saying, text))
        with workspace_of(self._task) as solved:
            self._solve(solved)
            for relative in changed_modules(self._task, solved):
                for name, text in program_mutants((solved / relative).read_text()):
                    yield self._try("mutant", f"{relative}:{name}", partial(self._plant, relative, text))

    def _solve_saying(self, answer: str, at: Path) -> str:
        self._solve(at)
        return answer

    def _plant(self, relative: str, text: str, at: Path) -> str:
        answer = self._solve(at)
        (at / relative).write_text(text)
        return answer


def _say(answer: str, _: Path) -> str:
    return answer


def _cheat(cheat: Cheat, task: Task, at: Path) -> str:
    return cheat(at, task)


def _nobody(_: Proof) -> None:
    """Tell nobody."""


def _content(folder: Path | None, name: str) -> bytes | None:
    path = None if folder is None else folder / name
    return path.read_bytes() if path is not None and path.is_file() else None
