"""Whether tools ran at the same time: a verdict from the order of events at a barrier, never from a duration.

Each handler says that it started, waits at a barrier until all have, and then finishes. Where the barrier
gives up first, somebody is missing: only the order of what follows tells a serial executor from a late one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

__all__ = ["BarrierEvent", "Overlap", "OverlapVerdict", "overlap_of"]


class OverlapVerdict(StrEnum):
    """What the order of events proves."""

    PROVEN = "proven"
    SERIAL = "serial"
    INCONCLUSIVE = "inconclusive"
    NOT_ATTEMPTED = "not_attempted"


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierEvent:
    """``t_ns`` is told for people; no verdict reads it."""

    handler: str
    kind: Literal["start", "timeout", "finish"]
    t_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """The record of one probe. ``wait_ns`` is the longest any handler was held."""

    required: bool
    expected_handlers: int
    started: int
    completed: int
    all_started_before_first_completed: bool
    max_concurrency: int
    timed_out: bool
    wait_ns: int
    verdict: OverlapVerdict
    events: tuple[BarrierEvent, ...]


def overlap_of(events: Sequence[BarrierEvent], *, expected: int, required: bool = True) -> Overlap:
    """What ``events``, in the order they happened, say of ``expected`` handlers.

    >>> started = [BarrierEvent(handler=name, kind="start") for name in "ab"]
    >>> overlap_of([*started, BarrierEvent(handler="a", kind="finish")], expected=2).verdict.value
    'proven'
    """
    kinds = [event.kind for event in events]
    first_finish = kinds.index("finish") if "finish" in kinds else len(kinds)
    together = kinds[:first_finish].count("start")
    running = most = 0
    for kind in kinds:
        running += {"start": 1, "finish": -1, "timeout": 0}[kind]
        most = max(most, running)
    return Overlap(
        required=required,
        expected_handlers=expected,
        started=kinds.count("start"),
        completed=kinds.count("finish"),
        all_started_before_first_completed=together >= expected,
        max_concurrency=most,
        timed_out="timeout" in kinds,
        wait_ns=_longest_wait_ns(events),
        verdict=_verdict(kinds, together, expected),
        events=tuple(events),
    )


def _verdict(kinds: Sequence[str], together: int, expected: int) -> OverlapVerdict:
    if kinds.count("start") < expected:
        return OverlapVerdict.NOT_ATTEMPTED
    if together < expected:
        return OverlapVerdict.SERIAL
    return OverlapVerdict.INCONCLUSIVE if "timeout" in kinds else OverlapVerdict.PROVEN


def _longest_wait_ns(events: Sequence[BarrierEvent]) -> int:
    """From a start to the moment the barrier let go: the last start, or its giving up."""
    starts = [event.t_ns for event in events if event.kind == "start"]
    gave_up = [event.t_ns for event in events if event.kind == "timeout"]
    if not starts:
        return 0
    until = gave_up[0] if gave_up else max(starts)
    return max(until - starts[0], 0)
