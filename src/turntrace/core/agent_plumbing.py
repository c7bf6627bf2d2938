"""Takes the plumbing out of the traces of coding agents, and hangs what matters where it belongs.

Codex makes hundreds of spans in a turn, opencode a thousand: locks, files, queries of its store. They run
beside each other and outlive their parents, so that a critical path led through them would tell nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from turntrace.core.ancestry import inherited, key_of
from turntrace.core.dialects import classify
from turntrace.core.model import RawSpan

__all__ = ["PLUMBING", "without_plumbing"]

PLUMBING: Final = "plumbing"
"""The dialect of spans that a coding agent's rows do not name."""


class _Joint(NamedTuple):
    """Spans named ``child`` belong below the one named ``parent`` whose id of the tool's call is the same."""

    child: str
    child_id: str
    parent: str
    parent_id: str


_JOINTS: Final = (
    # what opencode does for a tool hangs where its tools were listed, not where the tool was called
    _Joint("Tool.execute", "tool.call_id", "ai.toolCall", "ai.toolCall.id"),
)


def without_plumbing(spans: Sequence[RawSpan]) -> list[RawSpan]:
    """``spans`` without plumbing; what hung on it hangs on the next span above that is kept.

    What hung on plumbing alone takes the parent of the topmost one: a root, or below another process.
    """
    joined = _rejoined(spans)
    plumbing = {key_of(span): span for span in joined if _is_plumbing(span)}
    if not plumbing:
        return list(joined)
    above = inherited(
        plumbing.values(),
        lambda span: None if (span.trace_id, span.parent_id) in plumbing else span.parent_id,
    )
    return [
        replace(span, parent_id=above.get((span.trace_id, span.parent_id or "")))
        if (span.trace_id, span.parent_id) in plumbing
        else span
        for span in joined
        if key_of(span) not in plumbing
    ]


def _is_plumbing(span: RawSpan) -> bool:
    return classify(span.scope, span.name, span.kind, span.attributes).dialect == PLUMBING


def _rejoined(spans: Sequence[RawSpan]) -> Sequence[RawSpan]:
    for joint in _JOINTS:
        parents = {
            (span.trace_id, span.attributes.get(joint.parent_id)): span.span_id
            for span in spans
            if span.name == joint.parent and isinstance(span.attributes.get(joint.parent_id), str)
        }
        if parents:
            spans = [_hung(span, joint, parents) for span in spans]
    return spans


def _hung(span: RawSpan, joint: _Joint, parents: Mapping[tuple[str, object], str]) -> RawSpan:
    if span.name != joint.child:
        return span
    call = span.attributes.get(joint.child_id)
    parent_id = parents.get((span.trace_id, call)) if isinstance(call, str) else None
    return span if parent_id is None else replace(span, parent_id=parent_id)
