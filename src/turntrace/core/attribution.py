"""Attribution: where a turn's wall time went. Exact integer nanoseconds, the same for every reader.

Definitions in docs/how-it-works.md. Here the parts are put together; each part has its own module.
"""

from collections.abc import Iterable, Iterator, Sequence

from turntrace.core.critical_path import Section, critical_path
from turntrace.core.exclusive import exclusive_ns
from turntrace.core.frontier import Frontier, sweep
from turntrace.core.intervals import Interval, clip, gaps, union_ns
from turntrace.core.model import Span, Turn, Warn
from turntrace.core.results import Attribution, Gap, PathSection, SpanTimes, Unattributed
from turntrace.core.rollup import Columns, max_concurrency, phase_totals
from turntrace.core.tree import NO_ROW, Forest, grow

__all__ = ["MAX_NAMED_SPANS", "MIN_GAP_NS", "attribute", "attributed"]

MIN_GAP_NS = 1_000_000
"""A stretch that no phase covers is listed from this length on."""

MAX_NAMED_SPANS = 100
"""A warning names at most so many spans; its message has the true number."""


def attribute(
    spans: Sequence[Span], *, started_ns: int | None, completed_ns: int | None, root_id: str | None
) -> Attribution:
    """Attribute the window of a turn to its spans, the root not among them; spans in (start, id) order.

    Without a window (the turn was interrupted) times are not cut and what needs one is None.

    >>> from turntrace.core.model import Span
    >>> chat = Span(span_id="a", parent_id="r", name="chat", phase="generation", start_ns=10, end_ns=90)
    >>> result = attribute([chat], started_ns=0, completed_ns=100, root_id="r")
    >>> result.attributed_ns, result.unattributed_ns, result.spans[0].exclusive_ns
    (80, 20, 80)
    """
    forest = grow(spans)
    window = None
    if started_ns is not None and completed_ns is not None:
        window = started_ns, max(started_ns, completed_ns)
    intervals = [clip((span.start_ns, span.end_ns), window) for span in forest.spans]
    starts = [start for start, _ in intervals]
    ends = [end for _, end in intervals]
    if window is None:
        return _without_window(forest, starts, ends, root_id)
    return _with_window(forest, starts, ends, root_id, window)


def attributed(turn: Turn) -> Attribution:
    """Attribute the window of ``turn`` to its spans."""
    return attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )


def _without_window(
    forest: Forest, starts: Sequence[int], ends: Sequence[int], root_id: str | None
) -> Attribution:
    columns = _columns(forest, starts, ends, None, None)
    detached = _detached(forest, None)
    return Attribution(
        spans=_span_times(forest, columns, detached, root_id),
        busy_ns=sum(columns.busy),
        phases=phase_totals(forest, columns),
        max_concurrency=max_concurrency(forest, columns),
        warnings=_warnings(forest, detached, None),
    )


def _with_window(
    forest: Forest, starts: Sequence[int], ends: Sequence[int], root_id: str | None, window: Interval
) -> Attribution:
    frontier = sweep(forest, starts, ends)
    path = critical_path(forest, starts, ends, window)
    critical, root_critical_ns = _critical(path, len(forest))
    columns = _columns(forest, starts, ends, frontier, critical)
    detached = _detached(forest, window)
    wall_ns = window[1] - window[0]
    top_level = [(starts[row], ends[row]) for row, parent in enumerate(forest.parents) if parent < 0]
    return Attribution(
        spans=_span_times(forest, columns, detached, root_id),
        wall_ns=wall_ns,
        attributed_ns=frontier.attributed_ns,
        unattributed_ns=wall_ns - frontier.attributed_ns,
        busy_ns=sum(columns.busy),
        active_ns=wall_ns - frontier.human_ns,
        critical_path_ns=wall_ns - root_critical_ns,
        root_exclusive_ns=wall_ns - union_ns(top_level),
        root_critical_ns=root_critical_ns,
        phases=phase_totals(forest, columns),
        critical_path=tuple(
            PathSection(
                span_id=forest.spans[row].span_id if row >= 0 else root_id, start_ns=start, end_ns=end
            )
            for row, start, end in path
        ),
        gaps=tuple(_gaps(forest, starts, ends, window)),
        unattributed=_unattributed(forest, frontier),
        max_concurrency=max_concurrency(forest, columns),
        warnings=_warnings(forest, detached, window),
    )


