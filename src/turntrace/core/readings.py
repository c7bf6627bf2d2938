"""Raw spans made ready for assembly: each once, read by its dialect, in a forest without cycles."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from turntrace.core.dialects import Description, Role, Verdict, classify, describe, reports_usage, usage_of
from turntrace.core.late_streams import with_whole_streams
from turntrace.core.model import RawSpan, Usage
from turntrace.core.tree import NO_ROW, lasts, on_cycles, preorder

__all__ = ["NO_ROW", "WRAPPERS", "Reading", "Readings", "distinct", "read"]

WRAPPERS: Final = frozenset({Role.TURN, Role.AGENT, Role.STRUCTURE})
"""The roles of spans that only lie around others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A raw span and what its dialect says of it.

    ``end_ns`` is never before the start; ``has_bad_end`` tells that the span's own end was. Usage is
    read from model calls, ``repeats_usage`` from the spans around them.
    """

    raw: RawSpan
    verdict: Verdict
    facts: Description
    usage: Usage | None
    end_ns: int
    has_bad_end: bool
    repeats_usage: bool

    @property
    def start_ns(self) -> int:
        """The start of the span."""
        return self.raw.start_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """A forest in preorder: the rows below ``row`` are ``row + 1`` to ``lasts[row]``.

    ``parents`` holds NO_ROW for the top level: spans without a parent, with one that is not here
    (``orphans``), and those that were on a cycle (``cyclic``). ``twice``: rows whose id came more than once.
    ``late``: calls whose span ended before their stream did, put right.
    """

    rows: Sequence[Reading]
    parents: Sequence[int]
    lasts: Sequence[int]
    orphans: frozenset[int]
    cyclic: frozenset[int]
    twice: frozenset[int]
    late: frozenset[int]

    def __getitem__(self, row: int) -> Reading:
        return self.rows[row]

    def below(self, row: int) -> range:
        """The rows of the spans below ``row``."""
        return range(row + 1, self.lasts[row] + 1)


def distinct(spans: Iterable[RawSpan]) -> tuple[list[RawSpan], set[tuple[str, str]]]:
    """Keep one span for each (trace id, span id): the latest end, then the earliest start.

    Returns the spans in the order they first came, and the keys that came more than once.
    """
    kept: dict[tuple[str, str], RawSpan] = {}
    twice: set[tuple[str, str]] = set()
    for span in spans:
        key = (span.trace_id, span.span_id)
        other = kept.get(key)
        if other is not None:
            twice.add(key)
        if other is None or (-span.end_ns, span.start_ns) < (-other.end_ns, other.start_ns):
            kept[key] = span
    return list(kept.values()), twice


def read(spans: Iterable[RawSpan]) -> Readings:
    """Read every span by its dialect and plant the forest. Spans that a dialect drops are left out."""
    unique, twice = distinct(spans)
    unique, late = with_whole_streams(unique)
    unique.sort(key=lambda span: (span.start_ns, span.span_id, span.trace_id))
    verdicts = [classify(span.scope, span.name, span.kind, span.attributes) for span in unique]
    wanted = {(span.trace_id, span.parent_id) for span in unique}
    # A dropped span that others hang on stays, as structure: only its own time says nothing.
    kept = [
        (span, verdict)
        for span, verdict in zip(unique, verdicts, strict=True)
        if verdict.role is not Role.DROP or (span.trace_id, span.span_id) in wanted
    ]
    row_of = {(span.trace_id, span.span_id): row for row, (span, _) in enumerate(kept)}
    parents = [row_of.get((span.trace_id, span.parent_id or ""), NO_ROW) for span, _ in kept]
    cyclic = set(on_cycles(parents))
    for row in cyclic:
        parents[row] = NO_ROW
    order = preorder(parents)
    place = [0] * len(order)
    for position, row in enumerate(order):
        place[row] = position
    last = lasts(order, parents, place)
    planted = [kept[row] for row in order]
    above = [NO_ROW if parents[row] == NO_ROW else place[parents[row]] for row in order]
    return Readings(
        rows=[_reading(span, verdict) for span, verdict in planted],
        parents=above,
        lasts=[last[row] for row in order],
        orphans=frozenset(
            row
            for row, (span, _) in enumerate(planted)
            if above[row] == NO_ROW and span.parent_id is not None and order[row] not in cyclic
        ),
        cyclic=frozenset(place[row] for row in cyclic),
        twice=_rows_of(twice, planted),
        late=_rows_of(late, planted),
    )


def _rows_of(keys: Collection[tuple[str, str]], planted: Iterable[tuple[RawSpan, Verdict]]) -> frozenset[int]:
    return frozenset(row for row, (span, _) in enumerate(planted) if (span.trace_id, span.span_id) in keys)


def _reading(span: RawSpan, verdict: Verdict) -> Reading:
    is_backwards = span.end_ns < span.start_ns
    return Reading(
        raw=span,
        verdict=verdict,
        facts=describe(verdict, span.name, span.attributes),
        usage=usage_of(verdict, span.span_id, span.attributes, failed=span.status == "error"),
        end_ns=span.start_ns if is_backwards else span.end_ns,
        has_bad_end=is_backwards,
        repeats_usage=verdict.role in WRAPPERS and reports_usage(verdict, span.attributes),
    )
