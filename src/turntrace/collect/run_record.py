"""The turns that a command's requests tell, written into the trace of its run.

What other processes of the run recorded themselves stands in the trace, or in fragments beside it: a span
that is there already is not told again, and a fragment becomes part of the turn around it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from turntrace.collect.turn_writer import attributed
from turntrace.core.codec.encode import encode_block
from turntrace.core.codec.fragments import merge_fragments
from turntrace.core.counted import counted
from turntrace.core.model import Span, Turn
from turntrace.files.append import Rotation, append_block
from turntrace.files.fragments import Part, parts_with_trace, remove_joined
from turntrace.files.read import ReadResult, read_paths
from turntrace.files.together import read_together

__all__ = ["Run", "record_run"]

_COUNTED: Final = frozenset({"model_requests", "tool_calls", "retry_count"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is known of a run: the parent that its processes were given, who it is, and its labels."""

    trace: Path
    trace_id: str
    span_id: str
    agent: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def record_run(run: Run, requests: Sequence[Path], rotation: Rotation) -> ReadResult:
    """Append the turns that ``requests`` tell to the trace; returns them, with what was wrong.

    Raises:
        OSError: when the disk does not take them.
        TraceReadError: when a file cannot be read.
    """
    if not requests:
        return ReadResult()
    paths = [str(path) for path in requests]
    found = read_together(paths, whole_run=True, known=_recorded(run.trace))
    parts = parts_with_trace(run.trace, run.trace_id)
    outer = [_named(turn, run) for turn in found.turns if turn.parent_run_id is None]
    written = [_with_fragments(turn, own) for turn, own in _shared_out(outer, parts, run)]
    for turn in written:
        append_block(run.trace, encode_block(turn, attributed(turn)), rotation)
        remove_joined(parts, turn)
    return ReadResult(turns=written, issues=found.issues)


def _recorded(trace: Path) -> frozenset[tuple[str, str]]:
    """The spans that stand in the trace, and in the journals beside it."""
    turns = read_paths([str(trace)]).turns if trace.exists() else []
    spans = {(turn.trace_id, span.span_id) for turn in turns for span in turn.spans}
    return frozenset(spans | {(turn.trace_id, turn.span_id) for turn in turns if turn.span_id is not None})


def _named(turn: Turn, run: Run) -> Turn:
    """The turn with what the run knows of it; one without a root hangs on the run itself."""
    turn = replace(turn, agent=turn.agent or run.agent, labels={**turn.labels, **run.labels})
    if turn.span_id is not None:
        return turn
    spans = tuple(span if span.parent_id else replace(span, parent_id=run.span_id) for span in turn.spans)
    return replace(turn, span_id=run.span_id, spans=spans)


def _shared_out(
    turns: Sequence[Turn], parts: Iterable[Part], run: Run
) -> Iterable[tuple[Turn, Sequence[Turn]]]:
    """Each turn with the fragments that are its own: those it has the parents of, else by time."""
    own: dict[str, list[Turn]] = {turn.run_id: [] for turn in turns}
    for part in parts:
        fragment = part.journal.turn
        if not part.journal.fragment or not fragment.spans:
            continue
        home = _home(turns, fragment)
        if home is not None:
            own[home.run_id].append(_below(home, fragment, run))
    return [(turn, own[turn.run_id]) for turn in turns]


def _home(turns: Sequence[Turn], fragment: Turn) -> Turn | None:
    parents = {span.parent_id for span in fragment.spans}
    first_ns = min(span.start_ns for span in fragment.spans)
    by_parent = (turn for turn in turns if parents & {span.span_id for span in turn.spans})
    by_time = (
        turn
        for turn in turns
        if (turn.started_ns or 0) <= first_ns and (turn.completed_ns is None or first_ns <= turn.completed_ns)
    )
    return next(by_parent, None) or next(by_time, None)


def _below(turn: Turn, fragment: Turn, run: Run) -> Turn:
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