def _columns(
    forest: Forest,
    starts: Sequence[int],
    ends: Sequence[int],
    frontier: Frontier | None,
    critical: Sequence[int] | None,
) -> Columns:
    phase_rows = [phase is not None for phase in forest.phases]
    above = [
        parent if is_phase else NO_ROW
        for parent, is_phase in zip(forest.phase_parents, phase_rows, strict=True)
    ]
    busy = exclusive_ns(above, starts, ends)
    return Columns(
        starts=starts,
        ends=ends,
        exclusive=exclusive_ns(forest.parents, starts, ends),
        busy=[ns if is_phase else 0 for ns, is_phase in zip(busy, phase_rows, strict=True)],
        shares=None
        if frontier is None
        else [ns if is_phase else 0 for ns, is_phase in zip(frontier.shares_ns, phase_rows, strict=True)],
        critical=critical,
    )


def _critical(path: Iterable[Section], size: int) -> tuple[list[int], int]:
    """Time on the path by row, and the root's own."""
    # The last slot is the root's: its row is -1.
    critical = [0] * (size + 1)
    for row, start, end in path:
        critical[row] += end - start
    return critical, critical.pop()


def _span_times(
    forest: Forest, columns: Columns, detached: Sequence[bool], root_id: str | None
) -> tuple[SpanTimes, ...]:
    # The slot behind the last row answers for NO_ROW.
    ids: list[str | None] = [span.span_id for span in forest.spans]
    parent_ids = [*ids, root_id]
    phase_parent_ids = [*ids, None]
    return tuple(
        SpanTimes(
            span=span,
            parent_id=parent_ids[forest.parents[row]],
            parent_source=span.parent_source,
            phase=forest.phases[row],
            phase_parent_id=phase_parent_ids[forest.phase_parents[row]],
            exclusive_ns=columns.exclusive[row],
            wall_share_ns=None if columns.shares is None else columns.shares[row],
            critical_ns=None if columns.critical is None else columns.critical[row],
            detached=detached[row],
        )
        for row, span in enumerate(forest.spans)
    )


def _unattributed(forest: Forest, frontier: Frontier) -> tuple[Unattributed, ...]:
    """The shares of structure in the time without a phase, largest first."""
    inside = [
        Unattributed(span_id=span.span_id, name=span.name, ns=ns)
        for span, phase, ns in zip(forest.spans, forest.phases, frontier.shares_ns, strict=True)
        if phase is None and ns
    ]
    return tuple(sorted(inside, key=lambda part: -part.ns))


def _gaps(forest: Forest, starts: Sequence[int], ends: Sequence[int], window: Interval) -> Iterator[Gap]:
    """Long stretches without a phase; of several neighbours the outermost is named."""
    rows = [row for row, phase in enumerate(forest.phases) if phase is not None and starts[row] < ends[row]]
    stretches = list(gaps(window, ((starts[row], ends[row]) for row in rows)))
    ended: dict[int, int] = {}
    begun: dict[int, int] = {}
    for row in rows:
        ended.setdefault(ends[row], row)
        other = begun.setdefault(starts[row], row)
        if ends[row] > ends[other]:
            begun[starts[row]] = row
    for start, end in stretches:
        if end - start >= MIN_GAP_NS:
            yield Gap(
                start_ns=start,
                end_ns=end,
                after=_id(forest, ended.get(start)),
                before=_id(forest, begun.get(end)),
            )


def _id(forest: Forest, row: int | None) -> str | None:
    return None if row is None else forest.spans[row].span_id


def _detached(forest: Forest, window: Interval | None) -> list[bool]:
    """Which spans end later than their parent; on the top level that is the window's end."""
    true_ends: list[int] = [max(span.start_ns, span.end_ns) for span in forest.spans]
    limit = window[1] if window else max(true_ends, default=0)
    limits = [*true_ends, limit]
    return [end > limits[parent] for end, parent in zip(true_ends, forest.parents, strict=True)]


def _warnings(forest: Forest, detached: Sequence[bool], window: Interval | None) -> tuple[Warn, ...]:
    spans = forest.spans
    found = [
        ("cycle", "spans that are their own ancestors, counted as top level", forest.cyclic_ids),
        (
            "detached",
            "spans that end after their parent",
            [span.span_id for span, late in zip(spans, detached, strict=True) if late],
        ),
        (
            "duplicate_span",
            "span ids that occur more than once, counted with their latest end",
            forest.duplicate_ids,
        ),
        (
            "span_end_before_start",
            "spans that end before they start, counted as empty",
            [span.span_id for span in spans if span.end_ns < span.start_ns],
        ),
        (
            "span_outside_window",
            "spans that reach out of the turn, cut to it",
            [] if window is None else [span.span_id for span in spans if _reaches_out(span, window)],
        ),
    ]
    return tuple(
        Warn(code=code, message=f"{text}: {len(ids)}", span_ids=tuple(ids[:MAX_NAMED_SPANS]))
        for code, text, ids in found
        if ids
    )


def _reaches_out(span: Span, window: Interval) -> bool:
    low, high = window
    return span.start_ns < low or max(span.start_ns, span.end_ns) > high
