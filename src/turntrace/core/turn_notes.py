"""What a turn notes besides its spans: its first moments, and how it was put together."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from turntrace.core.attribution import MAX_NAMED_SPANS
from turntrace.core.model import Mark, Usage, Warn
from turntrace.core.readings import NO_ROW, Readings
from turntrace.core.root_calls import process_of
from turntrace.core.turn_layout import Layout
from turntrace.core.turn_roots import Draft
from turntrace.core.usage import contradiction

__all__ = ["marks_of", "warnings_of"]


def marks_of(readings: Readings, layout: Layout) -> list[Mark]:
    """The first moments of the turn, by time. Of the spans of one call the outermost that knows it says."""
    found: dict[str, Mark] = {}
    for name, field in _MOMENTS.items():
        by_call: dict[int, Mark] = {}
        for row in sorted((*layout.calls.rows, *layout.calls.into)):
            reading = readings[row]
            offset_ns: int | None = getattr(reading.facts, field)
            if offset_ns is not None:
                mark = Mark(name=name, at_ns=reading.start_ns + offset_ns, span_id=reading.raw.span_id)
                by_call.setdefault(layout.calls.into.get(row, row), mark)
        if by_call:
            found[name] = min(by_call.values(), key=_at)
    if layout.tools:
        tool = min((readings[row] for row in layout.tools), key=lambda one: (one.start_ns, one.raw.span_id))
        found["first_useful"] = Mark(name="first_useful", at_ns=tool.start_ns, span_id=tool.raw.span_id)
    return sorted(found.values(), key=_at)


_MOMENTS: Final = {
    "first_chunk": "first_chunk_ns",
    "first_token": "first_token_ns",
    "first_visible": "first_visible_ns",
}


def _at(mark: Mark) -> tuple[int, str]:
    return mark.at_ns, mark.span_id or ""


def warnings_of(readings: Readings, draft: Draft, layout: Layout, usage: Sequence[Usage]) -> Iterator[Warn]:
    """What a reader of the turn must know of its making."""
    rows = list(layout.phases) if draft.root is None else [draft.root, *layout.phases]
    found: list[tuple[str, str, Iterable[int]]] = [
        (
            "cycle",
            "spans that are their own ancestors, counted as top level",
            readings.cyclic.intersection(rows),
        ),
        (
            "double_count",
            "spans that repeat tokens of the model calls below them, not added",
            _repeating(readings, rows, layout, usage),
        ),
        (
            "duplicate_span",
            "span ids that came more than once, counted with their latest end",
            readings.twice.intersection(rows),
        ),
        (
            "ended_at_headers",
            "calls whose span ended before their stream did, as long as the record beside it says",
            readings.late.intersection(rows),
        ),
        (
            "ended_with_tools",
            "calls whose span stayed open while their tools ran, cut where the tools began",
            readings.waited.intersection(rows),
        ),
        ("folded", "spans that repeat a model call another span stands for, left out", layout.calls.into),
        ("parent_inferred", "spans that lie in this turn by time, not by a parent id", draft.inferred),
        (
            "parent_inferred",
            "calls without a parent, below the span that another instrumentation made of them",
            readings.adopted.intersection(rows),
        ),
        (
            "partial_usage",
            "calls that asked the model more than once and tell the tokens of the last answer, not counted",
            layout.looped,
        ),
        (
            "span_end_before_start",
            "spans that end before they start, counted as empty",
            [row for row in rows if readings[row].has_bad_end],
        ),
    ]
    for code, text, concerned in found:
        ids = sorted(readings[row].raw.span_id for row in concerned)
        if ids:
            yield Warn(code=code, message=f"{text}: {len(ids)}", span_ids=tuple(ids[:MAX_NAMED_SPANS]))
    yield from _skews(readings, rows)
    for one in usage:
        reason = contradiction(one) if one.provenance == "reported" else None
        if reason is not None:
            yield Warn(code="usage_contradiction", message=reason, span_ids=(one.span_id,))


def _skews(readings: Readings, rows: Iterable[int]) -> Iterator[Warn]:
    """Servers that answered, by their own clock, while their client was not asking: the clocks differ.

    A server's span that is no longer than its client's must lie in it. How far it has to be moved for that
    is the least that the clocks of the two differ by; times stay as they were recorded.
    """
    for row in rows:
        server, parent = readings[row], readings.parents[row]
        if parent == NO_ROW or server.raw.kind != "server" or readings[parent].raw.kind != "client":
            continue
        client = readings[parent]
        skew_ns = max(client.start_ns - server.start_ns, server.end_ns - client.end_ns)
        fits = server.end_ns - server.start_ns <= client.end_ns - client.start_ns
        if fits and skew_ns > 0 and process_of(server.raw.resource) != process_of(client.raw.resource):
            yield Warn(
                code="clock_skew",
                message=f"the clocks of two processes differ by {skew_ns} ns or more; times are as recorded",
                span_ids=(client.raw.span_id, server.raw.span_id),
            )


def _repeating(
    readings: Readings, rows: Iterable[int], layout: Layout, usage: Iterable[Usage]
) -> Iterator[int]:
    """The spans around model calls that carry their tokens again, where any call reported."""
    if not any(one.provenance == "reported" for one in usage):
        return
    for row in rows:
        own = readings[row].usage
        is_wrapper = row in layout.calls.wrappers and own is not None and own.provenance == "reported"
        if is_wrapper or readings[row].repeats_usage:
            yield row
