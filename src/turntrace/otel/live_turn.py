"""A live turn in this process: its clock, counters, live times, log and open spans.

Longer than most modules because the classes name one another: a turn has open spans and a log, a span
has its turn, a log takes spans, a nested turn has the outer one.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from opentelemetry.context import Context
from opentelemetry.trace import SpanContext

from turntrace.core.attributes import Scalar
from turntrace.core.dialects import Description, Verdict
from turntrace.core.live import LiveAttribution, LiveSpan
from turntrace.core.model import Event, Mark, Outcome, SpanStatus, Turn, TurnStatus, Usage, Warn
from turntrace.core.prefixes import invalidation_reason
from turntrace.core.results import Attribution
from turntrace.otel.answer import answer
from turntrace.otel.clock import Clock, TurnClock
from turntrace.otel.live_counts import LiveCounts
from turntrace.otel.metrics import TurnMetrics
from turntrace.otel.turn_identity import TurnIdentity

__all__ = ["LiveTurn", "NestedTurn", "OpenSpan", "TurnLog"]


class TurnLog(Protocol):
    """Told by the spans' threads, read by the writer. Nothing here raises."""

    out: Path | None
    """The file that gets the block; None when no block is wanted."""

    def opened(self) -> None:
        """The turn opened: its header."""
        ...

    def started(self, opened: "OpenSpan") -> None:
        """A span started."""
        ...

    def ended(self, opened: "OpenSpan") -> None:
        """A span ended."""
        ...

    def cut(self, opened: "OpenSpan") -> None:
        """A span never ended; told while the turn is being closed."""
        ...

    def counter(self, name: str, total: int) -> None:
        """A counter's running total."""
        ...

    def mark(self, mark: Mark) -> None:
        """A moment."""
        ...

    def usage(self, usage: Usage) -> None:
        """What a model call consumed."""
        ...

    def warning(self, warning: Warn) -> None:
        """Something a reader must know."""
        ...

    def event(self, event: Event) -> None:
        """A content-free event."""
        ...

    def flush(self) -> None:
        """Write what was gathered."""
        ...

    def record(self) -> Turn:
        """The turn as far as it was told."""
        ...

    def has_turn_elsewhere(self) -> bool:
        """Whether another live process beside this file holds the turn's root."""
        ...

    def discard(self) -> None:
        """Forget what was kept: the block is written, or the local root was no turn."""
        ...

    def leave(self) -> None:
        """Write what was gathered and let the journal stand as it is."""
        ...

    def close(self) -> None:
        """Give back the descriptor."""
        ...

    def forget(self) -> None:
        """In a forked child: give back the descriptor and write nothing; the turn is the parent's."""
        ...


class OpenSpan:
    """A span while it is open, and its end: ids, live times, what its dialect said at the start.

    ``model_call`` and ``tool_call`` are the outermost open generation and named tool at or above it:
    what lies below one is the same call seen again and is not counted. ``usage`` is the richest report
    found below a model call, ``repeated_ns`` the exclusive time of spans that repeat it. ``verdict`` is set on spans of other instrumentations only. ``above`` is the own
    span that was current when it began, ``previous`` the context from before.
    """

    __slots__ = (
        "above",
        "agent", "attributes", "context", "end_ns", "facts", "inferred",
        "is_over", "live", "model", "model_call", "name", "outcome", "parent_id", "phase",
        "previous", "repeated_ns", "round", "run_id",
        "sink", "span_id", "start_ns", "status", "tool", "tool_call", "turn", "usage", "verdict",
    )  # fmt: skip

    def __init__(
        self,
        sink: "LiveTurn | NestedTurn",
        span_id: int,
        parent_id: int | None,
        name: str,
        phase: str | None,
        start_ns: int,
    ) -> None:
        self.sink = sink
        self.turn: LiveTurn = sink.turn
        self.span_id = span_id
        self.parent_id = parent_id
        self.name = name
        self.phase = phase
        self.start_ns = start_ns
        self.live: LiveSpan
        self.round: int | None = None
        self.agent: str | None = None
        self.run_id: str | None = None
        self.inferred = False
        self.repeated_ns = 0
        self.is_over = False
        self.above: OpenSpan | None = None
        self.previous: Context | None = None
        self.tool: str | None = None
        self.model: str | None = None
        self.model_call: OpenSpan | None = None
        self.tool_call: OpenSpan | None = None
        self.usage: Usage | None = None
        self.verdict: Verdict
        self.facts: Description  # of model calls, from their end on
        self.context: SpanContext
        self.end_ns: int
        self.status: SpanStatus
        self.outcome: Outcome
        self.attributes: Mapping[str, Any]

    def ended(self, end_ns: int, status: SpanStatus, outcome: Outcome, attributes: Mapping[str, Any]) -> None:
        """Note the end; ``attributes`` are the instrumentation's own, not yet filtered."""
        self.is_over = True
        self.end_ns = max(end_ns, self.start_ns)
        self.status = status
        self.outcome = outcome
        self.attributes = attributes


