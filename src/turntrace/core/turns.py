"""From raw spans to turns: whatever instrumentation made them, in the records every layer shares."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, get_args

from turntrace.core import attributes as names
from turntrace.core.dialect_facts import OWN
from turntrace.core.event_spans import told
from turntrace.core.joined_turns import joined
from turntrace.core.model import ParentSource, RawEvent, RawPoint, RawSpan, Span, Turn, TurnStatus, Usage
from turntrace.core.readings import Reading, Readings, read
from turntrace.core.retry_waits import with_retry_waits
from turntrace.core.span_records import Place, outcome_of, placed, span_from_raw
from turntrace.core.token_counters import with_counted_tokens
from turntrace.core.turn_layout import Layout, lay_out
from turntrace.core.turn_notes import marks_of, warnings_of
from turntrace.core.turn_roots import Draft, Rule, is_turn, nested, outermost, run_id

__all__ = ["assemble", "outcome_of", "span_from_raw"]

_STATUSES: Final[dict[str, TurnStatus]] = {status: status for status in get_args(TurnStatus)}


def assemble(
    spans: Iterable[RawSpan],
    *,
    rule: Rule | None = None,
    events: Iterable[RawEvent] = (),
    points: Iterable[RawPoint] = (),
    whole_run: bool = False,
) -> list[Turn]:
    """Make turns of ``spans``, in any order: outermost ones by start, each followed by those inside it.

    Args:
        spans: those that belong to no turn are left out.
        rule: says of a span whether it is a turn and overrules what dialects and local roots say.
        events: what a coding agent logs beside its spans, or without any.
        points: what it counts.
        whole_run: all of it is of one process and its children, as ``run`` records it: roots that are no
            turns of their own are one turn.

    >>> raw = RawSpan(
    ...     span_id="01",
    ...     trace_id="0a",
    ...     parent_id=None,
    ...     name="chat m",
    ...     start_ns=0,
    ...     end_ns=9,
    ...     attributes={"gen_ai.operation.name": "chat"},
    ... )
    >>> [(turn.turn_source, turn.rounds, dict(turn.counters)) for turn in assemble([raw])]
    [('local_root', 1, {'model_requests': 1, 'tool_calls': 0})]
    """
    heard = told(events)
    readings = read(spans, heard)
    drafts = outermost(readings, rule)
    if rule is None:
        drafts = joined(readings, drafts, heard.prompts, whole_run=whole_run)
    turns: list[Turn] = []
    for draft in drafts:
        outer = _turn(readings, draft)
        turns.append(outer)
        turns.extend(_turn(readings, inner) for inner in nested(readings, draft, outer.run_id))
    return with_counted_tokens(turns, points)


def _turn(readings: Readings, draft: Draft) -> Turn:
    layout = lay_out(readings, draft.rows)
    first = _first_row(readings, draft)
    root = None if draft.root is None else readings[draft.root]
    marks = tuple(marks_of(readings, layout))
    moments = {mark.name: mark.at_ns for mark in marks}
    usage = tuple(_usage(readings, layout))
    calls = sorted((readings[row] for row in layout.calls.rows), key=_by_start)
    return Turn(
        run_id=_run_id(readings, draft, first),
        spans=with_retry_waits(tuple(_spans(readings, draft, layout))),
        started_ns=draft.started_ns,
        completed_ns=draft.completed_ns,
        trace_id=readings[first].raw.trace_id,
        span_id=_root_id(root, draft),
        root_name="" if root is None else root.raw.name,
        parent_run_id=draft.parent_run_id,
        session_id=_first(readings[row].facts.session_id for row in (first, *draft.rows)) or "",
        agent=root.facts.agent if root is not None and is_turn(root) else draft.agent,
        model=_first(call.facts.model for call in calls),
        provider=_first(call.facts.provider for call in calls),
        source=_source(readings, draft, layout),
        turn_source=draft.source,
        status=_status(root, draft),
        labels=_labels(root),
        first_chunk_ns=moments.get("first_chunk"),
        first_token_ns=moments.get("first_token"),
        first_visible_ns=moments.get("first_visible"),
        first_useful_ns=moments.get("first_useful"),
        rounds=max(layout.rounds.values(), default=0),
        counters=_counters(layout),
        usage=usage,
        marks=marks,
        warnings=tuple(warnings_of(readings, draft, layout, usage)),
    )


def _first_row(readings: Readings, draft: Draft) -> int:
    """The root, else the span that started first."""
    if draft.root is not None:
        return draft.root
    return min(draft.rows, key=lambda row: (readings[row].start_ns, row))


def _run_id(readings: Readings, draft: Draft, first: int) -> str:
    if not draft.is_interrupted:
        return run_id(readings[first])
    return min(draft.absent_ids) if len(draft.absent_ids) == 1 else readings[first].raw.trace_id


def _root_id(root: Reading | None, draft: Draft) -> str | None:
    """The id of the root; of one that never arrived too, if only one is missing."""
    if root is not None:
        return root.raw.span_id
    return min(draft.absent_ids) if len(draft.absent_ids) == 1 else None


def _source(readings: Readings, draft: Draft, layout: Layout) -> str:
    """The dialect of the root, else of the first phase."""
    phased = (row for row, phase in layout.phases.items() if phase is not None)
    deciding = draft.root if draft.root is not None and is_turn(readings[draft.root]) else next(phased, None)
    dialect = "otel" if deciding is None else readings[deciding].verdict.dialect
    return "native" if dialect == OWN else dialect


def _status(root: Reading | None, draft: Draft) -> TurnStatus:
    if draft.is_interrupted:
        return "interrupted"
    if root is None:
        return "ok"
    stated = _STATUSES.get(str(root.raw.attributes.get(f"{names.TURN_PREFIX}status")))
    return stated or _STATUS_OF.get(outcome_of(root.raw, root.verdict), "ok")


_STATUS_OF: Final[Mapping[str, TurnStatus]] = {
    "error": "error",
    "cancelled": "cancelled",
    "incomplete": "interrupted",
}


def _labels(root: Reading | None) -> dict[str, str]:
    attributes: Mapping[str, Any] = {} if root is None else root.raw.attributes
    cut = len(names.LABEL_PREFIX)
    return {
        name[cut:]: str(value) for name, value in attributes.items() if name.startswith(names.LABEL_PREFIX)
    }


def _counters(layout: Layout) -> dict[str, int]:
    counters = {"model_requests": len(layout.calls.rows), "tool_calls": layout.tool_calls}
    if layout.calls.retries is not None:
        counters["retry_count"] = layout.calls.retries
    return counters


def _usage(readings: Readings, layout: Layout) -> Iterator[Usage]:
    """What each call consumed, under the id of the span that stands for it, by start."""
    for row in sorted(layout.calls.usages, key=lambda row: _by_start(readings[row])):
        usage, span_id = layout.calls.usages[row], readings[row].raw.span_id
        yield usage if usage.span_id == span_id else replace(usage, span_id=span_id)


def _by_start(reading: Reading) -> tuple[int, str]:
    return reading.start_ns, reading.raw.span_id


def _spans(readings: Readings, draft: Draft, layout: Layout) -> Iterator[Span]:
    """The spans of the turn by start, without those that repeat a model call."""
    into = layout.calls.into
    members = layout.phases.keys()
    root_id = None if draft.root is None else readings[draft.root].raw.span_id
    for row in sorted((row for row in members if row not in into), key=lambda row: _by_start(readings[row])):
        reading = readings[row]
        parent = readings.parents[row]
        parent = into.get(parent, parent)
        if parent in members:
            parent_id: str | None = readings[parent].raw.span_id
        else:
            parent_id = root_id or (reading.raw.parent_id if row in readings.orphans else None)
        source: ParentSource = "inferred" if row in draft.inferred or row in readings.adopted else "otel"
        place = Place(
            phase=layout.phases[row],
            parent_id=parent_id,
            parent_source=source,
            round=layout.rounds.get(row),
            run_id=run_id(reading) if is_turn(reading) else None,
        )
        yield placed(reading.raw, reading.verdict, reading.facts, place)


def _first(texts: Iterable[str | None]) -> str | None:
    return next((text for text in texts if text), None)
