"""The turns inside a turn: sub-agents, read off the outer turn's spans.

A sub-agent is structure of the outer turn and a turn of its own. It is written once, as structure that
carries a run id and an agent; its own turn is derived, so no span stands in a file twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from turntrace.core.model import Span, Turn
from turntrace.core.outcomes import Outcome, TurnStatus

__all__ = ["nested_turns"]

_STATUSES: Final[Mapping[Outcome, TurnStatus]] = {
    "incomplete": "interrupted",
    "error": "error",
    "cancelled": "cancelled",
}


def nested_turns(turn: Turn) -> Iterator[Turn]:
    """The turns of the sub-agents of ``turn``, outer before inner, with what lies below each.

    Counters are those that spans tell (model_requests, tool_calls); times are absolute, as the outer's.
    """
    roots = [span for span in turn.spans if span.run_id is not None]
    if not roots:
        return
    owners = _owners(turn, {span.span_id for span in roots})
    inside: dict[str, list[Span]] = {span.span_id: [] for span in roots}
    for span in turn.spans:
        for owner in owners(span):
            inside[owner].append(span)
    run_ids = {span.span_id: span.run_id or "" for span in roots}
    for root in sorted(roots, key=lambda span: (span.start_ns, span.span_id)):
        above = next(iter(owners(root)), None)
        yield _nested(turn, root, inside[root.span_id], turn.run_id if above is None else run_ids[above])


class _Owners:
    """The sub-agents above a span, nearest first; each chain of parents is walked once."""

    def __init__(self, parents: Mapping[str, str | None], roots: set[str]) -> None:
        self._parents = parents
        self._roots = roots
        self._nearest: dict[str, str | None] = {}

    def __call__(self, span: Span) -> Iterator[str]:
        owner = self._nearest_above(span.span_id)
        while owner is not None:
            yield owner
            owner = self._nearest_above(owner)

    def _nearest_above(self, span_id: str) -> str | None:
        path: list[str] = []
        seen: set[str] = set()
        at: str | None = span_id
        found: str | None = None
        while at is not None and at not in seen:
            if at in self._nearest:
                found = self._nearest[at]
                break
            seen.add(at)
            path.append(at)
            at = self._parents.get(at)
            if at in self._roots:
                found = at
                break
        for step in path:
            self._nearest[step] = found
        return found


def _owners(turn: Turn, roots: set[str]) -> _Owners:
    return _Owners({span.span_id: span.parent_id for span in turn.spans}, roots)


def _nested(turn: Turn, root: Span, spans: list[Span], parent_run_id: str) -> Turn:
    ids = {span.span_id for span in spans}
    models = [span for span in spans if span.phase == "generation"]
    called = {usage.span_id for usage in turn.usage}
    counters = {
        "model_requests": sum(span.span_id in called or span.parent_id not in ids for span in models),
        "tool_calls": sum(span.phase == "tool_execution" and span.tool is not None for span in spans),
    }
    return replace(
        turn,
        run_id=root.run_id or "",
        parent_run_id=parent_run_id,
        spans=tuple(spans),
        started_ns=root.start_ns,
        completed_ns=None if root.outcome == "incomplete" else root.end_ns,
        span_id=root.span_id,
        root_name=root.name,
        agent=root.agent,
        model=models[0].model if models else None,
        status=_STATUSES.get(root.outcome, "ok"),
        first_chunk_ns=None,
        first_token_ns=None,
        first_visible_ns=None,
        first_useful_ns=None,
        rounds=max((span.round or 0 for span in models), default=0),
        counters=counters,
        usage=tuple(usage for usage in turn.usage if usage.span_id in ids),
        marks=tuple(mark for mark in turn.marks if mark.span_id in ids),
        events=(),
        warnings=(),
    )
