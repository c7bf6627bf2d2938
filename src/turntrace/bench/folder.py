"""A suite as a folder: suite.toml and tasks/ID/{task.toml, prompt.md, fixture/, oracle.py or oracle/}."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turntrace.bench.manifest import Checked, checked_toml
from turntrace.bench.tasks import (
    CommandOracle,
    Expect,
    Fault,
    Oracle,
    Origin,
    ParallelProbe,
    ProgramOracle,
    Suite,
    Task,
    Tier,
)
from turntrace.bench.trees import CACHES, files_of, inside, tree_faults, tree_sha256

if TYPE_CHECKING:
    from turntrace.bench.schema import TaskTable

__all__ = ["read_folder"]

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_PARTS: Final = {
    "task.toml",
    "prompt.md",
    "fixture",
    "oracle.py",
    "oracle",
    "solution.patch",
    "answer.txt",
    "mutants",
    "README.md",
}


def read_folder(root: Path, origin: Callable[[str, str], Origin], faults: list[Fault]) -> Suite | None:
    """The suite in the folder ``root``; None, and ``faults`` filled, where it is none.

    ``origin`` says from the suite's id and hash where it comes from.
    """
    from turntrace.bench.schema import SuiteTable  # noqa: PLC0415 - the extra is loaded when asked for

    file = Checked(root / "suite.toml", faults)
    table = checked_toml(file, SuiteTable)
    folders = _task_folders(root, file)
    build_only = frozenset(table.build_only_classes) if table else frozenset[str]()
    tasks = [_task(root, folder, build_only, faults) for folder in folders]
    _twins([folder.name for folder in folders], file)
    if table is None or faults:
        return None
    sha256 = tree_sha256(root)
    return Suite(
        id=table.id,
        tasks=tuple(task for task in tasks if task is not None),
        sha256=sha256,
        origin=origin(table.id, sha256),
        path=root,
        name=table.name,
        description=table.description,
    )


def _task_folders(root: Path, file: Checked) -> list[Path]:
    holder = root / "tasks"
    folders = sorted(path for path in holder.iterdir() if path.is_dir()) if holder.is_dir() else []
    if not folders:
        file.broken(None, f"{holder} holds no task")
    for folder in folders:
        if not _ID.match(folder.name):
            file.broken(None, f"{folder}: letters, digits, dots, dashes and underscores only, 100 at most")
        if folder.is_symlink():
            file.broken(None, f"{folder} is a symbolic link")
    return [folder for folder in folders if not folder.is_symlink()]


def _twins(names: list[str], file: Checked) -> None:
    """Ids that differ by case only are one file on some machines."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.casefold(), name)) != name:
            file.broken(None, f"the ids {other} and {name} differ by case only")


def _task(root: Path, folder: Path, build_only: frozenset[str], faults: list[Fault]) -> Task | None:
    from turntrace.bench.schema import TaskTable  # noqa: PLC0415 - as above

    file = Checked(folder / "task.toml", faults)
    table = checked_toml(file, TaskTable)
    _strangers(folder, faults)
    prompt = _prompt(folder, faults)
    if table is None:
        return None
    oracle = _oracle(folder, table, file)
    fixture = _fixture(root, folder, table.fixture, file)
    return Task(
        id=folder.name,
        task_class=table.task_class,
        tier=_tier(oracle, is_build=table.task_class in build_only),
        prompt=prompt,
        fixture=fixture,
        allowed=tuple(table.allowed),
        strict=table.strict,
        timeout_s=table.timeout_s,
        parallel_probe=_probe(table),
        oracle=oracle,
        expect=Expect(table.expect) if table.expect else None,
        set_up=tuple(tuple(argv) for argv in table.set_up),
        folder=folder,
        equivalent=tuple(one.mutant for one in table.equivalent),
    )


def _tier(oracle: Oracle | None, *, is_build: bool) -> Tier:
    if oracle is None:
        return Tier.LATENCY
    return Tier.BUILD if is_build else Tier.CORRECTNESS


def _probe(table: "TaskTable") -> ParallelProbe | None:
    probe = table.parallel_probe
    return ParallelProbe(handlers=probe.handlers, timeout_s=probe.timeout_s) if probe else None


def _strangers(folder: Path, faults: list[Fault]) -> None:
    """A file that nothing reads is a misspelt one; a link that leads out would be read from elsewhere."""
    faults.extend(
        Fault(file=str(path), line=None, field="", message="is no part of a task")
        for path in sorted(folder.iterdir())
        if path.name not in _PARTS | CACHES  # installers compile every program, oracles too
    )
    faults.extend(
        Fault(file=str(path), line=None, field="", message=message) for path, message in tree_faults(folder)
    )


def _prompt(folder: Path, faults: list[Fault]) -> str:
    file = Checked(folder / "prompt.md", faults)
    text = file.text()
    if text is not None and not text.strip():
        file.broken(1, "is blank")
    return (text or "").strip()


def _fixture(root: Path, folder: Path, relative: str, file: Checked) -> Path | None:
    """The fixture, which lies in the task's folder or, written as ../../fixtures/NAME, in the suite's."""
    within = folder if not relative.startswith("..") else root
    below = relative.removeprefix("../../") if within is root else relative
    found = inside(within, below)
    if isinstance(found, str):
        file.fault(("fixture",), found)
        return None
    if within is root:  # what lies in the task's folder has been looked at
        for path, message in tree_faults(found):
            file.fault(("fixture",), f"{path.relative_to(found)} {message}")
    return found.resolve()


def _oracle(folder: Path, table: "TaskTable", file: Checked) -> Oracle | None:
    program = folder / "oracle.py"
    if table.oracle is not None and program.exists():
        file.fault(("oracle",), "a command and oracle.py exclude each other")
    if table.oracle is not None:
        return CommandOracle(
            argv=tuple(table.oracle.command),
            files=_stamped(folder),
            output_has=tuple(table.oracle.output_has),
            timeout_s=table.oracle.timeout_s,
        )
    if program.exists():
        return _program(program, file)
    if not table.latency_only:
        file.fault((), "there is neither oracle.py nor [oracle]; write latency_only = true if that is meant")
    return None


def _program(path: Path, file: Checked) -> ProgramOracle | None:
    own = Checked(path, [])
    text = own.text()
    if text is None:
        file.fault(("oracle",), "oracle.py cannot be read")
        return None
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        file.fault((), f"oracle.py is no Python: {error}" + (f" (line {line})" if line else ""))
    return ProgramOracle(source=text)


def _stamped(folder: Path) -> tuple[tuple[str, bytes], ...]:
    holder = folder / "oracle"
    if not holder.is_dir():
        return ()
    found = [path for path in files_of(holder) if path.is_file() and not path.is_symlink()]
    return tuple((path.relative_to(holder).as_posix(), path.read_bytes()) for path in found)
