"""What the rows of a file say together: by task, by class and by tier, which are never averaged. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from turntrace.bench.rows import Results, Row
from turntrace.core.contract import PHASES
from turntrace.core.samples import Interval, median, median_interval, nearest_rank, wilson

__all__ = [
    "Latency", "Phase", "Summary", "TaskSummary", "TierSummary", "disturbed", "latency", "summary", "unmet",
]  # fmt: skip

_TIERS: Final = ("correctness", "build", "latency")
_P95_FROM: Final = 20
_DISTURBED: Final = 0.2
_MIN_LOAD: Final = 0.5
"""Load below this differs by large factors and disturbs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Samples of one kind in ns. ``p95_ns`` is None below 20 samples, where it would be the maximum."""

    count: int
    median_ns: float | None
    interval_ns: Interval | None
    p95_ns: float | None
    max_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSummary:
    """One task. ``passed_at`` is the number of iterations if all of them passed, else None."""

    task: str
    task_class: str
    tier: str
    expect: str | None
    attempted: int
    errored: int
    passes: int
    share: Interval | None
    passed_at: int | None
    expected: bool | None
    failures: Mapping[str, int]
    verdicts: Mapping[str, int]
    reasons: Mapping[str, int]
    wall: Latency
    tokens: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSummary:
    """Counts of one tier. A latency tier has no passes."""

    tier: str
    tasks: int
    attempted: int
    passes: int | None
    share: Interval | None
    tasks_passed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A phase over all runs whose trace is in order, by the agent's word."""

    name: str
    controllable: str | None
    count: int
    total_ns: int
    exclusive_share: float | None
    wall_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Everything of a file. ``usable_traces`` counts rows whose trace is in order."""

    attempted: int
    planned: int
    errored: int
    tiers: tuple[TierSummary, ...]
    tasks: tuple[TaskSummary, ...]
    classes: Mapping[str, Latency]
    wall: Latency
    phases: tuple[Phase, ...]
    overlaps: Mapping[str, int]
    input_tokens: int | None
    output_tokens: int | None
    usage_incomplete: int
    usage_unknown: int
    attempts_refused: int | None
    throttled: int
    cached_twice: int
    disturbed: tuple[tuple[str, int], ...]
    usable_traces: int
    trace_issues: Mapping[str, int]


def latency(values: Sequence[float]) -> Latency:
    """The figures that so many samples carry."""
    return Latency(
        count=len(values),
        median_ns=median(values),
        interval_ns=median_interval(values),
        p95_ns=nearest_rank(values, 95) if len(values) >= _P95_FROM else None,
        max_ns=max(values, default=None),
    )


def summary(results: Results, *, drop_disturbed: bool = False) -> Summary:
    """Count and measure the rows of ``results``."""
    rows = results.rows
    odd = disturbed(rows)
    timed = [row for row in rows if row.samples and not (drop_disturbed and row.key in odd)]
    by_class: dict[str, list[float]] = defaultdict(list)
    for row in timed:
        by_class[row.task_class].append(row.wall_ns)
    by_task: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_task[row.task].append(row)
    keys = {row.key for row in timed}
    return Summary(
        attempted=len(rows),
        planned=len(results.header.tasks) * results.header.iterations,
        errored=sum(_is_error(row) for row in rows),
        tiers=tuple(_tier(tier, rows) for tier in _TIERS if any(row.tier == tier for row in rows)),
        tasks=tuple(_task(by_task[task], keys) for task in results.header.tasks if task in by_task),
        classes={name: latency(found) for name, found in sorted(by_class.items())},
        wall=latency([row.wall_ns for row in timed]),
        phases=_phases(timed),
        overlaps=_counts(row.overlap["verdict"] for row in rows if row.overlap is not None),
        input_tokens=_tokens(rows, "input_tokens"),
        output_tokens=_tokens(rows, "output_tokens"),
        usage_incomplete=sum("usage_incomplete" in row.failures for row in rows),
        usage_unknown=sum(row.usage is None for row in rows),
        attempts_refused=_sum([row.attempts_refused for row in rows]),
        throttled=sum(row.throttled for row in rows),
        cached_twice=sum(row.cached_twice for row in rows),
        disturbed=tuple(sorted(odd)),
        usable_traces=sum(row.trace == "ok" for row in rows),
        trace_issues=_counts(issue for row in rows for issue in row.trace_issues),
    )


def disturbed(rows: Sequence[Row]) -> set[tuple[str, int]]:
    """Runs made while load, steal or frequency differed by more than a fifth from the median of all runs."""
    odd: set[tuple[str, int]] = set()
    measures: tuple[tuple[Callable[[Row], float | None], float], ...] = (
        (lambda row: row.load_before.get("load_1"), _MIN_LOAD),
        (_steal_share, 0.02),
        (lambda row: row.load_before.get("frequency_mhz"), 0.0),
    )
    for measure, least in measures:
        values = {row.key: measure(row) for row in rows}
        middle = median([value for value in values.values() if value is not None])
        if middle is None:
            continue
        bound = max(_DISTURBED * middle, least)
        odd |= {key for key, value in values.items() if value is not None and abs(value - middle) > bound}
    return odd


def _steal_share(row: Row) -> float | None:
    """Ticks that the host took away while the run went on, of all ticks."""
    before, after = row.load_before, row.load_after
    parts = [found.get(name) for found in (before, after) for name in ("steal_ticks", "ticks")]
    if None in parts or parts[3] == parts[1]:
        return None
    steal: float = (parts[2] - parts[0]) / (parts[3] - parts[1])  # type: ignore[operator]  # None is ruled out above
    return steal


def unmet(found: Summary) -> tuple[str, ...]:
    """What a suite that tests agents of its own expected and did not see, one line a task."""
    return tuple(_unmet(task) for task in found.tasks if task.expected is False)


def _unmet(task: TaskSummary) -> str:
    seen = ", ".join(f"{name} in {count}" for name, count in task.failures.items()) or ", ".join(task.reasons)
    return (
        f"{task.task} ({task.task_class}): expected to {task.expect}, "
        f"passed {task.passes} of {task.attempted}{f'; {seen}' if seen else ''}"
    )


def _is_error(row: Row) -> bool:
    """A run that says nothing of the agent's work."""
    return bool(row.error) or row.exit is None or row.verdict == "error"


