"""Which live turn a span belongs to."""

from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import SpanContext

from turntrace.otel.live_turn import LiveTurn, NestedTurn, OpenSpan
from turntrace.otel.slot import TURN_KEY

__all__ = ["TurnTable"]


class TurnTable:
    """Open spans by id, live turns by trace. Plain dict operations only, so readers need no lock."""

    __slots__ = ("_by_trace", "inherited", "inherited_spans", "inherited_traces", "live", "open_spans")

    def __init__(self) -> None:
        self.open_spans: dict[int, OpenSpan] = {}
        self.live: set[LiveTurn] = set()
        self.inherited_traces: frozenset[int] = frozenset()
        self.inherited_spans: frozenset[int] = frozenset()
        self.inherited: frozenset[LiveTurn] = frozenset()
        self._by_trace: dict[int, list[LiveTurn]] = {}

    def add(self, turn: LiveTurn) -> None:
        """Enter a turn that just opened."""
        self.live.add(turn)
        self._by_trace.setdefault(turn.trace_id, []).append(turn)

    def remove(self, turn: LiveTurn) -> None:
        """Forget a turn that was closed, and the spans of it that never ended."""
        self.live.discard(turn)
        others = [other for other in self._by_trace.get(turn.trace_id, ()) if other is not turn]
        if others:
            self._by_trace[turn.trace_id] = others
        else:
            self._by_trace.pop(turn.trace_id, None)
        for span_id in turn.open_spans:
            self.open_spans.pop(span_id, None)

    def in_context(self, context: Context | None) -> LiveTurn | NestedTurn | None:
        """The turn that ``context`` carries, unless it is closed (as a parent's is in a forked child)."""
        sink: Any = None if context is None else context.get(TURN_KEY)
        return None if sink is None or sink.closed else sink

    def of_trace(self, trace_id: int) -> LiveTurn | None:
        """The live turn of a trace that opened last."""
        turns = self._by_trace.get(trace_id)
        return turns[-1] if turns else None

    def only_turn(self) -> LiveTurn | None:
        """The one live turn of the process when there is exactly one; local roots do not count."""
        turns = [turn for turn in tuple(self.live) if not turn.candidate and turn.end_ns is None]
        return turns[0] if len(turns) == 1 else None

    def is_inherited(self, context: SpanContext | None) -> bool:
        """Whether a span was open in the parent when this process was forked from it."""
        return bool(self.inherited_spans) and context is not None and context.span_id in self.inherited_spans

    def after_fork(self) -> None:
        """In a forked child: the parent's turns are its own; their traces are remembered for fragments."""
        self.inherited_traces = frozenset(self._by_trace) | self.inherited_traces
        self.inherited = frozenset(self.live)
        self.inherited_spans = frozenset(self.open_spans) | self.inherited_spans
        for turn in self.inherited:
            turn.closed = turn.is_inherited = True  # here; the parent goes on with its own
        self.open_spans = {}
        self.live = set()
        self._by_trace = {}
