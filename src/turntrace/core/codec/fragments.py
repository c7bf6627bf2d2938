"""Fragments: what other processes journaled of a turn, joined to it."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from turntrace.core.model import Span, Turn, Warn

__all__ = ["merge_fragments"]

_LOOK_BACK: Final = 64
"""How many spans that started earlier are looked at: a bound on the work."""


def merge_fragments(turn: Turn, fragments: Iterable[Turn]) -> Turn:
    """The turn with what other processes journaled of it: spans whose ancestors reach the turn.

    A span whose parent nobody knows, of the turn's trace and within its window, hangs on the innermost span of
    the turn that contains it: a protocol may carry the trace to a process and not the span that called it.
    A span that was still open when its turn's block was written ends where its fragment says. Usage and
    marks come along with their spans. Counters are added when every span of a fragment belongs
    to the turn; else nobody knows whose they are, and a warning says so.
    """
    parts = _adopted(turn, [part for part in fragments if part.trace_id == turn.trace_id])
    joined = _joined_ids(turn, parts)
    spans, usage, marks, warnings = (
        _ended(turn, parts),
        list(turn.usage),
        list(turn.marks),
        list(turn.warnings),
    )
    events = list(turn.events)
    counters = Counter(turn.counters)
    for part in parts:
        found = [span for span in part.spans if span.span_id in joined]
        spans += found
        usage += (item for item in part.usage if item.span_id in joined)
        marks += (item for item in part.marks if item.span_id in joined)
        warnings += part.warnings if found else ()
        events += part.events if found else ()
        if found and len(found) == len(part.spans):
            counters.update(part.counters)
        elif found and part.counters:
            warnings.append(
                Warn(code="fragment_counters", message="counts of a process that served other turns too")
            )
    return replace(
        turn,
        spans=tuple(spans),
        usage=tuple(usage),
        marks=tuple(marks),
        warnings=tuple(warnings),
        events=tuple(events),
        counters=dict(counters),
    )


def _adopted(turn: Turn, parts: Sequence[Turn]) -> list[Turn]:
    """``parts``, where time tells what the parent ids do not."""
    known = {turn.span_id, *(span.span_id for part in (turn, *parts) for span in part.spans)}
    around = _Around(turn)
    return [
        replace(
            part,
            spans=tuple(
                span if span.parent_id is None or span.parent_id in known else around.placed(span)
                for span in part.spans
            ),
        )
        for part in parts
    ]


class _Around:
    """The spans of a turn by start, to find the innermost one around another."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._spans = sorted(turn.spans, key=lambda span: (span.start_ns, -span.end_ns))
        self._starts = [span.start_ns for span in self._spans]

    def placed(self, span: Span) -> Span:
        """The span below what contains it; as it is when it reaches out of the turn."""
        turn = self._turn
        if turn.started_ns is None or turn.completed_ns is None or turn.span_id is None:
            return span
        if not turn.started_ns <= span.start_ns <= span.end_ns <= turn.completed_ns:
            return span
        after = bisect_right(self._starts, span.start_ns)
        near = reversed(self._spans[max(0, after - _LOOK_BACK) : after])
        parent = next((one.span_id for one in near if one.end_ns >= span.end_ns), turn.span_id)
        return replace(span, parent_id=parent, parent_source="inferred")


def _ended(turn: Turn, parts: Iterable[Turn]) -> list[Span]:
    """The spans of ``turn``; for an open one the fragment's, when it has ended since."""
    ended = {span.span_id: span for part in parts for span in part.spans if span.outcome != "incomplete"}
    return [ended.get(span.span_id, span) if span.outcome == "incomplete" else span for span in turn.spans]


def _joined_ids(turn: Turn, parts: Iterable[Turn]) -> set[str]:
    """The ids of spans in ``parts`` that hang on the turn's root or spans, or beside them, and are not among them."""
    own = {turn.span_id or "", *(span.span_id for span in turn.spans)}
    if turn.span_id is None:  # what hangs where the turn's own outermost spans hang is beside them
        own |= {span.parent_id for span in turn.spans if span.parent_id is not None}
    children: dict[str, list[str]] = {}
    for part in parts:
        for span in part.spans:
            if span.parent_id is not None and span.span_id not in own:
                children.setdefault(span.parent_id, []).append(span.span_id)
    waiting = [child for parent in own for child in children.pop(parent, ())]
    joined: set[str] = set()
    while waiting:
        span_id = waiting.pop()
        joined.add(span_id)
        waiting += children.pop(span_id, ())
    return joined
