"""A turn while it runs, as if it ended now: what is open lasts until now."""

from dataclasses import dataclass, replace

from turntrace.core.model import Span, Turn

__all__ = ["Running", "open_spans", "running"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """``turn`` has a window that ends now and spans that last until now.

    ``current`` are the open phase spans that have no open phase below them, by start: what the turn is doing.
    """

    turn: Turn
    now_ns: int
    current: tuple[Span, ...]


def open_spans(turn: Turn) -> tuple[Span, ...]:
    """The spans that had started and not ended when the turn was read."""
    return tuple(span for span in turn.spans if span.outcome == "incomplete")


def running(turn: Turn, now_ns: int) -> Running:
    """The turn as it stands at ``now_ns``; one that has no start yet starts with its first span.

    >>> open_span = Span(
    ...     span_id="a", parent_id="r", name="x", phase="plan", start_ns=5, end_ns=6, outcome="incomplete"
    ... )
    >>> found = running(Turn(run_id="r", span_id="r", started_ns=0, spans=(open_span,)), 100)
    >>> found.turn.completed_ns, found.turn.spans[0].end_ns, found.current[0].phase
    (100, 100, 'plan')
    """
    now_ns = max([now_ns, *(span.end_ns for span in turn.spans)])
    spans = tuple(
        replace(span, end_ns=max(now_ns, span.start_ns)) if span.outcome == "incomplete" else span
        for span in turn.spans
    )
    starts = [span.start_ns for span in spans]
    started_ns = turn.started_ns if turn.started_ns is not None else min(starts, default=now_ns)
    return Running(
        turn=replace(turn, spans=spans, started_ns=started_ns, completed_ns=max(started_ns, now_ns)),
        now_ns=now_ns,
        current=_innermost(turn),
    )


def _innermost(turn: Turn) -> tuple[Span, ...]:
    """The open phase spans with no open phase span below them."""
    opened = open_spans(turn)
    by_id = {span.span_id: span for span in opened}
    above: set[str] = set()
    for span in opened:
        if span.phase is None:
            continue
        at = by_id.get(span.parent_id or "")
        while at is not None and at.span_id not in above:
            above.add(at.span_id)
            at = by_id.get(at.parent_id or "")
    found = (span for span in opened if span.phase is not None and span.span_id not in above)
    return tuple(sorted(found, key=lambda span: (span.start_ns, span.span_id)))
