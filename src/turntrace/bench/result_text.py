"""A summary for people, as text or Markdown. It rounds and picks units; it computes nothing.

Whoever prints the lines makes control characters harmless.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from turntrace.bench.results import Latency, Phase, Summary, TaskSummary, TierSummary
from turntrace.bench.rows import Header
from turntrace.core.samples import Interval

__all__ = ["result_lines"]

Style = Literal["text", "markdown"]
_MANY = 12


def result_lines(header: Header, found: Summary, style: Style = "text") -> Iterable[str]:
    """The lines of a report."""
    title = f"{header.suite} · {header.agent}{f' · {header.model}' if header.model else ''}"
    yield from _heading(title, style)
    yield _attempts(header, found)
    yield f"isolation {header.isolation}{f' ({header.isolation_reason})' if header.isolation_reason else ''}"
    for tier in found.tiers:
        yield _tier(tier, header.iterations)
    yield from _overlaps(found)
    yield _tokens(found)
    yield ""
    yield from _table(
        "Tasks",
        ("task", "class", "tier", "passed", "95 %", "wall p50", "max", "remarks"),
        map(_task, found.tasks),
        style,
    )
    classes = [(name, str(one.count), *_walls(one)) for name, one in found.classes.items()]
    yield from _table("Wall by class", ("class", "runs", "p50", "95 % of p50", "p95", "max"), classes, style)
    ours = [_phase(phase) for phase in found.phases if phase.controllable == "yes"]
    yield from _table(
        "Phases, by the agent's own telemetry", _PHASE, map(_phase, found.phases[:_MANY]), style
    )
    yield from _table("Of those the agent's author can change", _PHASE, ours[:_MANY], style)
    yield from _remarks(found)


_PHASE = ("phase", "spans", "exclusive", "of exclusive", "of wall")


def _attempts(header: Header, found: Summary) -> str:
    missing = found.planned - found.attempted
    left = f", {missing} not run" if missing > 0 else ""
    return (
        f"{found.attempted} attempted runs ({len(found.tasks)} tasks x r={header.iterations}), "
        f"{found.errored} errored{left} · {header.start} start · seed {header.seed}"
    )


def _tier(tier: TierSummary, iterations: int) -> str:
    if tier.passes is None:
        return f"{tier.tier}: {tier.tasks} tasks without an oracle, {tier.attempted} runs"
    return (
        f"{tier.tier}: {tier.passes}/{tier.attempted} runs passed {_share(tier.share)}, "
        f"{tier.tasks_passed}/{tier.tasks} tasks passed at r={iterations}"
    )


def _overlaps(found: Summary) -> Iterable[str]:
    if found.overlaps:
        yield "overlap: " + ", ".join(f"{name} in {count}" for name, count in found.overlaps.items())


def _tokens(found: Summary) -> str:
    tokens_in, tokens_out = _count(found.input_tokens), _count(found.output_tokens)
    incomplete = f", usage_incomplete in {found.usage_incomplete}" if found.usage_incomplete else ""
    unknown = f", no usage told in {found.usage_unknown}" if found.usage_unknown else ""
    return f"tokens: {tokens_in} in, {tokens_out} out{incomplete}{unknown}"


def _task(task: TaskSummary) -> tuple[str, ...]:
    passed = "n/a" if task.share is None else f"{task.passes}/{task.attempted}"
    if task.passed_at is not None:
        passed = f"passed at r={task.passed_at}"
    remarks = [f"{name} in {count}" for name, count in (*task.failures.items(), *task.reasons.items())]
    if task.expected is not None:
        remarks.insert(0, f"expected to {task.expect}: {'so it did' if task.expected else 'IT DID NOT'}")
    walls = _ms(task.wall.median_ns), _ms(task.wall.max_ns)
    return task.task, task.task_class, task.tier, passed, _share(task.share), *walls, "; ".join(remarks)


def _walls(one: Latency) -> tuple[str, ...]:
    interval = one.interval_ns
    between = "n/a" if interval is None else f"{_ms(interval.low)} - {_ms(interval.high)}"
    return _ms(one.median_ns), between, _ms(one.p95_ns), _ms(one.max_ns)


def _phase(phase: Phase) -> tuple[str, ...]:
    return (
        phase.name,
        str(phase.count),
        _ms(phase.total_ns),
        _percent(phase.exclusive_share),
        _percent(phase.wall_share),
    )


def _remarks(found: Summary) -> Iterable[str]:
    if found.disturbed:
        named = ", ".join(f"{task}#{iteration}" for task, iteration in found.disturbed[:_MANY])
        yield f"disturbed (the machine was otherwise busy): {named}"
    for count, what in ((found.throttled, "throttled"), (found.cached_twice, "with an answer seen before")):
        if count:
            yield f"{count} runs {what}: no latency sample"
    for issue, count in found.trace_issues.items():
        yield f"trace issue in {count}: {issue}"


def _heading(title: str, style: Style) -> Iterable[str]:
    yield f"# {title}" if style == "markdown" else title
    if style == "markdown":
        yield ""


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], style: Style) -> Iterable[str]:
    """Nothing where there are no rows."""
    cells = [[_one_line(cell) for cell in row] for row in rows]
    if not cells:
        return
    if style == "markdown":
        yield f"## {title}"
        yield ""
        for row in (
            columns,
            ["---"] * len(columns),
            *([cell.replace("|", "\\|") for cell in row] for row in cells),
        ):
            yield f"| {' | '.join(row)} |"
    else:
        yield title
        widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
        for row in (columns, *cells):
            yield (
                "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            )
    yield ""


def _one_line(cell: str) -> str:
    """What an oracle or an agent says may have line breaks, which would break the table."""
    return " ".join(cell.split())


def _ms(ns: float | None) -> str:
    return "n/a" if ns is None else f"{ns / 1e6:.1f} ms"


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.1f} %"


def _share(interval: Interval | None) -> str:
    return "n/a" if interval is None else f"[{interval.low:.2f}, {interval.high:.2f}]"


def _count(tokens: int | None) -> str:
    return "n/a" if tokens is None else f"{tokens:,}"
