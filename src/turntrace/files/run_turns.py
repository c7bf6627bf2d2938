"""The turns of a run: what its processes sent, joined with what they recorded themselves.

A run that receives telemetry has a journal like any turn, with a header only, and a folder of requests beside
it. A span that stands in the trace already is not told again, and a fragment becomes part of the turn that
its parents, else its times, lie in.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from turntrace.core.codec.fragments import merge_fragments
from turntrace.core.codec.journal import Journal
from turntrace.core.counted import counted
from turntrace.core.model import Span, Turn
from turntrace.files.out import requests_folder
from turntrace.files.read_result import ReadResult
from turntrace.files.together import read_together

__all__ = ["run_turns", "spans_of"]

_COUNTED: Final = frozenset({"model_requests", "tool_calls", "retry_count"})

SpanKey = tuple[str, str]
"""Trace id and span id."""


def spans_of(turns: Sequence[Turn]) -> frozenset[SpanKey]:
    """The spans of ``turns``, their roots included."""
    inside = {(turn.trace_id, span.span_id) for turn in turns for span in turn.spans}
    return frozenset(inside | {(turn.trace_id, turn.span_id or "") for turn in turns})


def run_turns(
    out: Path, journal: Journal, fragments: Iterable[Turn], known: Collection[SpanKey]
) -> ReadResult | None:
    """The outermost turns of a run; None when ``journal`` is of a process that received nothing.

    Args:
        out: the trace.
        journal: the run's own: who it is, and the parent that its processes were given.
        fragments: what other processes journaled of turns that are not their own.
        known: spans that stand in the trace.

    Raises:
        TraceReadError: when a file of requests cannot be read.
    """
    run = journal.turn
    folder = requests_folder(out, run.run_id)
    if not folder.is_dir():
        return None
    found = read_together([str(path) for path in sorted(folder.iterdir())], whole_run=True, known=known)
    outer = [_named(turn, run) for turn in found.turns if turn.parent_run_id is None]
    own = list(_untold([one for one in fragments if one.trace_id == run.trace_id], known))
    turns = [_with_fragments(turn, parts) for turn, parts in _shared_out(outer, own, run)]
    return ReadResult(turns=turns or _of_fragments(run, own), issues=found.issues)


def _untold(fragments: Iterable[Turn], known: Collection[SpanKey]) -> Iterator[Turn]:
    """The fragments that hold something new: a span that stands in the trace may be of another trace there."""
    told = {span_id for _, span_id in known}
    for fragment in fragments:
        new = tuple(span for span in fragment.spans if span.span_id not in told)
        if new:
            # what was counted stands in the trace with the first of the spans
            counters = fragment.counters if len(new) == len(fragment.spans) else {}
            yield replace(fragment, spans=new, counters=counters)


def _named(turn: Turn, run: Turn) -> Turn:
    """The turn with what the run knows of it; one without a root hangs on the run itself."""
    turn = replace(turn, agent=turn.agent or run.agent, labels={**turn.labels, **run.labels})
    if turn.span_id is not None:
        return turn
    spans = tuple(span if span.parent_id else replace(span, parent_id=run.span_id) for span in turn.spans)
    return replace(turn, span_id=run.span_id, spans=spans)


def _shared_out(
    turns: Sequence[Turn], fragments: Iterable[Turn], run: Turn
) -> Iterable[tuple[Turn, Sequence[Turn]]]:
    """Each turn with the fragments that are its own."""
    own: dict[str, list[Turn]] = {turn.run_id: [] for turn in turns}
    for fragment in fragments:
        home = _home(turns, fragment)
        if home is not None:
            own[home.run_id].append(_below(home, fragment, run))
    return [(turn, own[turn.run_id]) for turn in turns]


def _home(turns: Sequence[Turn], fragment: Turn) -> Turn | None:
    """The turn that has a parent of the fragment, else the one it began in, else the only one."""
    parents = {span.parent_id for span in fragment.spans}
    first_ns = min(span.start_ns for span in fragment.spans)
    by_parent = (turn for turn in turns if not parents.isdisjoint(span.span_id for span in turn.spans))
    by_time = (
        turn
        for turn in turns
        if (turn.started_ns or 0) <= first_ns and (turn.completed_ns is None or first_ns <= turn.completed_ns)
    )
    return next(by_parent, None) or next(by_time, None) or (turns[0] if len(turns) == 1 else None)


def _below(turn: Turn, fragment: Turn, run: Turn) -> Turn:
    """The fragment as one of the turn's trace; spans whose parent is in neither hang on the turn's root."""
    known = {span.span_id for span in (*turn.spans, *fragment.spans)} | {turn.span_id}

    def placed(span: Span) -> Span:
        if span.parent_id in known:
            return span
        source = span.parent_source if span.parent_id == run.span_id else "inferred"
        return replace(span, parent_id=turn.span_id, parent_source=source)

    return replace(fragment, trace_id=turn.trace_id, spans=tuple(map(placed, fragment.spans)))


def _with_fragments(turn: Turn, fragments: Sequence[Turn]) -> Turn:
    """The turn with its fragments, calls counted once over all of it."""
    if not fragments:
        return turn
    bare = {name: total for name, total in turn.counters.items() if name not in _COUNTED}
    return counted(merge_fragments(replace(turn, counters=bare), fragments))


def _of_fragments(run: Turn, fragments: Sequence[Turn]) -> list[Turn]:
    """The one turn of a run whose processes recorded themselves and sent nothing."""
    phases = [span for part in fragments for span in part.spans if span.phase is not None]
    if not phases:
        return []
    turn = replace(
        run,
        spans=(),
        turn_source="run",
        status="ok",
        started_ns=min(span.start_ns for span in phases),
        completed_ns=max(span.end_ns for span in phases),
    )
    return [_with_fragments(turn, [_below(turn, part, run) for part in fragments])]
