"""What a suite holds, as rows: the text and the JSON of ``bench list`` and ``bench validate``."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from turntrace.bench.tasks import CommandOracle, Fault, Oracle, ProgramOracle, Suite, Task
from turntrace.bench.trust import commands_of

__all__ = ["as_text", "fault_json", "suite_json"]


def suite_json(suite: Suite) -> dict[str, Any]:
    """The suite without prompts and sources: ids, classes, tiers, limits, hash."""
    return {
        "id": suite.id,
        "name": suite.name,
        "origin": suite.origin.value,
        "sha256": suite.sha256,
        "executes": list(commands_of(suite)),
        "tasks": [_task_json(task) for task in suite.tasks],
    }


def fault_json(fault: Fault) -> dict[str, Any]:
    """A fault; ``line`` is null where no line is at fault."""
    return {"file": fault.file, "line": fault.line, "field": fault.field, "message": fault.message}


def as_text(suite: Suite) -> Iterator[str]:
    """One line for the suite, one for each task in columns."""
    tiers = Counter(task.tier.value for task in suite.tasks)
    counted = ", ".join(f"{count} {tier}" for tier, count in sorted(tiers.items()))
    yield f"{suite.id}: {len(suite.tasks)} tasks ({counted}), {suite.origin}, sha256 {suite.sha256[:12]}"
    rows = [(task.id, task.task_class, task.tier.value, _oracle(task.oracle)) for task in suite.tasks]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield "  " + "  ".join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]
        )


def _task_json(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "class": task.task_class,
        "tier": task.tier.value,
        "oracle": _oracle(task.oracle),
        "timeout_s": task.timeout_s,
        "strict": task.strict,
        "allowed": list(task.allowed),
        "parallel_handlers": task.parallel_probe.handlers if task.parallel_probe else None,
        "expect": task.expect.value if task.expect else None,
    }


def _oracle(oracle: Oracle | None) -> str:
    match oracle:
        case ProgramOracle():
            return "oracle.py"
        case CommandOracle():
            return "command"
        case None:
            return "none"
