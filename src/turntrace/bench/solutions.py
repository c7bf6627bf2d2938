"""The solution of a task as files and words, from the patch that its folder holds."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from turntrace.bench.changes import changes
from turntrace.bench.reference_script import Solution
from turntrace.bench.tasks import Task
from turntrace.errors import TurntraceError

__all__ = ["SolutionError", "patch_and_answer", "solution_of"]


class SolutionError(TurntraceError):
    """A task has no solution that a bundled agent could play."""


def patch_and_answer(task: Task) -> dict[str, str]:
    """The text of solution.patch and of answer.txt, each empty where there is none.

    Raises:
        SolutionError: there is neither.
    """
    folder = task.folder
    found = {
        key: (folder / name).read_text() if folder is not None and (folder / name).is_file() else ""
        for key, name in (("patch", "solution.patch"), ("answer", "answer.txt"))
    }
    if not any(found.values()):
        raise SolutionError(
            f"task {task.id} has neither solution.patch nor answer.txt; the agents oracle and reference need one"
        )
    return found


def solution_of(task: Task) -> Solution:
    """What is changed by the solution, file by file, and what is said.

    Raises:
        SolutionError: there is none, or its patch does not apply.
    """
    found = patch_and_answer(task)
    files: dict[str, str | None] = {}
    if found["patch"]:
        with tempfile.TemporaryDirectory(prefix="turntrace-solution-") as parent:
            at = Path(parent) / "workspace"
            if task.fixture is None:
                at.mkdir()
            else:
                shutil.copytree(task.fixture, at, symlinks=True)
            _apply(task, at, found["patch"])
            changed = changes(task.fixture, at, ("*",))
            files |= {path: (at / path).read_text() for path in changed.written}
            files |= dict.fromkeys(changed.removed)
    return Solution(files=files, answer=found["answer"].rstrip("\n"))


def _apply(task: Task, at: Path, patch: str) -> None:
    argv = ["git", "apply", "--whitespace=nowarn", "-"]
    ran = subprocess.run(argv, input=patch.encode(), cwd=at, capture_output=True, check=False)  # noqa: S603 - fixed words
    if ran.returncode:
        raise SolutionError(
            f"the solution of task {task.id} does not apply: {ran.stderr.decode(errors='replace').strip()}"
        )