class LiveTurn:
    """One turn that is being recorded; or, while ``candidate``, a local root that may become one."""

    __slots__ = (
        "anchor_ns",
        "candidate",
        "clock",
        "closed",
        "counts",
        "end_ns",
        "has_phase",
        "is_fragment",
        "is_inherited",
        "is_measured",
        "is_warned",
        "live",
        "lock",
        "log",
        "metrics",
        "model",
        "monotonic_ns",
        "open_spans",
        "prefix_hashes",
        "provider",
        "result",
        "root_id",
        "run_id",
        "since_ns",
        "span_count",
        "start_ns",
        "status",
        "tell_count",
        "trace_id",
        "who",
    )  # fmt: skip

    def __init__(self, who: TurnIdentity, clock: Clock, start_ns: int) -> None:
        self.who = who
        self.run_id, self.trace_id, self.root_id = who.run_id, who.trace_id, who.root_id
        self.candidate = who.turn_source in {"local_root", "run"}
        self.clock = TurnClock(clock)
        self.monotonic_ns, self.anchor_ns = clock.monotonic_ns, self.clock.anchor_ns
        self.lock = threading.RLock()  # a signal handler may record on the thread that holds it
        self.live = LiveAttribution(start_ns)
        self.counts = LiveCounts()
        self.log: TurnLog
        self.metrics: TurnMetrics | None = None
        self.tell_count: Callable[[str, int], object] | None = None  # a metric of counters
        self.model: str | None = None
        self.provider: str | None = None
        self.prefix_hashes: Mapping[str, str] | None = None
        self.start_ns = self.since_ns = start_ns
        self.end_ns: int | None = None
        self.status: TurnStatus = "ok"
        self.open_spans: dict[int, OpenSpan] = {}
        self.span_count = 0
        self.has_phase = False
        self.is_warned = False
        self.is_fragment = False
        self.is_inherited = False
        self.is_measured = False
        self.closed = False
        self.result: tuple[Turn, Attribution] | None = None

    @property
    def turn(self) -> "LiveTurn":
        """Itself: a nested turn answers with the outer one."""
        return self

    # -- TurnSink -----------------------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        """See TurnSink."""
        return self.counts.rounds

    def now_ns(self) -> int:
        """See TurnSink."""
        return self.monotonic_ns() + self.anchor_ns

    def next_round(self) -> int:
        """See TurnSink."""
        self.counts.rounds += 1
        return self.counts.rounds

    def count(self, name: str, amount: int) -> None:
        """See TurnSink."""
        if self.closed:
            return
        with self.lock:
            self.counts.counters[name] += amount
            total = self.counts.counters[name]
        self.log.counter(name, total)
        if self.tell_count is not None:
            self.tell_count(name, amount)

    def mark(self, name: str, at_ns: int, span_id: int | None) -> None:
        """See TurnSink."""
        if self.closed:
            return
        self.counts.first_ns.setdefault(name, at_ns)
        self.log.mark(Mark(name=name, at_ns=at_ns, span_id=None if span_id is None else f"{span_id:016x}"))

    def warn(self, code: str, message: str, span_id: int | None) -> None:
        """See TurnSink."""
        ids = () if span_id is None else (f"{span_id:016x}",)
        self.log.warning(Warn(code=code, message=message, span_ids=ids))

    def prefix(self, hashes: Mapping[str, str]) -> None:
        """See TurnSink."""
        if self.closed:
            return
        with self.lock:
            reason = invalidation_reason(self.prefix_hashes, hashes)
            self.prefix_hashes = hashes
        self.log.event(Event(type="prefix_hash", fields={**hashes, "invalidation_reason": reason}))

    def finish(self, status: TurnStatus, end_ns: int) -> dict[str, Scalar]:
        """See TurnSink."""
        if self.closed:
            return {}
        with self.lock:
            if self.end_ns is None:
                self.status = status
                self.end_ns = end_ns
            facts = self.counts.facts(self.run_id, self.status, self.start_ns)
            return answer(self.live.totals(self.end_ns), facts)

    # -- what the processor tells ---------------------------------------------------------------------

    def first_ns(self, name: str) -> int | None:
        """When the moment ``name`` first came (epoch ns)."""
        return self.counts.first_ns.get(name)

    def called(self, model: str | None, provider: str | None, usage: Usage | None) -> None:
        """Note one model call and what it consumed."""
        with self.lock:
            self.model = self.model or model
            self.provider = self.provider or provider
            self.counts.model_called(usage)


class NestedTurn:
    """A turn() inside a turn: structure of the outer one, with rounds of its own."""

    __slots__ = ("anchor_ns", "monotonic_ns", "outer", "rounds", "run_id", "turn")

    def __init__(self, outer: LiveTurn, run_id: str) -> None:
        self.outer = self.turn = outer
        self.monotonic_ns, self.anchor_ns = outer.monotonic_ns, outer.anchor_ns
        self.run_id = run_id
        self.rounds = 0

    @property
    def root_id(self) -> int:
        """No span is the root of a block through a nested turn."""
        return -1

    @property
    def candidate(self) -> bool:
        """A nested turn lies in a turn, never in a mere local root."""
        return False

    @property
    def closed(self) -> bool:
        """Whether the outer turn is closed."""
        return self.outer.closed

    def now_ns(self) -> int:
        """See TurnSink."""
        return self.outer.now_ns()

    def next_round(self) -> int:
        """See TurnSink."""
        self.rounds += 1
        return self.rounds

    def count(self, name: str, amount: int) -> None:
        """See TurnSink."""
        self.outer.count(name, amount)

    def mark(self, name: str, at_ns: int, span_id: int | None) -> None:
        """See TurnSink."""
        self.outer.mark(name, at_ns, span_id)

    def warn(self, code: str, message: str, span_id: int | None) -> None:
        """See TurnSink."""
        self.outer.warn(code, message, span_id)

    def prefix(self, hashes: Mapping[str, str]) -> None:
        """See TurnSink."""
        self.outer.prefix(hashes)

    def finish(self, status: TurnStatus, end_ns: int) -> dict[str, Scalar]:
        """Only the outer turn carries the whole answer."""
        del status, end_ns
        return {}
