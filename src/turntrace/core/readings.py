"""Raw spans made ready for assembly: each once, read by its dialect, in a forest without cycles."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from turntrace.core.agent_spans import agent_spans
from turntrace.core.dialects import Role, classify
from turntrace.core.event_spans import Told
from turntrace.core.late_streams import with_whole_streams
from turntrace.core.model import RawSpan
from turntrace.core.open_calls import cut_at_tools
from turntrace.core.reading import Reading, reading_of
from turntrace.core.root_calls import seen_twice
from turntrace.core.tree import NO_ROW, lasts, on_cycles, preorder

__all__ = ["NO_ROW", "Reading", "Readings", "distinct", "read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """A forest in preorder: the rows below ``row`` are ``row + 1`` to ``lasts[row]``.

    ``parents`` holds NO_ROW for the top level: spans without a parent, with one that is not here
    (``orphans``), and those that were on a cycle (``cyclic``). ``twice``: rows whose id came more than once.
    ``late``: calls whose span ended before their stream did, put right. ``adopted``: calls without a parent,
    below the span that another instrumentation made of the same call. ``waited``: calls
    whose span waited for their tools, cut.
    """

    rows: Sequence[Reading]
    parents: Sequence[int]
    lasts: Sequence[int]
    orphans: frozenset[int]
    cyclic: frozenset[int]
    twice: frozenset[int]
    late: frozenset[int]
    adopted: frozenset[int]
    waited: frozenset[int]

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


def read(spans: Iterable[RawSpan], told: Told | None = None) -> Readings:
    """Read every span by its dialect and plant the forest. Spans that a dialect drops are left out.

    ``told`` is what log events beside the spans say.
    """
    unique, twice = distinct(spans)
    unique, late = with_whole_streams(unique)
    prepared, waited = cut_at_tools(agent_spans(unique, Told() if told is None else told))
    unique = list(prepared)
    unique.sort(key=lambda span: (span.start_ns, span.span_id, span.trace_id))
    verdicts = [classify(span.scope, span.name, span.kind, span.attributes) for span in unique]
    wanted = {(span.trace_id, span.parent_id) for span in unique}
    # A dropped span that others hang on stays, as structure: only its own time says nothing.
    kept = [
        reading_of(span, verdict)
        for span, verdict in zip(unique, verdicts, strict=True)
        if verdict.role is not Role.DROP or (span.trace_id, span.span_id) in wanted
    ]
    row_of = {_key(reading.raw): row for row, reading in enumerate(kept)}
    parents = [row_of.get((one.raw.trace_id, one.raw.parent_id or ""), NO_ROW) for one in kept]
    cyclic = set(on_cycles(parents))
    for row in cyclic:
        parents[row] = NO_ROW
    adopted = seen_twice(kept, parents)
    for row, around in adopted.items():
        parents[row] = around
    order = preorder(parents)
    place = [0] * len(order)
    for position, row in enumerate(order):
        place[row] = position
    last = lasts(order, parents, place)
    planted = [kept[row] for row in order]
    above = [NO_ROW if parents[row] == NO_ROW else place[parents[row]] for row in order]
    return Readings(
        rows=[_named(planted, row, parent) for row, parent in enumerate(above)],
        parents=above,
        lasts=[last[row] for row in order],
        orphans=frozenset(
            row
            for row, reading in enumerate(planted)
            if above[row] == NO_ROW and reading.raw.parent_id is not None and order[row] not in cyclic
        ),
        cyclic=frozenset(place[row] for row in cyclic),
        twice=_rows_of(twice, planted),
        late=_rows_of(late, planted),
        adopted=frozenset(place[row] for row in adopted),
        waited=_rows_of(waited, planted),
    )


def _key(span: RawSpan) -> tuple[str, str]:
    return span.trace_id, span.span_id


def _rows_of(keys: Collection[tuple[str, str]], planted: Iterable[Reading]) -> frozenset[int]:
    return frozenset(row for row, reading in enumerate(planted) if _key(reading.raw) in keys)


def _named(rows: Sequence[Reading], row: int, parent: int) -> Reading:
    """A tool without a name has that of the structure right around it."""
    reading = rows[row]
    if reading.verdict.phase != "tool_execution" or reading.facts.tool is not None or parent == NO_ROW:
        return reading
    around = rows[parent]
    if around.verdict.role is not Role.STRUCTURE or around.facts.tool is None:
        return reading
    return replace(reading, facts=replace(reading.facts, tool=around.facts.tool))
