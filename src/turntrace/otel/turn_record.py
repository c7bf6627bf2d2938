"""The record of a turn that is kept in memory."""

from collections.abc import Iterable, Sequence

from turntrace.core.model import Mark, Span, Turn, Usage, Warn
from turntrace.otel.live_turn import LiveTurn

__all__ = ["turn_record"]


def turn_record(
    turn: LiveTurn,
    spans: Sequence[Span],
    usage: Iterable[Usage],
    marks: Iterable[Mark],
    warnings: Iterable[Warn],
) -> Turn:
    """What ``turn`` knows of itself, with ``spans``; open spans count up to now, ``incomplete``."""
    now_ns = turn.now_ns()
    open_spans = [
        Span(
            span_id=f"{opened.span_id:016x}",
            parent_id=None if opened.parent_id is None else f"{opened.parent_id:016x}",
            name=opened.name,
            phase=opened.phase,
            start_ns=opened.start_ns,
            end_ns=now_ns,
            outcome="incomplete",
            round=opened.round,
            tool=opened.tool,
        )
        for opened in (() if turn.closed else tuple(turn.open_spans.values()))
        if opened.span_id != turn.root_id and not opened.is_over
    ]
    ended = turn.end_ns is not None
    counters = {
        "model_requests": turn.counts.model_requests,
        "tool_calls": turn.counts.tool_calls,
        **turn.counts.counters,
    }
    return Turn(
        run_id=turn.run_id,
        spans=(*spans, *open_spans),
        started_ns=turn.start_ns,
        completed_ns=turn.end_ns,
        trace_id=f"{turn.trace_id:032x}",
        span_id=f"{turn.root_id:016x}" if turn.root_id else None,
        root_name=turn.who.root_name,
        session_id=turn.who.session_id,
        agent=turn.who.agent,
        model=turn.model,
        provider=turn.provider,
        source=turn.who.source,
        turn_source=turn.who.turn_source,
        status=turn.status if ended else "interrupted",
        labels=dict(turn.who.labels),
        first_chunk_ns=turn.first_ns("first_chunk"),
        first_token_ns=turn.first_ns("first_token"),
        first_visible_ns=turn.first_ns("first_visible"),
        first_useful_ns=turn.first_ns("first_useful"),
        rounds=turn.rounds,
        counters=counters,
        usage=tuple(usage),
        marks=tuple(marks),
        warnings=tuple(warnings),
        sampled=turn.who.sampled,
    )
