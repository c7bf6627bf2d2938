"""The turntrace.* metrics that turns, spans and calls tell, with exemplars; the table of them is core's.

No point is made for an unknown value. Measurements carry the span's context, so that the SDK can keep it
as an exemplar.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from opentelemetry.context import Context
from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.trace import NonRecordingSpan, SpanContext, set_span_in_context

from turntrace.core.metric_table import METRICS, retry_reason
from turntrace.core.model import Outcome, Usage
from turntrace.otel.guard import Guard
from turntrace.otel.metric_labels import BoundedLabels, BoundedNames

__all__ = ["CallPoint", "TurnMetrics", "TurnPoint"]

_NS_PER_S: Final = 1_000_000_000
_TOKEN_TYPES: Final = {
    "input_tokens": "input",
    "cached_input_tokens": "cache_read",
    "cache_write_tokens": "cache_write",
    "output_tokens": "output",
    "reasoning_tokens": "reasoning",
}
_EVENTS: Final = {
    "reconnect_count": "turntrace.reconnects",
    "compaction_count": "turntrace.compactions",
    "compaction_attempts": "turntrace.compaction_attempts",
    "completion_nudges": "turntrace.completion_nudges",
    "acceptance_checks": "turntrace.acceptance_checks",
    "model_switches": "turntrace.model_switches",
}
"""Counters of the contract that are metrics as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPoint:
    """What one turn measured. The wall times, ``unattributed`` included, add up to its duration."""

    agent: str | None
    status: str
    wall_ns_by_phase: Mapping[str, int]
    active_ns: int
    coverage: float
    rounds: int
    context: SpanContext
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPoint:
    """What one model call measured; ``first_token_ns`` counts from its start and is known of streams only."""

    agent: str | None
    model: str | None
    provider: str | None
    outcome: Outcome
    duration_ns: int
    first_token_ns: int | None
    usage: Usage | None
    context: SpanContext


class TurnMetrics:
    """Records what turns, spans and calls measured on one Meter. Runs on the writer's thread."""

    def __init__(
        self,
        meter: Meter,
        guard: Guard,
        label_names: frozenset[str] = frozenset(),
        agents: frozenset[str] = frozenset(),
    ) -> None:
        """Make the instruments.

        Args:
            meter: makes them.
            guard: counts what bounded labels hide.
            label_names: a turn's labels that become attributes.
            agents: names that the application declared; they are never ``_other``.
        """
        self.names = {
            label: BoundedNames(guard, agents if label == "agent" else frozenset())
            for label in ("agent", "model", "provider", "tool")
        }
        chosen = {name: BoundedNames(guard) for name in label_names}
        self._label_names = label_names
        self._labels = {name: BoundedLabels(guard, {**chosen, **self.names}) for name in METRICS}
        self._histograms: dict[str, Histogram] = {}
        self._counters: dict[str, Counter] = {}
        for name, metric in METRICS.items():
            if metric.kind == "histogram":
                self._histograms[name] = meter.create_histogram(
                    name,
                    unit=metric.unit,
                    description=metric.what,
                    explicit_bucket_boundaries_advisory=list(metric.bounds),
                )
            elif metric.kind == "counter":
                self._counters[name] = meter.create_counter(name, metric.unit, metric.what)

    def turn_ended(self, turn: TurnPoint) -> None:
        """One point for the turn and one for each phase of it."""
        context = _exemplar(turn.context)
        chosen = {name: turn.labels[name] for name in self._label_names & turn.labels.keys()}
        ended = {**chosen, "agent": turn.agent, "status": turn.status}
        duration_ns = sum(turn.wall_ns_by_phase.values())
        self._add("turntrace.turns", 1, context, **ended)
        self._record("turntrace.turn.duration", duration_ns / _NS_PER_S, context, **ended)
        self._record("turntrace.turn.active_duration", turn.active_ns / _NS_PER_S, context, **ended)
        if duration_ns:  # a turn without length has no shares
            self._record("turntrace.turn.coverage", turn.coverage, context, agent=turn.agent)
        self._record("turntrace.turn.rounds", turn.rounds, context, agent=turn.agent)
        for phase, wall_ns in turn.wall_ns_by_phase.items():
            labels = {**chosen, "agent": turn.agent, "phase": phase}
            self._record("turntrace.phase.wall_time", wall_ns / _NS_PER_S, context, **labels)

    def turn_stopped(self, agent: str | None, status: str) -> None:
        """A turn that has no end is counted; how long it took is unknown."""
        self._add("turntrace.turns", 1, None, agent=agent, status=status)

    def span_ended(
        self,
        agent: str | None,
        phase: str,
        exclusive_ns: int,
        label: tuple[str, str | None] | None,
        context: SpanContext,
    ) -> None:
        """One point for a phase span; ``label`` is ("tool" or "model", its name)."""
        labels = {"agent": agent, "phase": phase, **dict([] if label is None else [label])}
        self._record("turntrace.phase.exclusive_time", exclusive_ns / _NS_PER_S, _exemplar(context), **labels)

    def model_called(self, call: CallPoint) -> None:
        """The call, its first token, its rate and the tokens that it reported."""
        context, usage, first_ns = _exemplar(call.context), call.usage, call.first_token_ns
        whose: dict[str, str | None] = {"agent": call.agent, "model": call.model}
        provided = {**whose, "provider": call.provider}
        self._add("turntrace.model_requests", 1, context, **provided, outcome=call.outcome)
        if first_ns is not None:
            self._record("turntrace.generation.first_token", first_ns / _NS_PER_S, context, **provided)
        if usage is None:
            return
        if usage.provenance == "missing":
            self._add("turntrace.usage_missing", 1, context, **whose)
        for name, kind in _TOKEN_TYPES.items():
            tokens: int | None = getattr(usage, name)
            if tokens is not None:
                self._add("turntrace.tokens", tokens, context, **whose, type=kind)
        if first_ns is not None and usage.output_tokens is not None and call.duration_ns > first_ns:
            rate = usage.output_tokens * _NS_PER_S / (call.duration_ns - first_ns)
            self._record("turntrace.generation.output_rate", rate, context, **whose)

    def tool_called(
        self, agent: str | None, tool: str | None, outcome: Outcome, context: SpanContext
    ) -> None:
        """One tool call ended."""
        self._add("turntrace.tool_calls", 1, _exemplar(context), agent=agent, tool=tool, outcome=outcome)

    def retried(self, agent: str | None, model: str | None, reason: object, amount: int) -> None:
        """Requests that were sent again; ``reason`` is what the retry says of itself."""
        if amount:
            labels = {"agent": agent, "model": model, "reason": retry_reason(reason)}
            self._add("turntrace.retries", amount, None, **labels)

    def counted(self, agent: str | None, name: str, amount: int) -> None:
        """A counter of the contract went up; those that are no metric of their own are left out."""
        metric = _EVENTS.get(name)
        if metric is not None and amount > 0:
            self._add(metric, amount, None, agent=agent)

    def _add(self, name: str, amount: int, context: Context | None, **labels: str | None) -> None:
        self._counters[name].add(amount, self._labels[name](**labels), context=context)

    def _record(self, name: str, value: float, context: Context, **labels: str | None) -> None:
        self._histograms[name].record(value, self._labels[name](**labels), context=context)


def _exemplar(context: SpanContext) -> Context:
    return set_span_in_context(NonRecordingSpan(context), Context())
