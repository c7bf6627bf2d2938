"""Traces that are over become turns, by the code that reads files of other tools."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from turntrace.collect.agents import AgentWaits, Batch, CodingAgents
from turntrace.collect.gathering import Trace
from turntrace.core.dialects import classify
from turntrace.core.model import RawSpan, Turn
from turntrace.core.root_calls import Process, process_of
from turntrace.core.turn_roots import Rule
from turntrace.core.turns import assemble

__all__ = ["Closing"]

_MAX_STRAYS: Final = 10_000
_STRAY_S: Final = 60.0
_TOOL: Final = "tool_execution"
_WAITS: Final = AgentWaits()

_Stray = tuple[float, Process, Trace]
"""When a stray is read alone at the latest (monotonic seconds), its process, its spans."""


class Closing:
    """Makes turns of traces. Tools that a thread made traces of their own wait for the turn around them."""

    __slots__ = ("_rule", "_strays", "agents", "unreadable")

    def __init__(self, rule: Rule | None = None, waits: AgentWaits = _WAITS) -> None:
        self._rule = rule
        self.agents = CodingAgents(waits)
        self._strays: deque[_Stray] = deque()
        self.unreadable = 0

    def turns(
        self,
        traces: Iterable[Trace],
        now_s: float,
        *,
        is_last: bool,
        open_processes: Callable[[], Collection[Process]] = tuple,
    ) -> tuple[list[Turn], list[Trace]]:
        """The turns of ``traces``, each followed by those inside it, and the traces that were read for them.

        ``is_last`` says that nothing waits any more, ``open_processes`` which processes are waited for.
        """
        whole: list[Trace] = []
        for trace in traces:
            if self.agents.takes(trace, now_s):
                continue
            process = _stray_process(trace)
            if process is None or is_last:
                whole.append(trace)
            else:
                self._strays.append((now_s + _STRAY_S, process, trace))
        whole += self._joining(whole, now_s, is_last=is_last)
        spans = [raw for trace in whole for raw in trace.raws()]
        turns = self._assembled(spans) if spans else []
        for batch in self.agents.due(now_s, is_last=is_last, open_processes=open_processes):
            turns += self._of_agent(batch)
            whole += batch.traces
        return turns, whole

    def _of_agent(self, batch: Batch) -> list[Turn]:
        spans = [raw for trace in batch.traces for raw in trace.raws()]
        try:
            return assemble(spans, rule=self._rule, events=batch.events, points=batch.points)
        except Exception:  # noqa: BLE001 - what events say of it must not cost a turn; counted
            self.unreadable += len(batch.events) + len(batch.points)
            return self._assembled(spans)

    def _joining(self, whole: list[Trace], now_s: float, *, is_last: bool) -> list[Trace]:
        """The strays that lie in the time of one of ``whole``, and those that have waited long enough."""
        if not self._strays:
            return []
        windows = _windows(whole)
        joining: list[Trace] = []
        waiting: deque[_Stray] = deque()
        for stray in self._strays:
            due_s, process, trace = stray
            is_due = is_last or due_s <= now_s or len(self._strays) > _MAX_STRAYS
            is_inside = any(_lies_in(trace, window) for window in windows.get(process, ()))
            if is_due or is_inside:
                joining.append(trace)
            else:
                waiting.append(stray)
        self._strays = waiting
        return joining

    def _assembled(self, spans: list[RawSpan]) -> list[Turn]:
        try:
            return assemble(spans, rule=self._rule)
        except Exception:  # noqa: BLE001 - one trace that cannot be read must not cost the others
            return [turn for group in _by_trace(spans) for turn in self._alone(group)]

    def _alone(self, spans: list[RawSpan]) -> list[Turn]:
        try:
            return assemble(spans, rule=self._rule)
        except Exception:  # noqa: BLE001 - counted; the rest of what came is read
            self.unreadable += len(spans)
            return []

    @property
    def numbers(self) -> set[int]:
        """The segments that what waits stands in."""
        return self.agents.numbers.union(*(trace.numbers for _, _, trace in self._strays))


def _stray_process(trace: Trace) -> Process | None:
    """The process of a trace that is nothing but tools without a parent; None for any other."""
    tops = [raw for raw in trace.raws() if raw.parent_id is None]
    if not tops or any(
        raw.parent_id is not None and raw.parent_id not in trace.spans for raw in trace.raws()
    ):
        return None
    is_stray = all(classify(raw.scope, raw.name, raw.kind, raw.attributes).phase == _TOOL for raw in tops)
    return process_of(tops[0].resource) if is_stray else None


def _windows(traces: Iterable[Trace]) -> dict[Process, list[tuple[int, int]]]:
    found: dict[Process, list[tuple[int, int]]] = {}
    for trace in traces:
        raws = trace.raws()
        window = min(raw.start_ns for raw in raws), max(raw.end_ns for raw in raws)
        found.setdefault(process_of(raws[0].resource), []).append(window)
    return found


def _lies_in(trace: Trace, window: tuple[int, int]) -> bool:
    return all(window[0] <= raw.start_ns and raw.end_ns <= window[1] for raw in trace.raws())


def _by_trace(spans: Iterable[RawSpan]) -> Iterator[list[RawSpan]]:
    groups: dict[str, list[RawSpan]] = {}
    for raw in spans:
        groups.setdefault(raw.trace_id, []).append(raw)
    yield from groups.values()
