"""Turns as a file of speedscope: an evented profile a lane, then what the report says as two more.

Source: speedscope's file-format-spec.ts and the JSON Schema in its package (MIT licence). Unit: nanoseconds.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from turntrace.core.exports.lanes import Placed, label, laid_out, stacks
from turntrace.core.model import Turn
from turntrace.core.results import Attribution

__all__ = ["speedscope"]

_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"

Json = dict[str, Any]


class _Frames:
    """The frames that profiles share, each name once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def listed(self) -> list[Json]:
        """As the file wants them."""
        return [{"name": name} for name in self._numbers]


def speedscope(turns: Iterable[tuple[Turn, Attribution]], name: str) -> Json:
    """The document. Of each turn: a profile a lane, its wall shares (which add up to the wall), its critical path."""
    frames = _Frames()
    profiles = [profile for turn, attribution in turns for profile in _profiles(turn, attribution, frames)]
    return {
        "$schema": _SCHEMA,
        "name": name,
        "exporter": "turntrace",
        "activeProfileIndex": 0,
        "shared": {"frames": frames.listed()},
        "profiles": profiles,
    }


def _profiles(turn: Turn, attribution: Attribution, frames: _Frames) -> Iterator[Json]:
    title = turn.agent or turn.root_name or turn.run_id
    placed = laid_out(turn, attribution)
    origin = (
        turn.started_ns if turn.started_ns is not None else min((bar.start_ns for bar in placed), default=0)
    )
    for lane, bars in stacks(placed).items():
        yield _evented(
            f"{title}: {f'beside it {lane}' if lane else 'the turn'}", _calls(bars, origin, frames, title)
        )
    if attribution.wall_ns is not None:
        yield _shares(f"{title}: wall shares", attribution, frames, title)
        yield _evented(f"{title}: critical path", _path(attribution, origin, frames, title))


Event = tuple[str, int, int]
"""Type, frame, time in ns."""


def _evented(name: str, events: Sequence[Event]) -> Json:
    return {
        "type": "evented",
        "name": name,
        "unit": "nanoseconds",
        "startValue": events[0][2],
        "endValue": events[-1][2],
        "events": [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events],
    }


def _calls(bars: Sequence[Placed], origin: int, frames: _Frames, title: str) -> list[Event]:
    """Open and close events of bars that nest, in order of time."""
    events: list[Event] = []
    opened: list[tuple[int, int]] = []
    for bar in bars:
        while opened and opened[-1][0] <= bar.start_ns and not _lies_in(bar, opened[-1][0]):
            end, frame = opened.pop()
            events.append(("C", frame, end - origin))
        frame = frames[title if bar.times is None else label(bar.times)]
        events.append(("O", frame, bar.start_ns - origin))
        opened.append((bar.end_ns, frame))
    events.extend(("C", frame, end - origin) for end, frame in reversed(opened))
    return events


def _lies_in(bar: Placed, end_ns: int) -> bool:
    """Whether an empty bar stands exactly at the end of the one that is open."""
    return bar.start_ns == bar.end_ns == end_ns


def _path(attribution: Attribution, origin: int, frames: _Frames, title: str) -> list[Event]:
    """The critical path below the turn: its own sections are the turn's own time."""
    names = {times.span.span_id: label(times) for times in attribution.spans}
    sections = list(reversed(attribution.critical_path))
    whole = frames[title]
    first = sections[0].start_ns if sections else origin
    last = sections[-1].end_ns if sections else origin
    events: list[Event] = [("O", whole, first - origin)]
    for section in sections:
        name = names.get(section.span_id or "")
        if name is not None:
            events.append(("O", frames[name], section.start_ns - origin))
            events.append(("C", frames[name], section.end_ns - origin))
    return [*events, ("C", whole, last - origin)]


def _shares(name: str, attribution: Attribution, frames: _Frames, title: str) -> Json:
    """The report's table: phases, and tools or models inside them; the turn's own weight is unattributed."""
    root = frames[title]
    weights: dict[tuple[int, ...], int] = {}
    for times in attribution.spans:
        if times.wall_share_ns and times.phase is not None:
            part = times.span.tool if times.phase == "tool_execution" else None
            stack = (root, frames[times.phase], *((frames[part],) if part else ()))
            weights[stack] = weights.get(stack, 0) + times.wall_share_ns
    weights[root,] = attribution.unattributed_ns or 0
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": attribution.wall_ns,
        "samples": [list(stack) for stack in weights],
        "weights": list(weights.values()),
    }
