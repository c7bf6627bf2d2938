"""A turn as a table: a row for the turn and for each of its spans. What CSV, Parquet and SQL are made of."""

from collections.abc import Iterator
from typing import Any, Final

from turntrace.core.model import Turn, Usage
from turntrace.core.results import Attribution, SpanTimes
from turntrace.core.usage import TOKEN_FIELDS

__all__ = ["COLUMNS", "span_rows"]

COLUMNS: Final = {
    "run_id": "VARCHAR",
    "trace_id": "VARCHAR",
    "span_id": "VARCHAR",
    "parent_id": "VARCHAR",
    "kind": "VARCHAR",
    "name": "VARCHAR",
    "phase": "VARCHAR",
    "tool": "VARCHAR",
    "model": "VARCHAR",
    "agent": "VARCHAR",
    "round": "BIGINT",
    "status": "VARCHAR",
    "outcome": "VARCHAR",
    "detached": "BOOLEAN",
    "start_ns": "BIGINT",
    "end_ns": "BIGINT",
    "exclusive_ns": "BIGINT",
    "wall_share_ns": "BIGINT",
    "critical_ns": "BIGINT",
    **dict.fromkeys(TOKEN_FIELDS, "BIGINT"),
}
"""The columns with their SQL types, in order. ``kind`` is turn, phase or structure; None is unknown."""


def span_rows(turn: Turn, attribution: Attribution) -> Iterator[tuple[Any, ...]]:
    """The rows of one turn, its own first; times in ns since the epoch, lengths in ns."""
    usage = {one.span_id: one for one in turn.usage}
    yield _root(turn, attribution)
    for times in attribution.spans:
        yield _span(turn, times, usage.get(times.span.span_id))


def _root(turn: Turn, attribution: Attribution) -> tuple[Any, ...]:
    place = turn.run_id, turn.trace_id or None, turn.span_id, None
    name = turn.root_name or turn.agent or "turn"
    what = "turn", name, None, None, turn.model, turn.agent, None, turn.status, None, False
    times = (
        turn.started_ns,
        turn.completed_ns,
        attribution.root_exclusive_ns,
        None,
        attribution.root_critical_ns,
    )
    return *place, *what, *times, *(None for _ in TOKEN_FIELDS)


def _span(turn: Turn, times: SpanTimes, usage: Usage | None) -> tuple[Any, ...]:
    span = times.span
    kind = "structure" if times.phase is None else "phase"
    place = turn.run_id, turn.trace_id or None, span.span_id, times.parent_id
    what = kind, span.name, times.phase, span.tool, span.model, span.agent, span.round
    how = span.status, span.outcome, times.detached, span.start_ns, span.end_ns
    sums = times.exclusive_ns, times.wall_share_ns, times.critical_ns
    tokens = (None if usage is None else getattr(usage, name) for name in TOKEN_FIELDS)
    return *place, *what, *how, *sums, *tokens
