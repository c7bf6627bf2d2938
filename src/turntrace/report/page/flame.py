"""The flame of one or many turns: wall shares added up along the path of phases above a span.

A frame is as wide as the wall shares of its spans and of those below it, so the frames of a level never
take more than the wall, and with the time that no phase covers they take exactly it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from turntrace.core.phase_colors import UNATTRIBUTED
from turntrace.core.results import SpanTimes
from turntrace.report.case import Case, name_of
from turntrace.report.strings import plain

__all__ = ["DEEPEST", "flame"]

DEEPEST: Final = 48
"""Levels that are told apart; what lies deeper counts for the frame above it."""


@dataclass(slots=True)
class _Frame:
    parent: int | None
    name: str
    phase: str
    depth: int
    own_ns: int = 0
    count: int = 0
    below: dict[tuple[str, str], int] = field(default_factory=dict)


def flame(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """The frames, parents first; frame 0 is the whole. ``own_ns`` adds up to the walls of the cases.

    Turns without an end have no shares and are left out.
    """
    frames = [_Frame(parent=None, name="turn" if len(cases) == 1 else "turns", phase="", depth=0)]
    ended = [case for case in cases if case.attribution.wall_ns is not None]
    frames[0].count = len(ended)
    for case in ended:
        _add(frames, case)
    missing_ns = sum(case.attribution.unattributed_ns or 0 for case in ended)
    if missing_ns:
        at = _below(frames, 0, (UNATTRIBUTED, UNATTRIBUTED))
        frames[at].own_ns += missing_ns
    return [
        {
            "parent": frame.parent,
            "name": frame.name,
            "phase": frame.phase,
            "own_ns": frame.own_ns,
            "count": frame.count,
        }
        for frame in frames
    ]


def _add(frames: list[_Frame], case: Case) -> None:
    placed: dict[str, int] = {}
    for times in _parents_first(case):
        at = placed.get(times.phase_parent_id or "", 0)
        if frames[at].depth < DEEPEST:
            at = _below(frames, at, (plain(name_of(times)), times.phase or ""))
        placed[times.span.span_id] = at
        frames[at].own_ns += times.wall_share_ns or 0
        frames[at].count += 1


def _below(frames: list[_Frame], at: int, key: tuple[str, str]) -> int:
    """The frame called ``key`` below the frame ``at``, made when it is not there."""
    found = frames[at].below.get(key)
    if found is None:
        found = frames[at].below[key] = len(frames)
        name, phase = key
        frames.append(_Frame(parent=at, name=name, phase=phase, depth=frames[at].depth + 1))
    return found


def _parents_first(case: Case) -> Iterator[SpanTimes]:
    """The phase spans, each after the phase span it hangs on; no recursion, however deep they lie."""
    told: set[str] = set()
    for times in _phase_spans(case.attribution.spans):
        chain: list[SpanTimes] = []
        at: SpanTimes | None = times
        while at is not None and at.span.span_id not in told:
            told.add(at.span.span_id)
            chain.append(at)
            at = case.by_id.get(at.phase_parent_id or "")
        yield from reversed(chain)


def _phase_spans(spans: Iterable[SpanTimes]) -> Iterator[SpanTimes]:
    return (times for times in spans if times.phase is not None)
