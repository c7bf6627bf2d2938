"""Workspaces for proofs: a copy of a fixture with a patch on it, or with nothing in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from turntrace.bench.tasks import RunChild, Task
from turntrace.errors import TurntraceError

__all__ = ["PatchError", "apply_patch", "changed_modules", "workspace_of"]

_PATCH_TIMEOUT_S = 20.0


class PatchError(TurntraceError):
    """A patch does not apply to its fixture; the message is git's."""


@contextmanager
def workspace_of(task: Task, *, empty: bool = False) -> Iterator[Path]:
    """A copy of the task's fixture in a private folder, removed afterwards; mode bits are kept."""
    with TemporaryDirectory(prefix="turntrace-proof-") as parent:
        at = Path(parent) / "workspace"
        if empty or task.fixture is None:
            at.mkdir()
        else:
            shutil.copytree(task.fixture, at, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        yield at


def apply_patch(workspace: Path, patch: bytes, run_child: RunChild) -> None:
    """Apply ``patch`` with git, which refuses paths outside and beyond links.

    Raises:
        PatchError: when it does not apply, or there is no git.
    """
    argv = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    done = run_child(argv, cwd=workspace, stdin=patch, timeout_s=_PATCH_TIMEOUT_S)
    if done.status != 0 or done.timed_out:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise PatchError(f"the patch does not apply: {why[0] if why else f'status {done.status}'}")


def changed_modules(task: Task, workspace: Path) -> list[str]:
    """Python files of ``workspace`` that the fixture has not or has otherwise, by relative path."""
    found = []
    for path in sorted(workspace.rglob("*.py")):
        relative = path.relative_to(workspace)
        before = None if task.fixture is None else task.fixture / relative
        if before is None or not before.is_file() or before.read_bytes() != path.read_bytes():
            found.append(relative.as_posix())
    return found
