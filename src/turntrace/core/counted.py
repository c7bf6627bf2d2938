"""Model and tool calls of a recorded turn, each counted once, from its spans and usage lines.

A journal has a usage line for every generation span; the turn that is made of it has one for every call.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from turntrace.core import attributes as names
from turntrace.core.calls import Calls, Generation, ToolSpan, count_tools, fold
from turntrace.core.model import Span, Turn, Usage, Warn
from turntrace.core.retry_waits import with_retry_waits

__all__ = ["counted"]

_TOOL_PREFIX: Final = "execute_tool "


def counted(turn: Turn) -> Turn:
    """``turn`` with the counters model_requests and tool_calls, and usage folded to one report a call.

    What the agent counted itself under those names is added. A retry that only spans tell becomes
    ``retry_count`` unless the agent counts retries.
    """
    turn = replace(turn, spans=tuple(_named(span) for span in turn.spans))
    spans = list(_outer_first(turn))
    usage = {report.span_id: report for report in turn.usage}
    generations, tools = _calls(spans, usage)
    calls = fold(generations)
    counters = dict(turn.counters)
    counters["model_requests"] = counters.get("model_requests", 0) + len(calls.rows)
    counters["tool_calls"] = counters.get("tool_calls", 0) + count_tools(tools)
    if calls.retries:
        counters.setdefault("retry_count", calls.retries)
    return replace(
        turn,
        spans=with_retry_waits(_without_repeats(turn, spans, calls)),
        counters=counters,
        usage=tuple(_usage(spans, calls)),
        model=turn.model or next((span.model for span in spans if span.phase == "generation"), None),
        warnings=(*turn.warnings, *_folds(spans, calls)),
    )


def _named(span: Span) -> Span:
    """A tool span with its tool: one that never ended has it in its name only."""
    if span.phase != "tool_execution" or span.tool is not None or not span.name.startswith(_TOOL_PREFIX):
        return span
    return replace(span, tool=span.name.removeprefix(_TOOL_PREFIX))


def _outer_first(turn: Turn) -> Iterator[Span]:
    """The spans, parents before their children, siblings by start; a cycle's spans come last."""
    below: defaultdict[str | None, list[Span]] = defaultdict(list)
    ids = {span.span_id for span in turn.spans}
    for span in sorted(turn.spans, key=lambda span: (span.start_ns, span.span_id), reverse=True):
        below[span.parent_id if span.parent_id in ids else None].append(span)
    stack = below.pop(None, [])
    while stack:
        span = stack.pop()
        yield span
        stack += below.pop(span.span_id, [])
    for left in below.values():
        yield from left


def _forest(spans: list[Span]) -> tuple[list[int], list[int]]:
    """The parent's row (-1 for none) and the last row below, of spans in preorder."""
    rows = {span.span_id: row for row, span in enumerate(spans)}
    parents = [rows.get(span.parent_id or "", -1) for span in spans]
    parents = [parent if parent < row else -1 for row, parent in enumerate(parents)]
    lasts = list(range(len(spans)))
    for row in range(len(spans) - 1, -1, -1):
        if parents[row] >= 0:
            lasts[parents[row]] = max(lasts[parents[row]], lasts[row])
    return parents, lasts


def _calls(spans: list[Span], usage: dict[str, Usage]) -> tuple[list[Generation], list[ToolSpan]]:
    """Generations and tools by row, each with the one it lies in."""
    parents, lasts = _forest(spans)
    generations: list[Generation] = []
    tools: list[ToolSpan] = []
    above: list[tuple[int | None, int | None]] = []
    attempts: defaultdict[int, int] = defaultdict(int)
    for row, span in enumerate(spans):
        generation, tool = above[parents[row]] if parents[row] >= 0 else (None, None)
        if span.agent is not None:
            generation = tool = None
        if span.phase == "provider_connect" and generation is not None:
            attempts[generation] += 1
        if span.phase == "generation":
            place = _Place(row, lasts[row], generation, parents[row])
            generations.append(_generation(place, span, usage.get(span.span_id)))
            generation = row
        elif span.phase == "tool_execution":
            tools.append(ToolSpan(row=row, above=tool, tool=span.tool))
            generation, tool = None, row
        above.append((generation, tool))
    return [replace(found, attempts=attempts[found.row]) for found in generations], tools


class _Place(NamedTuple):
    row: int
    last: int
    above: int | None
    parent: int


def _generation(place: _Place, span: Span, usage: Usage | None) -> Generation:
    response_id = span.attributes.get(names.RESPONSE_ID)
    resends = span.attributes.get(names.HTTP_RESEND)
    return Generation(
        row=place.row,
        last=place.last,
        above=place.above,
        parent=place.parent,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        instrumentation="",
        model=span.model,
        response_id=str(response_id) if response_id else None,
        usage=usage,
        resends=resends if isinstance(resends, int) else None,
    )


def _usage(spans: list[Span], calls: Calls) -> Iterator[Usage]:
    for row in calls.rows:
        report = calls.usages.get(row)
        if report is not None:
            yield replace(report, span_id=spans[row].span_id)


def _without_repeats(turn: Turn, spans: list[Span], calls: Calls) -> tuple[Span, ...]:
    """The spans without those that repeat a call; what hung on these hangs on the span that stands for it."""
    into = {spans[row].span_id: spans[kept].span_id for row, kept in calls.into.items()}
    if not into:
        return turn.spans
    return tuple(
        replace(span, parent_id=into.get(span.parent_id or "", span.parent_id))
        for span in turn.spans
        if span.span_id not in into
    )


def _folds(spans: list[Span], calls: Calls) -> Iterator[Warn]:
    if calls.into:
        yield Warn(
            code="folded",
            message="spans that repeat a model call another span stands for, left out",
            span_ids=tuple(spans[row].span_id for row in sorted(calls.into)),
        )
