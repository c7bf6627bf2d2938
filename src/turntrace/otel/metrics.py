"""The turntrace.* metrics: instruments, bounds, labels of bounded cardinality, exemplars.

No point is made for an unknown value. Span and turn measurements carry the span's context, so that the
SDK can keep it as an exemplar.
"""

from collections.abc import Mapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, Meter
from opentelemetry.trace import NonRecordingSpan, SpanContext, set_span_in_context

from turntrace.core.model import Usage
from turntrace.otel.guard import Guard

__all__ = ["DURATION_BOUNDS_S", "MAX_NAMES", "TURN_BOUNDS_S", "BoundedNames", "TurnMetrics"]

DURATION_BOUNDS_S: Final = tuple(0.01 * 2**power for power in range(14))
"""0.01 ... 81.92, doubling."""

TURN_BOUNDS_S: Final = tuple(0.1 * 2**power for power in range(16))
"""0.1 ... 3276.8, doubling."""

MAX_NAMES: Final = 100
"""Distinct values of a label that a process may use; later ones are ``_other``."""

_NS_PER_S: Final = 1_000_000_000
_TOKEN_TYPES: Final = {
    "input_tokens": "input",
    "cached_input_tokens": "cache_read",
    "cache_write_tokens": "cache_write",
    "output_tokens": "output",
    "reasoning_tokens": "reasoning",
}


class BoundedNames:
    """The first MAX_NAMES values of one label pass; the rest become ``_other`` and are counted."""

    __slots__ = ("_guard", "_known")

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._known: set[str] = set()

    def __call__(self, name: str | None) -> str:
        """``name`` or ``_other``; an unknown name is ``unknown``."""
        if name is None:
            return "unknown"
        if name not in self._known:
            if len(self._known) >= MAX_NAMES:
                self._guard.drop("cardinality")
                return "_other"
            self._known.add(name)
        return name


class TurnMetrics:
    """Records what turns and spans measured on one Meter."""

    def __init__(self, meter: Meter, guard: Guard, label_names: frozenset[str] = frozenset()) -> None:
        """Make the instruments; of a turn's labels those in ``label_names`` become attributes."""

        def histogram(name: str, what: str, bounds: tuple[float, ...]) -> Histogram:
            return meter.create_histogram(
                name, unit="s", description=what, explicit_bucket_boundaries_advisory=list(bounds)
            )

        self._duration = histogram("turntrace.turn.duration", "Wall time of a turn", TURN_BOUNDS_S)
        self._wall = histogram(
            "turntrace.phase.wall_time", "A phase's share of a turn's wall time", TURN_BOUNDS_S
        )
        self._exclusive = histogram(
            "turntrace.phase.exclusive_time", "A span's time without its children", DURATION_BOUNDS_S
        )
        self._turns = meter.create_counter("turntrace.turns", unit="{turn}", description="Turns ended")
        self._tokens = meter.create_counter("turntrace.tokens", unit="{token}", description="Tokens reported")
        self._retries = meter.create_counter(
            "turntrace.retries", unit="{attempt}", description="Requests sent again"
        )
        self._dropped = meter.create_counter(
            "turntrace.dropped", unit="1", description="Records left out, by reason"
        )
        self._agents, self._models = BoundedNames(guard), BoundedNames(guard)
        self._tools = BoundedNames(guard)
        self._guard = guard
        self._told: dict[str, int] = {}
        self._label_names = label_names
        self._values = {name: BoundedNames(guard) for name in label_names}

    def turn_ended(
        self,
        agent: str | None,
        status: str,
        wall_ns_by_phase: Mapping[str, int],
        context: SpanContext,
        turn_labels: Mapping[str, str],
    ) -> None:
        """One point for the turn and one for each phase of it, ``unattributed`` included (ns)."""
        exemplar, name = _exemplar(context), self._agents(agent)
        duration_ns = sum(wall_ns_by_phase.values())
        chosen = {key: self._values[key](turn_labels[key]) for key in self._label_names & turn_labels.keys()}
        labels = {**chosen, "agent": name, "status": status}
        self._duration.record(duration_ns / _NS_PER_S, labels, context=exemplar)
        self._turns.add(1, labels, context=exemplar)
        for phase, wall_ns in wall_ns_by_phase.items():
            self._wall.record(
                wall_ns / _NS_PER_S, {**chosen, "agent": name, "phase": phase}, context=exemplar
            )
        self.tell_dropped()

    def span_ended(
        self,
        agent: str | None,
        phase: str,
        exclusive_ns: int,
        label: tuple[str, str | None] | None,
        context: SpanContext,
    ) -> None:
        """One point for a phase span; ``label`` is ("tool" or "model", its name)."""
        labels = {"agent": self._agents(agent), "phase": phase}
        if label is not None:
            names = self._tools if label[0] == "tool" else self._models
            labels[label[0]] = names(label[1])
        self._exclusive.record(exclusive_ns / _NS_PER_S, labels, context=_exemplar(context))

    def model_called(self, agent: str | None, usage: Usage, context: SpanContext) -> None:
        """Token points for the counts that the call reported."""
        for field, kind in _TOKEN_TYPES.items():
            tokens: int | None = getattr(usage, field)
            if tokens is not None:
                labels = {"agent": self._agents(agent), "model": self._models(usage.model), "type": kind}
                self._tokens.add(tokens, labels, context=_exemplar(context))

    def retried(self, agent: str | None, model: str | None, reason: str, amount: int) -> None:
        """Requests that were sent again."""
        labels = {"agent": self._agents(agent), "model": self._models(model), "reason": reason}
        self._retries.add(amount, labels)

    def tell_dropped(self) -> None:
        """Bring the counter of left-out records up to date."""
        for reason, total in tuple(self._guard.dropped.items()):
            news = total - self._told.get(reason, 0)
            if news > 0:
                self._dropped.add(news, {"reason": reason})
                self._told[reason] = total


def _exemplar(context: SpanContext) -> Context:
    return set_span_in_context(NonRecordingSpan(context), Context())
