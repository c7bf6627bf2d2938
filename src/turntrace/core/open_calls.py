"""Model calls whose span stays open while the tools run that they asked for: cut where the tools begin.

The Vercel AI SDK runs a tool while the stream that asked for it is still open, and ends the span of the
stream when the tool's result has come; opencode is made with it. The model is done long before. Claude Code
and codex end the span of a call some milliseconds after its tool began.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from turntrace.core.intervals import Interval, merge
from turntrace.core.model import RawSpan

__all__ = ["cut_at_tools"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """Calls and tools below one parent, each known by an attribute and its values.

    ``waits``: the call's span waits for its tools; else a longer overlap with one is real.
    """

    call_key: str
    calls: frozenset[str]
    tool_key: str
    tool: str
    waits: bool


_PAIRS: Final = (
    _Pair(
        call_key="ai.operationId",
        calls=frozenset({"ai.streamText.doStream", "ai.streamObject.doStream"}),
        tool_key="ai.operationId",
        tool="ai.toolCall",
        waits=True,
    ),
    _Pair(
        call_key="span.type", calls=frozenset({"llm_request"}), tool_key="span.type", tool="tool", waits=False
    ),
    _Pair(
        call_key="codex.turn.phase",
        calls=frozenset({"sampling"}),
        tool_key="codex.tool.phase",
        tool="dispatch",
        waits=False,
    ),
)
_SLACK_NS: Final = 100_000_000
"""What is done between the last result and the end of the span, or between a tool's start and that end."""

_SLACK_SHARE: Final = 0.1
"""The same on a busy machine, as a part of the tools' time."""

_Key = tuple[str, str]
_Parent = tuple[str, str | None]


def cut_at_tools(spans: Sequence[RawSpan]) -> tuple[Sequence[RawSpan], frozenset[_Key]]:
    """``spans``, the calls among them ended where their tools began, and the keys of those that had waited.

    Only a call that ended with its tools is cut: one that went on streaming after them was really open.
    """
    waited: set[_Key] = set()
    for pair in _PAIRS:
        tools = _tools(spans, pair)
        if tools:
            cut = dict(_cut(spans, pair, tools))
            spans = [cut.get((span.trace_id, span.span_id), span) for span in spans]
            waited |= cut.keys() if pair.waits else set()
    return spans, frozenset(waited)


def _tools(spans: Iterable[RawSpan], pair: _Pair) -> dict[_Parent, list[Interval]]:
    """The runs of tools without a gap, by trace and parent, in order."""
    found: dict[_Parent, list[Interval]] = {}
    for span in spans:
        if span.attributes.get(pair.tool_key) == pair.tool:
            found.setdefault((span.trace_id, span.parent_id), []).append((span.start_ns, span.end_ns))
    return {parent: list(merge(intervals)) for parent, intervals in found.items()}


def _cut(
    spans: Iterable[RawSpan], pair: _Pair, tools: dict[_Parent, list[Interval]]
) -> Iterator[tuple[_Key, RawSpan]]:
    for span in spans:
        if span.attributes.get(pair.call_key) in pair.calls:
            run = _last_run(span, tools.get((span.trace_id, span.parent_id), ()))
            if run is not None and _is_cut(span, run, waits=pair.waits):
                yield (span.trace_id, span.span_id), replace(span, end_ns=run[0])


def _last_run(call: RawSpan, runs: Sequence[Interval]) -> Interval | None:
    """The last run of tools that began while the call's span was open."""
    index = bisect_left(runs, call.end_ns, key=lambda run: run[0]) - 1
    return runs[index] if index >= 0 and runs[index][0] >= call.start_ns else None


def _is_cut(call: RawSpan, run: Interval, *, waits: bool) -> bool:
    began_ns, ended_ns = run
    if not waits:
        return call.end_ns - began_ns <= _SLACK_NS
    return ended_ns + max(_SLACK_NS, round((ended_ns - began_ns) * _SLACK_SHARE)) >= call.end_ns
