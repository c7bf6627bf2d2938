"""Spans that came, by trace, until their turns can be closed.

A turn is closed TURNTRACE_LINGER seconds after its root came. Without a root it waits: while a span names a
parent of its own process that has not come, that process is still busy; when all that came hangs below spans
of other processes, nothing more is expected here.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from turntrace.collect.request_spans import Arrived
from turntrace.core.model import RawSpan
from turntrace.core.root_calls import Process, process_of

__all__ = ["Gathering", "Trace", "Waits"]

_MAX_SPANS: Final = 200_000
_MAX_BYTES: Final = 128 << 20
_CLOSED: Final = 100_000
"""Traces that are remembered: what comes of them later waits for no root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long traces are waited for, in seconds, and how many spans at most.

    ``linger_s`` after the root; ``remote_s`` after the last span of a trace whose roots are below spans of
    other processes; ``idle_s`` after the last span of any other. Past ``max_spans``, or past ``max_bytes`` as
    they came, the trace that has waited longest is closed as it is.
    """

    linger_s: float = 1.0
    remote_s: float = 5.0
    idle_s: float = 300.0
    max_spans: int = _MAX_SPANS
    max_bytes: int = _MAX_BYTES


@dataclass(slots=True)
class Trace:
    """The spans of one trace so far. ``numbers`` are the segments that they stand in."""

    trace_id: str
    numbers: set[int] = field(default_factory=set)
    spans: dict[str, Arrived] = field(default_factory=dict)
    rooted_s: float | None = None
    seen_s: float = 0.0
    size_bytes: int = 0
    duplicates: int = 0

    def add(self, span: Arrived, number: int, now_s: float) -> None:
        """Take a span; of two with one id the later end counts, as for every reader."""
        self.numbers.add(number)
        self.seen_s = now_s
        other = self.spans.setdefault(span.raw.span_id, span)
        if other is not span:
            self.duplicates += 1
            if (-span.raw.end_ns, span.raw.start_ns) < (-other.raw.end_ns, other.raw.start_ns):
                self.spans[span.raw.span_id] = span
        if span.raw.parent_id is None and self.rooted_s is None:
            self.rooted_s = now_s

    def is_busy(self) -> bool:
        """Whether a span names a parent of its own process that has not come."""
        return any(
            not one.raw.remote_parent and one.raw.parent_id not in self.spans for one in self.spans.values()
        )

    def raws(self) -> list[RawSpan]:
        """The spans as they are read."""
        return [one.raw for one in self.spans.values()]


class Gathering:
    """The traces that are open. Not safe from several threads."""

    __slots__ = ("_closed", "_due", "_traces", "_waits", "size_bytes", "span_count")

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._traces: dict[str, Trace] = {}
        self._due: dict[str, float] = {}
        self._closed: OrderedDict[str, None] = OrderedDict()
        self.span_count = 0
        self.size_bytes = 0

    def add(self, spans: Sequence[Arrived], number: int, now_s: float, size_bytes: int) -> None:
        """Take the spans of a request of ``size_bytes`` that stands in the segment ``number``."""
        touched = set()
        share_bytes = size_bytes // max(1, len(spans))
        self.size_bytes += share_bytes * len(spans)
        for span in spans:
            trace_id = span.raw.trace_id
            trace = self._traces.get(trace_id)
            if trace is None:
                trace = self._traces[trace_id] = Trace(trace_id)
                trace.rooted_s = now_s if trace_id in self._closed else None
            before = len(trace.spans)
            trace.add(span, number, now_s)
            trace.size_bytes += share_bytes
            self.span_count += len(trace.spans) - before
            touched.add(trace_id)
        for trace_id in touched:
            trace = self._traces[trace_id]
            rooted_s, waits = trace.rooted_s, self._waits
            self._due[trace_id] = (
                trace.seen_s + max(waits.linger_s, waits.remote_s)
                if rooted_s is None
                else rooted_s + waits.linger_s
            )

    def due(self, now_s: float) -> Iterator[Trace]:
        """Give away the traces whose time has come, and the oldest ones of too many spans."""
        for trace_id in [trace_id for trace_id, due_s in self._due.items() if due_s <= now_s]:
            trace = self._traces[trace_id]
            idle_s = trace.seen_s + self._waits.idle_s
            if trace.rooted_s is None and now_s < idle_s and trace.is_busy():
                self._due[trace_id] = idle_s
            else:
                yield self._taken(trace_id)
        while self.span_count > self._waits.max_spans or self.size_bytes > self._waits.max_bytes:
            yield self._taken(min(self._traces, key=lambda trace_id: self._traces[trace_id].seen_s))

    def all(self) -> Iterator[Trace]:
        """Give away every trace: nothing more will come."""
        for trace_id in list(self._traces):
            yield self._taken(trace_id)

    def _taken(self, trace_id: str) -> Trace:
        trace = self._traces.pop(trace_id)
        del self._due[trace_id]
        self._closed[trace_id] = None
        if len(self._closed) > _CLOSED:
            self._closed.popitem(last=False)
        self.span_count -= len(trace.spans)
        self.size_bytes -= trace.size_bytes
        return trace

    @property
    def numbers(self) -> set[int]:
        """The segments that spans of open traces stand in."""
        return set().union(*(trace.numbers for trace in self._traces.values()))

    def processes(self) -> set[Process]:
        """The processes of open traces, each by its first span."""
        return {process_of(next(iter(trace.spans.values())).raw.resource) for trace in self._traces.values()}
