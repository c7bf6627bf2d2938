"""What an agent's own trace says of a run, and whether it can be of that run at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from turntrace.core.attributes import AWAIT_MS
from turntrace.core.attribution import attributed
from turntrace.core.model import Span, Turn
from turntrace.core.owed_usage import UsageCall
from turntrace.core.results import Attribution
from turntrace.errors import TraceReadError
from turntrace.files.read import read_paths

__all__ = ["Readout", "read_trace", "self_reported"]

_NS_PER_MS: Final = 1_000_000
_SLACK_NS: Final = 50_000_000
"""How far apart the clocks of one machine may be read: a span within this of the process's life is inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readout:
    """``status`` is ok, missing, unreadable or off. ``calls`` are the model calls that the trace tells of."""

    status: str
    issues: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()
    calls: tuple[UsageCall, ...] = ()


def read_trace(path: Path, *, began_ns: int, ended_ns: int, requests: int | None) -> Readout:
    """Read the trace of one run.

    Args:
        path: where the agent was told to write.
        began_ns: when its process began, ns since the epoch.
        ended_ns: when it ended.
        requests: how many requests the model server answered, None where it is not ours.
    """
    if not path.exists() or not path.stat().st_size:
        return Readout(status="missing", issues=("the agent wrote no trace",))
    try:
        found = read_paths([str(path)])
    except TraceReadError as error:
        return Readout(status="unreadable", issues=(f"the trace cannot be read: {error}",))
    turns = tuple(turn for turn in found.turns if turn.parent_run_id is None)
    if not turns:
        return Readout(status="unreadable", issues=("the trace holds no turn",))
    issues = [f"{issue.code}: {issue.message}" for _, issue in found.issues if issue.severity == "error"]
    spans = [span for turn in turns for span in turn.spans]
    strange = sum(
        span.start_ns < began_ns - _SLACK_NS or span.end_ns > ended_ns + _SLACK_NS for span in spans
    )
    if strange:
        issues.append(f"{strange} spans lie outside the life of the agent's process")
    said = sum(turn.counters.get("model_requests", 0) for turn in turns)
    if requests is not None and said != requests:
        issues.append(f"the trace tells of {said} model requests, the model server answered {requests}")
    calls = tuple(call for turn in turns for call in _calls(turn))
    return Readout(status="issues" if issues else "ok", issues=tuple(issues), turns=turns, calls=calls)


def _calls(turn: Turn) -> list[UsageCall]:
    """What the trace tells of model calls; a refused attempt is no call there."""
    return [
        UsageCall(
            name=usage.span_id,
            status=None,
            input_tokens=usage.input_tokens if usage.provenance == "reported" else None,
            output_tokens=usage.output_tokens if usage.provenance == "reported" else None,
            cached_input_tokens=usage.cached_input_tokens,
        )
        for usage in turn.usage
    ]


def self_reported(readout: Readout) -> Mapping[str, Any] | None:
    """The agent's own figures, None where there is no turn. Phases only of a trace without issues."""
    if not readout.turns:
        return None
    told = [(turn, attributed(turn)) for turn in readout.turns]
    wall_ns = _sum([found.wall_ns for _, found in told])
    attributed_ns = _sum([found.attributed_ns for _, found in told])
    first = readout.turns[0]
    return {
        "wall_ns": wall_ns,
        "active_ns": _sum([found.active_ns for _, found in told]),
        "coverage": attributed_ns / wall_ns if wall_ns and attributed_ns is not None else None,
        "first_chunk_ns": _since(first, first.first_chunk_ns),
        "first_token_ns": _since(first, first.first_token_ns),
        "first_visible_ns": _since(first, first.first_visible_ns),
        "model_elapsed_ns": _model_elapsed_ns([span for turn in readout.turns for span in turn.spans]),
        "models": sorted({span.model for turn in readout.turns for span in turn.spans if span.model}),
        "counters": _counters(readout.turns),
        "max_concurrency": _most(told),
        "phases": _phases(told) if readout.status == "ok" else None,
    }


def _since(turn: Turn, at_ns: int | None) -> int | None:
    return None if at_ns is None or turn.started_ns is None else at_ns - turn.started_ns


def _sum(values: list[int | None]) -> int | None:
    """Unknown if a part is."""
    return sum(value for value in values if value is not None) if None not in values else None


def _model_elapsed_ns(spans: list[Span]) -> int | None:
    """Time spent awaiting the model only: the consumer's pauses between two items are not the model's."""
    awaited = [span.attributes.get(AWAIT_MS) for span in spans if span.phase == "generation"]
    if not awaited or not all(isinstance(value, int | float) for value in awaited):
        return None
    return sum(int(float(value) * _NS_PER_MS) for value in awaited if value is not None)


def _counters(turns: tuple[Turn, ...]) -> dict[str, int]:
    total: dict[str, int] = {}
    for turn in turns:
        for name, count in turn.counters.items():
            total[name] = total.get(name, 0) + count
    return total


def _most(told: list[tuple[Turn, Attribution]]) -> dict[str, int]:
    most: dict[str, int] = {}
    for _, found in told:
        for name, count in found.max_concurrency.items():
            most[name] = max(most.get(name, 0), count)
    return most


def _phases(told: list[tuple[Turn, Attribution]]) -> dict[str, dict[str, Any]]:
    """For each phase its exclusive times in whole us, one a span, and its share of the wall in ns."""
    phases: dict[str, dict[str, Any]] = {}
    for _, found in told:
        for times in found.spans:
            phase = phases.setdefault(times.phase or "structure", {"exclusive_us": [], "wall_share_ns": 0})
            phase["exclusive_us"].append(times.exclusive_ns // 1000)
            phase["wall_share_ns"] += times.wall_share_ns or 0
    return phases
