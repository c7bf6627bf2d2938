"""What a span or a turn that ended says to the metrics. On the writer's thread, so that no agent waits."""

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.trace import SpanContext, TraceFlags

from turntrace.core.live import LiveTotals
from turntrace.core.results import Attribution
from turntrace.otel.live_turn import LiveTurn, OpenSpan
from turntrace.otel.metrics import CallPoint, TurnMetrics, TurnPoint

__all__ = ["attributed_point", "measure_span", "turn_point", "untold_retries"]

_MODEL_PHASE: Final = "generation"
_TOOL_PHASE: Final = "tool_execution"


def measure_span(metrics: TurnMetrics, opened: OpenSpan, exclusive_ns: int) -> None:
    """The points of one span: exclusive time; the call that it is."""
    agent, phase = opened.turn.who.agent, opened.phase
    if phase is None:
        return
    call = opened.model_call
    if phase == _MODEL_PHASE and call is not None and call is not opened:
        call.repeated_ns += exclusive_ns  # one call told twice is one point
        return
    labels = {_TOOL_PHASE: ("tool", opened.tool), _MODEL_PHASE: ("model", opened.model)}
    exclusive_ns += opened.repeated_ns
    metrics.span_ended(agent, phase, exclusive_ns, labels.get(phase), opened.context)
    if phase == _MODEL_PHASE:
        metrics.model_called(_call(opened, agent))
    elif phase == _TOOL_PHASE and opened.tool_call is opened:
        metrics.tool_called(agent, opened.tool, opened.outcome, opened.context)


def _call(opened: OpenSpan, agent: str | None) -> CallPoint:
    facts = opened.facts
    return CallPoint(
        agent=agent,
        model=facts.model,
        provider=facts.provider,
        outcome=opened.outcome,
        duration_ns=opened.end_ns - opened.start_ns,
        first_token_ns=facts.first_token_ns,
        usage=opened.usage,
        context=opened.context,
    )


def untold_retries(turn: LiveTurn) -> int:
    """Retries that the turn counted and no wait told; their reason is unknown."""
    return max(turn.counts.counters["retry_count"] - turn.counts.retry_waits, 0)


def turn_point(turn: LiveTurn, totals: LiveTotals, rounds: int) -> TurnPoint:
    """What a turn measured by its live totals."""
    return _point(
        turn,
        wall_ns_by_phase={**totals.wall_ns_by_phase, "unattributed": totals.unattributed_ns},
        active_ns=totals.active_ns,
        coverage=totals.coverage,
        rounds=rounds,
    )


def attributed_point(turn: LiveTurn, found: Attribution, rounds: int | None) -> TurnPoint | None:
    """What a turn measured by its block; None without a window."""
    if found.unattributed_ns is None or found.active_ns is None or found.coverage is None:
        return None
    walls = {totals.name: totals.wall_share_ns for totals in found.phases if totals.wall_share_ns}
    return _point(
        turn,
        wall_ns_by_phase={**walls, "unattributed": found.unattributed_ns},
        active_ns=found.active_ns,
        coverage=found.coverage,
        rounds=rounds or 0,
    )


def _point(turn: LiveTurn, **measured: Any) -> TurnPoint:
    who = turn.who
    flags = TraceFlags(TraceFlags.SAMPLED if who.sampled else TraceFlags.DEFAULT)
    labels: Mapping[str, str] = who.labels
    return TurnPoint(
        agent=who.agent,
        status=turn.status,
        context=SpanContext(who.trace_id, who.root_id, is_remote=False, trace_flags=flags),
        labels=labels,
        **measured,
    )
