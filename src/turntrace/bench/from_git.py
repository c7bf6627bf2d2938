"""Tasks out of a repository's own commits: the parent is the fixture, the tests are the oracle, the rest solves."""

import json
import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from turntrace.bench.attempts import PatchError, apply_patch
from turntrace.bench.history import Change, History
from turntrace.bench.tasks import CompletedChild, RunChild
from turntrace.bench.trees import tree_faults
from turntrace.bench.workspace import put
from turntrace.errors import ConfigurationError

__all__ = ["DEFAULT_COMMAND", "Added", "Adder", "Recipe"]

DEFAULT_COMMAND: Final = "python3 -m pytest -q -rA -p no:cacheprovider {tests}"
_TIMEOUT_S: Final = 300.0
_PASSED: Final = re.compile(r"^PASSED \S+$|^ok \S+$|^--- PASS: \S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How tasks are made: the tests' command, in which {tests} are the test files; what sets a fixture up."""

    command: str = DEFAULT_COMMAND
    set_up: tuple[str, ...] = ()
    task_class: str = "fix"
    timeout_s: float = _TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What became of a commit: the id of its task, or why there is none."""

    revision: str
    subject: str
    task: str | None
    reason: str = ""


class _LeftOut(Exception):  # noqa: N818 - a reason rather than a fault
    """This commit makes no task; the message says why."""


class Adder:
    """Makes tasks of commits in a suite's folder. The repository's tests are run by ``run_child``."""

    def __init__(self, suite: Path, recipe: Recipe, run_child: RunChild) -> None:
        if not (suite / "suite.toml").is_file():
            raise ConfigurationError(f"{suite} is no suite; turntrace bench init {suite} makes one")
        self._suite = suite
        self._recipe = recipe
        self._run = run_child

    def add(self, history: History, revision: str, *, dry_run: bool = False) -> Added:
        """Make a task of the commit, kept only if its tests fail before it and pass after it."""
        change = history.change(revision)
        subject = change.message.partition("\n")[0]
        name = f"git-{change.revision[:10]}"
        try:
            with TemporaryDirectory(prefix="turntrace-add-") as parent:
                made = Path(parent) / name
                self._make(history, change, made)
                self._keep(made, name, dry_run=dry_run)
        except (_LeftOut, PatchError) as error:
            return Added(revision=change.revision, subject=subject, task=None, reason=str(error))
        return Added(revision=change.revision, subject=subject, task=name)

    def _make(self, history: History, change: Change, made: Path) -> None:
        self._usable(change)
        history.extract(change.parent, made / "fixture")
        for fault, message in tree_faults(made / "fixture"):
            raise _LeftOut(f"holds {fault.relative_to(made / 'fixture')}, which {message}")
        for path in change.tests:
            (made / "oracle").mkdir(exist_ok=True)
            put(made / "oracle", path, history.content(change.revision, path))
        (made / "solution.patch").write_bytes(history.patch(change))
        (made / "prompt.md").write_text(_prompt(change.message))
        argv = self._argv(change.tests)
        before = self._tried(made, argv, solved=False)
        after = self._tried(made, argv, solved=True)
        self._told_apart(before, after)
        (made / "task.toml").write_text(self._task_toml(argv, _newly_passed(before, after)))

    @staticmethod
    def _usable(change: Change) -> None:
        if not change.parent:
            raise _LeftOut("has no parent, or several")
        if not change.tests:
            raise _LeftOut("changes no test")
        if not change.others:
            raise _LeftOut("changes tests only")

    def _argv(self, tests: Sequence[str]) -> list[str]:
        """The command's words. Data beside the tests is stamped too, but only programs are named."""
        programs = [path for path in tests if re.search(r"(^|/)test_[^/]*$|_test\.|\.(test|spec)\.", path)]
        words = shlex.split(self._recipe.command)
        if not programs and "{tests}" in words:
            raise _LeftOut("changes data of tests only")
        return [part for word in words for part in (programs if word == "{tests}" else [word])]

    def _tried(self, made: Path, argv: Sequence[str], *, solved: bool) -> CompletedChild:
        with TemporaryDirectory(prefix="turntrace-try-") as parent:
            at = Path(parent) / "workspace"
            shutil.copytree(made / "fixture", at, symlinks=True)
            for command in self._recipe.set_up:
                if self._run(
                    shlex.split(command), cwd=at, stdin=b"", timeout_s=self._recipe.timeout_s
                ).status:
                    raise _LeftOut(f"cannot be set up: {command}")
            if solved:
                apply_patch(at, (made / "solution.patch").read_bytes(), self._run)
            for path in sorted((made / "oracle").rglob("*")):
                if path.is_file():
                    put(at, path.relative_to(made / "oracle").as_posix(), path.read_bytes())
            return self._run(argv, cwd=at, stdin=b"", timeout_s=self._recipe.timeout_s)

    @staticmethod
    def _told_apart(before: CompletedChild, after: CompletedChild) -> None:
        if before.timed_out or after.timed_out:
            raise _LeftOut("has tests that take too long")
        if after.status != 0:
            said = (after.stdout + after.stderr).decode("utf-8", "replace").strip().splitlines()
            raise _LeftOut(f"has tests that fail after it: {said[-1][:120] if said else after.status}")
        if before.status == 0:
            raise _LeftOut("has tests that pass before it")

    def _task_toml(self, argv: Sequence[str], passed: Sequence[str]) -> str:
        set_up = [shlex.split(command) for command in self._recipe.set_up]
        return (
            f"class = {_toml(self._recipe.task_class)}\n"
            + (f"set_up = {_toml(set_up)}\n" if set_up else "")
            + f"\n[oracle]\ncommand = {_toml(argv)}\noutput_has = {_toml(passed)}\n"
        )

    def _keep(self, made: Path, name: str, *, dry_run: bool) -> None:
        goal = self._suite / "tasks" / name
        if goal.exists():
            raise _LeftOut(f"is a task already: {goal}")
        if not dry_run:
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(made, goal, symlinks=True)


def _newly_passed(before: CompletedChild, after: CompletedChild) -> list[str]:
    """Lines that name a passed test after the commit and not before: a run that leaves early prints none."""
    old = set(before.stdout.decode("utf-8", "replace").splitlines())
    new = after.stdout.decode("utf-8", "replace").splitlines()
    return sorted({line for line in new if _PASSED.match(line) and line not in old})


def _prompt(message: str) -> str:
    """The commit's message without its trailers."""
    lines = [line for line in message.splitlines() if not re.match(r"[A-Z][A-Za-z-]+-(by|on|to): ", line)]
    return "Make this change to the program in this folder:\n\n" + "\n".join(lines).strip() + "\n"


def _toml(value: object) -> str:
    """Strings and lists of them, which TOML writes as JSON does."""
    return json.dumps(value, ensure_ascii=False)
