"""zero's manifest: one JSON file, read as it is. Its tests are stamped into the workspace, as zero does."""

import hashlib
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turntrace.bench.manifest import Checked, checked_json
from turntrace.bench.tasks import CommandOracle, Fault, Origin, Suite, Task, Tier
from turntrace.bench.trees import inside, tree_faults, tree_sha256

if TYPE_CHECKING:
    from turntrace.bench.schema import ZeroSuite, ZeroTask

__all__ = ["ANSWER_FILE", "ORACLE_FILE", "read_zero"]

ORACLE_FILE: Final = "oracle_test.go"
ANSWER_FILE: Final = ".zero-answer.txt"


def read_zero(path: Path, faults: list[Fault]) -> Suite | None:
    """The suite of the manifest ``path``; None, and ``faults`` filled, where it is none."""
    from turntrace.bench.schema import ZeroSuite  # noqa: PLC0415 - the extra is loaded when asked for

    file = Checked(path, faults)
    table = checked_json(file, ZeroSuite)
    if table is None:
        return None
    _twins(table, file)
    tasks = tuple(_task(path.parent, number, table, file) for number in range(len(table.tasks)))
    return (
        None
        if faults
        else Suite(
            id=table.id.strip(),
            tasks=tasks,
            sha256=_sha256(path, tasks),
            origin=Origin.ZERO,
            path=path,
            name=table.name,
            description=table.description,
        )
    )


def _twins(table: "ZeroSuite", file: Checked) -> None:
    first: dict[str, int] = {}
    for number, task in enumerate(table.tasks):
        at = ("tasks", number, "id")
        other = first.setdefault(task.id.strip(), number)
        if other != number:
            file.fault(at, f"is the id of tasks[{other}] too")
        if any(char in "/\\" or unicodedata.category(char).startswith("C") for char in task.id):
            file.fault(at, "holds a slash or a control character")


def _task(root: Path, number: int, table: "ZeroSuite", file: Checked) -> Task:
    task = table.tasks[number]
    name = task.task_class.strip() or "default"
    oracle = _oracle(task)
    tier = Tier.LATENCY
    if oracle is not None:
        tier = Tier.BUILD if name in table.build_only else Tier.CORRECTNESS
    return Task(
        id=task.id.strip(),
        task_class=name,
        tier=tier,
        prompt=task.prompt,
        fixture=_fixture(root, task.fixture, ("tasks", number, "workspaceFixture"), file),
        oracle=oracle,
    )


def _oracle(task: "ZeroTask") -> CommandOracle | None:
    if task.command is None:
        return None
    stamped = ((ORACLE_FILE, task.oracle_test.encode()),) if task.oracle_test else ()
    return CommandOracle(argv=tuple(task.command), files=stamped, answer_file=ANSWER_FILE)


def _fixture(root: Path, relative: str, at: tuple[str | int, ...], file: Checked) -> Path | None:
    """A task without one is read; it is an error of its run, as in zero."""
    if not relative.strip():
        return None
    found = inside(root, relative)
    if isinstance(found, str):
        file.fault(at, found)
        return None
    for path, message in tree_faults(found):
        file.fault(at, f"{path.relative_to(found)} {message}")
    return found.resolve()


def _sha256(path: Path, tasks: tuple[Task, ...]) -> str:
    total = hashlib.sha256(path.read_bytes())
    for fixture in sorted({task.fixture for task in tasks if task.fixture is not None}):
        total.update(f"\0{fixture.relative_to(path.parent.resolve()).as_posix()}\0".encode())
        total.update(tree_sha256(fixture).encode())
    return total.hexdigest()
