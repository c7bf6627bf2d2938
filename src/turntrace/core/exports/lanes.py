"""Lanes: spans that run side by side stand on lines of their own, those on one line nest.

Viewers of timelines draw what shares a line as a stack of calls, so what shares a line must nest. A span
stands on its parent's lane where it lies in the parent and nothing else runs there; else on the first lane
that is free when it starts.
"""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from turntrace.core.model import Turn
from turntrace.core.results import Attribution, SpanTimes

__all__ = ["Placed", "label", "laid_out"]


class Placed(NamedTuple):
    """One bar: the span (None for the turn itself), its lane from 0, its times in ns since the epoch."""

    times: SpanTimes | None
    lane: int
    start_ns: int
    end_ns: int


class _Lanes:
    """Lanes while spans come in by start; each is a stack of what is open on it."""

    def __init__(self) -> None:
        self._stacks: list[list[tuple[str | None, int]]] = []
        self._free: list[int] = []
        self._taken: list[tuple[int, int]] = []
        self._lane_of: dict[str | None, int] = {}

    def place(self, span_id: str | None, parent_id: str | None, start_ns: int, end_ns: int) -> int:
        """The lane of a span that starts no earlier than any before it."""
        while self._taken and self._taken[0][0] <= start_ns:
            heappush(self._free, heappop(self._taken)[1])
        lane = self._beside_parent(parent_id, start_ns, end_ns)
        if lane is None:
            lane = self._new(end_ns)
        self._stacks[lane].append((span_id, end_ns))
        self._lane_of[span_id] = lane
        return lane

    def _beside_parent(self, parent_id: str | None, start_ns: int, end_ns: int) -> int | None:
        lane = self._lane_of.get(parent_id)
        if lane is None:
            return None
        stack = self._stacks[lane]
        while stack and stack[-1][0] != parent_id and stack[-1][1] <= start_ns:
            stack.pop()
        return lane if stack and stack[-1][0] == parent_id and end_ns <= stack[-1][1] else None

    def _new(self, end_ns: int) -> int:
        if self._free:
            lane = heappop(self._free)
            self._stacks[lane].clear()
        else:
            lane = len(self._stacks)
            self._stacks.append([])
        heappush(self._taken, (end_ns, lane))
        return lane


def laid_out(turn: Turn, attribution: Attribution) -> list[Placed]:
    """The turn and its spans by start, each on a lane; the turn itself, where it has an end, on lane 0.

    On one lane any two either follow one another or lie one in the other, the outer one first.
    """
    spans = attribution.spans
    depths = _depths({times.span.span_id: times.parent_id for times in spans})
    bars = [
        (times.span.start_ns, -max(times.span.start_ns, times.span.end_ns), depths[times.span.span_id], at)
        for at, times in enumerate(spans)
    ]
    lanes = _Lanes()
    root_id = turn.span_id
    placed: list[Placed] = []
    root = _window(turn)
    for start_ns, negative_end_ns, _, at in sorted([*bars, *root]):
        times = spans[at] if at >= 0 else None
        span_id = root_id if times is None else times.span.span_id
        parent_id = None if times is None else times.parent_id
        if times is not None and parent_id is None:
            parent_id = root_id
        lane = lanes.place(span_id, parent_id if times is not None else "", start_ns, -negative_end_ns)
        placed.append(Placed(times, lane, start_ns, -negative_end_ns))
    return _turn_first(placed)


def _window(turn: Turn) -> list[tuple[int, int, int, int]]:
    """The turn itself as a bar before all others that start with it."""
    if turn.started_ns is None or turn.completed_ns is None:
        return []
    return [(turn.started_ns, -max(turn.started_ns, turn.completed_ns), -1, -1)]


def _turn_first(placed: list[Placed]) -> list[Placed]:
    """The lanes renumbered so that the turn's is the first."""
    own = next((bar.lane for bar in placed if bar.times is None), 0)
    numbers = {own: 0, 0: own}
    return [bar._replace(lane=numbers.get(bar.lane, bar.lane)) for bar in placed]


def _depths(parents: Mapping[str, str | None]) -> dict[str, int]:
    """How deep each span lies below the root; each link is followed once. Parents form no ring."""
    depths: dict[str, int] = {}
    for span_id in parents:
        chain: list[str] = []
        at: str | None = span_id
        while at is not None and at in parents and at not in depths:
            chain.append(at)
            at = parents[at]
        depth = depths.get(at or "", -1)
        for one in reversed(chain):
            depth += 1
            depths[one] = depth
    return depths


def label(times: SpanTimes) -> str:
    """What a bar is called: its tool, its phase, or its own name when it is structure or other."""
    if times.phase == "tool_execution" and times.span.tool:
        return times.span.tool
    return times.span.name if times.phase in {None, "other"} else times.phase or ""


def stacks(placed: Sequence[Placed]) -> dict[int, list[Placed]]:
    """The bars of each lane in order, lanes in order."""
    found: dict[int, list[Placed]] = {}
    for bar in placed:
        found.setdefault(bar.lane, []).append(bar)
    return dict(sorted(found.items()))