def _tier(tier: str, rows: Sequence[Row]) -> TierSummary:
    found = [row for row in rows if row.tier == tier]
    by_task: dict[str, list[bool]] = defaultdict(list)
    for row in found:
        by_task[row.task].append(row.passed)
    judged = tier != "latency"
    passes = sum(row.passed for row in found)
    return TierSummary(
        tier=tier,
        tasks=len(by_task),
        attempted=len(found),
        passes=passes if judged else None,
        share=wilson(passes, len(found)) if judged else None,
        tasks_passed=sum(all(passed) for passed in by_task.values()) if judged else None,
    )


def _task(rows: Sequence[Row], timed: set[tuple[str, int]]) -> TaskSummary:
    first = rows[0]
    passes = sum(row.passed for row in rows)
    judged = first.tier != "latency"
    return TaskSummary(
        task=first.task,
        task_class=first.task_class,
        tier=first.tier,
        expect=first.expect,
        attempted=len(rows),
        errored=sum(_is_error(row) for row in rows),
        passes=passes,
        share=wilson(passes, len(rows)) if judged else None,
        passed_at=len(rows) if judged and passes == len(rows) else None,
        expected=None
        if first.expect is None
        else all(row.passed is (first.expect == "pass") for row in rows),
        failures=_counts(failure for row in rows for failure in row.failures),
        verdicts=_counts(row.verdict for row in rows),
        reasons=_counts(row.reason for row in rows if row.reason and not row.passed),
        wall=latency([row.wall_ns for row in rows if row.key in timed]),
        tokens=(_tokens(rows, "input_tokens"), _tokens(rows, "output_tokens")),
    )


def _tokens(rows: Sequence[Row], name: str) -> int | None:
    """The sum, None if a single run's is not known."""
    return _sum([None if row.usage is None else row.usage[name] for row in rows])


def _sum(values: Sequence[Any]) -> int | None:
    return None if None in values else sum(values)


def _counts(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _phases(rows: Sequence[Row]) -> tuple[Phase, ...]:
    """Sums over the runs that have phases; shares are of those runs alone."""
    told = [
        row.self_reported for row in rows if row.self_reported and row.self_reported["phases"] is not None
    ]
    exclusive: dict[str, list[int]] = defaultdict(list)
    shared: dict[str, int] = defaultdict(int)
    for found in told:
        for name, phase in found["phases"].items():
            exclusive[name] += phase["exclusive_us"]
            shared[name] += phase["wall_share_ns"]
    whole = 1000 * sum(map(sum, exclusive.values()))
    wall_ns = sum(found["wall_ns"] or 0 for found in told)
    phases = [
        Phase(
            name=name,
            controllable=PHASES[name].controllable if name in PHASES else None,
            count=len(found),
            total_ns=1000 * sum(found),
            exclusive_share=1000 * sum(found) / whole if whole else None,
            wall_share=shared[name] / wall_ns if wall_ns else None,
        )
        for name, found in exclusive.items()
    ]
    return tuple(sorted(phases, key=lambda phase: (-phase.total_ns, phase.name)))
