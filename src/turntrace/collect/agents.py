"""What coding agents send, by process: spans in many traces, log events, counters.

Such an agent may make a trace of each call, and say in events what its spans leave out; so the traces of its
process are closed together, with the events of their time.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from turntrace.collect.gathering import Trace
from turntrace.core.agent_dialects import AGENT_ROWS, CODING_AGENTS
from turntrace.core.dialect_model import Role
from turntrace.core.dialects import classify
from turntrace.core.model import RawEvent, RawPoint
from turntrace.core.root_calls import Process, process_of
from turntrace.files.raw_spans import RawSpans

__all__ = ["AgentWaits", "Batch", "CodingAgents"]

_SCOPES: Final = tuple({scope for row in AGENT_ROWS for scope in row.scopes})
_ROOTS: Final = frozenset({Role.TURN, Role.AGENT})
_SLACK_NS: Final = 2_000_000_000
"""How long after its last span an event of a turn may be written."""

_MAX_HELD: Final = 100_000
_MAX_PROCESSES: Final = 1_000
_MAX_CLOSED: Final = 64

_Window = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWaits:
    """How long agents are waited for, in seconds.

    ``events_s`` after a turn's root, since logs are sent less often than spans; ``idle_s`` after the last that
    came of a process, for what is below no root.
    """

    events_s: float = 10.0
    idle_s: float = 300.0


class Batch(NamedTuple):
    """What makes turns together."""

    traces: list[Trace]
    events: list[RawEvent]
    points: list[RawPoint]


@dataclass(slots=True)
class _Held:
    """What came of one process. ``closed`` are the times of its turns that are over, newest last."""

    traces: list[tuple[float, bool, Trace]] = field(default_factory=list)
    events: list[RawEvent] = field(default_factory=list)
    points: list[RawPoint] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)
    closed: deque[_Window] = field(default_factory=lambda: deque(maxlen=_MAX_CLOSED))
    seen_s: float = 0.0

    @property
    def size(self) -> int:
        """Spans, events and points that are held."""
        return sum(len(trace.spans) for _, _, trace in self.traces) + len(self.events) + len(self.points)


class CodingAgents:
    """The processes of coding agents. Not safe from several threads."""

    __slots__ = ("_held", "_waits", "late_events")

    def __init__(self, waits: AgentWaits) -> None:
        self._waits = waits
        self._held: dict[Process, _Held] = {}
        self.late_events = 0

    def takes(self, trace: Trace, now_s: float) -> bool:
        """Take a trace of a coding agent; False for any other."""
        process = self._process(trace)
        if process is None:
            return False
        held = self._of(process, now_s)
        held.traces.append((now_s, _is_rooted(trace), trace))
        return True

    def hear(self, told: RawSpans, number: int, now_s: float) -> None:
        """Take the events and points of a request that stands in the segment ``number``.

        An event of a turn that is closed is counted: without its span it would be told twice.
        """
        for event in told.events:
            held = self._of(process_of(event.resource), now_s)
            if _is_inside((event.at_ns, event.at_ns), held.closed):
                self.late_events += 1
            else:
                held.events.append(event)
                held.numbers.add(number)
        for point in told.points:
            held = self._of(process_of(point.resource), now_s)
            held.points.append(point)
            held.numbers.add(number)

    def due(
        self, now_s: float, *, is_last: bool, open_processes: Callable[[], Collection[Process]] = tuple
    ) -> Iterator[Batch]:
        """Give away what is over: turns whose root came, and all of a process that is quiet.

        ``open_processes`` tells which have traces that are still waited for: those are not quiet.
        """
        for process, held in list(self._held.items()):
            is_quiet = held.seen_s + self._waits.idle_s <= now_s and process not in open_processes()
            if is_last or is_quiet or held.size > _MAX_HELD or len(self._held) > _MAX_PROCESSES:
                del self._held[process]
                if held.size:
                    yield Batch([trace for _, _, trace in held.traces], held.events, held.points)
            elif any(
                is_rooted and since_s + self._waits.events_s <= now_s for since_s, is_rooted, _ in held.traces
            ):
                yield self._rooted(held, now_s)

    def _rooted(self, held: _Held, now_s: float) -> Batch:
        """The turns of a process whose roots came, with the traces and events that lie in their time."""
        due_s = now_s - self._waits.events_s
        roots = [trace for since_s, is_rooted, trace in held.traces if is_rooted and since_s <= due_s]
        windows = [_window(trace) for trace in roots]
        around = [(start_ns, end_ns + _SLACK_NS) for start_ns, end_ns in windows]
        held.closed.extend(around)
        traces: list[Trace] = []
        left: list[tuple[float, bool, Trace]] = []
        for one in held.traces:
            since_s, is_rooted, trace = one
            if since_s <= due_s if is_rooted else _is_inside(_window(trace), windows):
                traces.append(trace)
            else:
                left.append(one)
        events = [one for one in held.events if _is_inside((one.at_ns, one.at_ns), around)]
        held.events = [one for one in held.events if not _is_inside((one.at_ns, one.at_ns), around)]
        held.traces = left
        return Batch(traces, events, [])

    def _process(self, trace: Trace) -> Process | None:
        """The process of a coding agent that a span of the trace is of."""
        for arrived in trace.spans.values():
            raw = arrived.raw
            process = process_of(raw.resource)
            if process in self._held:
                return process
            if raw.scope.startswith(_SCOPES):
                verdict = classify(raw.scope, raw.name, raw.kind, raw.attributes)
                if verdict.dialect in CODING_AGENTS or verdict.dialect == "plumbing":
                    return process
        return None

    def _of(self, process: Process, now_s: float) -> _Held:
        held = self._held.setdefault(process, _Held())
        held.seen_s = now_s
        return held

    @property
    def numbers(self) -> set[int]:
        """The segments that what is held stands in."""
        found: set[int] = set()
        for held in self._held.values():
            found |= held.numbers if held.events or held.points else set()
            found = found.union(*(trace.numbers for _, _, trace in held.traces))
        return found


def _is_rooted(trace: Trace) -> bool:
    return any(classify(raw.scope, raw.name, raw.kind, raw.attributes).role in _ROOTS for raw in trace.raws())


def _window(trace: Trace) -> _Window:
    raws = trace.raws()
    return min(raw.start_ns for raw in raws), max(raw.end_ns for raw in raws)


def _is_inside(part: _Window, windows: Iterable[_Window]) -> bool:
    return any(start_ns <= part[0] and part[1] <= end_ns for start_ns, end_ns in windows)
