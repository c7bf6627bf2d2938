"""Turns as folded stacks, one a line with its weight: what flamegraph.pl, inferno and speedscope read.

The weight of a stack is the busy time of the spans that it stands for, in integer **nanoseconds**: their own
length without the phases inside them. The weights of a turn add up to its busy time.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from turntrace.core.exclusive import exclusive_by_id
from turntrace.core.exports.lanes import label
from turntrace.core.model import Turn
from turntrace.core.results import Attribution, SpanTimes

__all__ = ["MAX_FRAMES", "folded"]

MAX_FRAMES: Final = 200
"""A deeper stack keeps its outermost and its innermost frames; a line for each of 100,000 levels is of no use."""


def folded(turn: Turn, attribution: Attribution) -> Iterator[tuple[str, int]]:
    """Stacks, frames joined by semicolons, with their weights in ns, the heaviest first; none is empty."""
    by_id = {times.span.span_id: times for times in attribution.spans}
    root = _frame(turn.agent or turn.root_name or turn.run_id)
    weights: dict[str, int] = {}
    for times, busy_ns in _busy(turn, attribution):
        if busy_ns:
            stack = ";".join((root, *_frames(times, by_id)))
            weights[stack] = weights.get(stack, 0) + busy_ns
    yield from sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))


def _busy(turn: Turn, attribution: Attribution) -> Iterator[tuple[SpanTimes, int]]:
    """Each phase span with its busy time, as attribution defines it."""
    spans = [times for times in attribution.spans if times.phase is not None]
    low, high = turn.started_ns, turn.completed_ns
    starts, ends = [], []
    for times in spans:
        start, end = times.span.start_ns, max(times.span.start_ns, times.span.end_ns)
        if low is not None and high is not None:
            start, end = max(start, low), min(end, max(low, high))
        starts.append(start)
        ends.append(end)
    own = exclusive_by_id(
        [times.span.span_id for times in spans], [times.phase_parent_id for times in spans], starts, ends
    )
    return zip(spans, own, strict=True)


def _frames(times: SpanTimes, by_id: Mapping[str, SpanTimes]) -> list[str]:
    """From the outermost span to ``times``."""
    frames: list[str] = []
    at: SpanTimes | None = times
    while at is not None and len(frames) < MAX_FRAMES:
        frames.append(_frame(label(at)))
        at = by_id.get(at.parent_id or "")
    if at is not None:
        frames.append("...")
    return frames[::-1]


def _frame(name: str) -> str:
    """A frame's name without what ends a frame, a stack or a line."""
    readable = "".join(character if character.isprintable() else " " for character in name)
    return readable.replace(";", ",").strip() or "unnamed"
