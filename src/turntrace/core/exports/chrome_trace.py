"""Turns as Chrome's JSON trace events, which Perfetto and chrome://tracing open.

Source: "Trace Event Format" (Google, public document): complete events ``X``, instants ``i``, metadata ``M``;
``ts`` and ``dur`` in microseconds, here with three decimals, so that no nanosecond is lost.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from turntrace.core.exports.lanes import Placed, label, laid_out
from turntrace.core.model import Turn, Usage
from turntrace.core.results import Attribution
from turntrace.core.usage import TOKEN_FIELDS

__all__ = ["chrome_events", "origin_ns"]

_NS_PER_US: Final = 1000
_PATH_THREAD: Final = 1_000_000
"""The thread of the critical path, behind every lane."""

Json = dict[str, Any]


def origin_ns(turns: Iterable[tuple[Turn, Attribution]]) -> int:
    """The earliest moment of the turns in ns since the epoch: time 0 of the document; 0 without any."""
    starts = [
        start
        for turn, attribution in turns
        for start in (turn.started_ns, *(times.span.start_ns for times in attribution.spans))
        if start is not None
    ]
    return min(starts, default=0)


def chrome_events(turn: Turn, attribution: Attribution, process: int, origin: int) -> Iterator[Json]:
    """The events of one turn: a process of its own, a thread a lane, and a thread for the critical path.

    Args:
        turn: what is shown.
        attribution: its times; each bar's exclusive, wall share and critical time are arguments of its event.
        process: the number of its process, from 1.
        origin: time 0 in ns since the epoch.
    """
    placed = laid_out(turn, attribution)
    yield _named("process_name", process, 0, turn.agent or turn.root_name or turn.run_id)
    for lane in sorted({bar.lane for bar in placed}):
        yield _named("thread_name", process, lane + 1, "turn" if lane == 0 else f"beside it {lane}")
    usage = {one.span_id: one for one in turn.usage}
    for bar in placed:
        yield (
            _bar(bar, turn, attribution, usage)
            | _place(bar.start_ns, bar.end_ns, origin, process)
            | {"tid": bar.lane + 1}
        )
    yield from _path(attribution, process, origin)
    for mark in turn.marks:
        yield {
            "name": mark.name,
            "cat": "mark",
            "ph": "i",
            "s": "p",
            "ts": _us(mark.at_ns - origin),
            "pid": process,
            "tid": 1,
        }


def _us(ns: int) -> float:
    return ns / _NS_PER_US


def _named(what: str, process: int, thread: int, name: str) -> Json:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _place(start_ns: int, end_ns: int, origin: int, process: int) -> Json:
    return {"ph": "X", "ts": _us(start_ns - origin), "dur": _us(end_ns - start_ns), "pid": process}


def _bar(bar: Placed, turn: Turn, attribution: Attribution, usage: dict[str, Usage]) -> Json:
    times = bar.times
    if times is None:
        arguments: Json = {
            "run_id": turn.run_id,
            "status": turn.status,
            "exclusive_ns": attribution.root_exclusive_ns,
            "critical_ns": attribution.root_critical_ns,
        }
        return {"name": turn.agent or turn.root_name or "turn", "cat": "turn", "args": _known(arguments)}
    arguments = {
        "span_id": times.span.span_id,
        "exclusive_ns": times.exclusive_ns,
        "wall_share_ns": times.wall_share_ns,
        "critical_ns": times.critical_ns,
        "round": times.span.round,
        "model": times.span.model,
        "outcome": times.span.outcome,
    }
    used = usage.get(times.span.span_id)
    if used is not None:
        arguments |= {name: getattr(used, name) for name in TOKEN_FIELDS}
    return {"name": label(times), "cat": times.phase or "structure", "args": _known(arguments)}


def _known(arguments: Json) -> Json:
    return {name: value for name, value in arguments.items() if value is not None}


def _path(attribution: Attribution, process: int, origin: int) -> Iterator[Json]:
    """What the turn waited for, from its start to its end."""
    names = {times.span.span_id: label(times) for times in attribution.spans}
    if attribution.critical_path:
        yield _named("thread_name", process, _PATH_THREAD, "critical path")
    for section in reversed(attribution.critical_path):
        name = names.get(section.span_id or "", "the turn itself")
        yield (
            {"name": name, "cat": "critical_path"}
            | _place(section.start_ns, section.end_ns, origin, process)
            | {"tid": _PATH_THREAD}
        )
