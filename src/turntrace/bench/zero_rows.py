"""Our rows as zero's outcomes, for ``--export-zero``."""

from collections import defaultdict
from typing import Any

from turntrace.bench.rows import Results, Row
from turntrace.bench.tasks import Tier
from turntrace.bench.zero_export import ZeroCase, ZeroHead, ZeroOutcome, ZeroTask, zero_document

__all__ = ["zero_result"]


def zero_result(results: Results) -> dict[str, Any]:
    """Zero's document over the rows of a file; what zero cannot say (an unknown count) becomes its 0."""
    header = results.header
    by_task: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(results.rows, key=lambda row: row.iteration):
        by_task[row.task].append(row)
    head = ZeroHead(
        suite=header.suite,
        model=header.model or header.agent,
        date=header.created_at,
        iterations=header.iterations,
        version=header.agent_version or "",
    )
    cases = [_case(by_task[task]) for task in header.tasks if task in by_task]
    return zero_document(head, cases)


def _case(rows: list[Row]) -> ZeroCase:
    first = rows[0]
    task = ZeroTask(id=first.task, task_class=first.task_class, tier=Tier(first.tier))
    return ZeroCase(task=task, outcomes=tuple(map(_outcome, rows)))


def _outcome(row: Row) -> ZeroOutcome:
    told = row.self_reported or {}
    phases = told.get("phases") or {}
    spans = [
        (name, us / 1000)
        for name, phase in phases.items()
        if name != "structure"
        for us in phase["exclusive_us"]
    ]
    lost = row.exit is None or row.timed_out or row.interrupted
    return ZeroOutcome(
        passed=row.passed,
        wall_ms=row.wall_ns // 1000 / 1000,
        trace_wall_ms=(told.get("wall_ns") or 0) / 1e6,
        spans=tuple(spans),
        counters=told.get("counters") or {},
        error=(row.error or row.reason or "the agent did not come to an end") if lost else "",
        trace_issue="; ".join(row.trace_issues),
    )
