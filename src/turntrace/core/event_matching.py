"""Sets what events tell beside the spans that came: what a span tells is not told twice.

A candidate with the id of a tool's call matches the span with that id. Else it matches the span of its phase
that it overlaps most, by half of the shorter one at least. A match fills what the span leaves unsaid; without
one the candidate becomes a span.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from turntrace.core import attributes as names
from turntrace.core.agent_dialects import CODING_AGENTS
from turntrace.core.ancestry import inherited, key_of
from turntrace.core.dialect_facts import FACTS
from turntrace.core.dialects import classify, describe
from turntrace.core.event_spans import Candidate, Decision, Told, waiting
from turntrace.core.event_table import REPORTS
from turntrace.core.model import RawSpan

__all__ = ["with_events"]

_CALL_IDS: Final = (names.TOOL_CALL_ID, "tool_use_id", "call_id", "gen_ai.tool.call_id")
_SLACK_NS: Final = 50_000_000
"""A report may come a little before or after the span of its call."""

_LOOK_BACK: Final = 64
"""How many spans that started earlier are compared with a candidate: a bound on the work."""

_SESSIONS: Final = tuple(sorted({name for agent in CODING_AGENTS for name in FACTS[agent].session}))
"""What coding agents call a session."""

_TOKENS: Final = (names.INPUT_TOKENS, names.OUTPUT_TOKENS, "input_tokens", "output_tokens")
"""Two calls that run together rarely consume the same."""

_GENERATION: Final = "generation"
_TOOL: Final = "tool_execution"

_Group = tuple[str, str]
"""Dialect and phase."""


@dataclass(slots=True, kw_only=True)
class _Known:
    """A span of one phase; ``told_by`` are the kinds of events that it already stands for."""

    span: RawSpan
    session: str
    call: str
    tool: str = ""
    told_by: set[str] = field(default_factory=set)


def with_events(spans: Sequence[RawSpan], told: Told) -> list[RawSpan]:
    """``spans``, filled with what events say of them, and spans for what only events tell."""
    board = _Board(spans)
    for candidate in (*board.reports(), *told.candidates):
        board.set(candidate)
    board.hang_attempts()
    calls = board.ends()
    for decision in told.decisions:
        board.decide(decision, calls)
    return board.result()


class _Board:
    """Spans by dialect and phase in order of start, as they are filled, and those that were missing."""

    def __init__(self, spans: Sequence[RawSpan]) -> None:
        self._spans = spans
        self._groups: dict[_Group, list[_Known]] = {}
        self._added: dict[_Group, list[_Known]] = {}
        self._by_call: dict[tuple[_Group, str], _Known] = {}
        self._sessions = inherited(spans, _session_of)
        for span in sorted(spans, key=lambda one: (one.start_ns, one.span_id)):
            verdict = classify(span.scope, span.name, span.kind, span.attributes)
            if verdict.phase is not None:
                facts = describe(verdict, span.name, span.attributes)
                session = self._sessions.get(key_of(span), "")
                known = _Known(span=span, session=session, call=_call_of(span), tool=facts.tool or "")
                self._know(self._groups, (verdict.dialect, verdict.phase), known)
        self._starts = {group: [one.span.start_ns for one in known] for group, known in self._groups.items()}

    def _know(self, groups: dict[_Group, list[_Known]], group: _Group, known: _Known) -> None:
        groups.setdefault(group, []).append(known)
        if known.call:
            self._by_call.setdefault((group, known.call), known)

    def reports(self) -> Iterator[Candidate]:
        """Spans of plumbing that are read like events, as those."""
        rows = {row.name: row for row in REPORTS}
        for span in self._spans:
            row = rows.get(span.name)
            if row is not None and row.needs in span.attributes:
                copied = {name: span.attributes[name] for name in row.copied if name in span.attributes}
                yield Candidate(
                    span=replace(span, attributes=copied),
                    phase=row.phase,
                    dialect=row.dialect,
                    session=self._sessions.get(key_of(span), ""),
                    source=row.name,
                    fills_only=True,
                )

    def set(self, candidate: Candidate) -> None:
        """Match a candidate with a span, or keep it as one that is missing."""
        group = candidate.dialect, candidate.phase
        known = self._by_call.get((group, candidate.call)) if candidate.call else None
        known = known or self._overlapped(group, candidate)
        if known is not None:
            known.told_by.add(candidate.source)
            filled = {**candidate.span.attributes, **known.span.attributes}
            known.span = replace(known.span, attributes=filled)
        elif not candidate.fills_only:
            added = _Known(span=candidate.span, session=candidate.session, call=candidate.call)
            added.told_by.add(candidate.source)
            self._know(self._added, group, added)

    def _overlapped(self, group: _Group, candidate: Candidate) -> _Known | None:
        span = candidate.span
        slack_ns = _SLACK_NS if candidate.fills_only else 0
        after = bisect_right(self._starts.get(group, []), span.end_ns + slack_ns)
        near = self._groups.get(group, [])[max(0, after - _LOOK_BACK) : after]
        fitting = (one for one in near if candidate.source not in one.told_by and _agrees(one, candidate))
        best = max(fitting, key=lambda one: _overlap_ns(one.span, span), default=None)
        if best is None:
            return None
        shorter_ns = min(best.span.end_ns - best.span.start_ns, span.end_ns - span.start_ns)
        needed_ns = -slack_ns if candidate.fills_only else shorter_ns / 2
        return best if _overlap_ns(best.span, span) >= needed_ns else None

    def hang_attempts(self) -> None:
        """Hang each attempt below the model call around it, whichever way that one is told."""
        for (dialect, phase), attempts in self._added.items():
            if phase != "provider_connect":
                continue
            calls = sorted(self._all((dialect, _GENERATION)), key=lambda one: one.span.start_ns)
            starts = [one.span.start_ns for one in calls]
            for attempt in attempts:
                middle_ns = (attempt.span.start_ns + attempt.span.end_ns) // 2
                after = bisect_right(starts, middle_ns)
                near = (one.span for one in reversed(calls[max(0, after - _LOOK_BACK) : after]))
                around = next((span for span in near if span.end_ns >= middle_ns), None)
                if around is not None:
                    attempt.span = _below(around, attempt.span)

    def _all(self, group: _Group) -> list[_Known]:
        return [*self._groups.get(group, []), *self._added.get(group, [])]

    def ends(self) -> dict[str, list[int]]:
        """When model calls ended, by session, in order."""
        ends: dict[str, list[int]] = {}
        for dialect, phase in {*self._groups, *self._added}:
            if phase == _GENERATION:
                for one in self._all((dialect, phase)):
                    ends.setdefault(one.session, []).append(one.span.end_ns)
        return {session: sorted(found) for session, found in ends.items()}

    def decide(self, decision: Decision, ends: dict[str, list[int]]) -> None:
        """Make a wait of a decision: from the start of its tool, else from the end of the call before it."""
        tool = self._by_call.get(((decision.row.dialect, _TOOL), decision.call)) if decision.call else None
        at_ns = decision.event.at_ns
        mine = ends.setdefault(decision.session, [])
        if tool is not None and tool.span.start_ns <= at_ns <= tool.span.end_ns:
            wait = waiting(decision, tool.span.start_ns)
            self.set(replace(wait, span=_below(tool.span, wait.span)))
        elif before := bisect_right(mine, at_ns):
            self.set(waiting(decision, mine[before - 1]))
        # the next one is asked for when this one is decided
        mine.insert(bisect_right(mine, at_ns), at_ns)

    def result(self) -> list[RawSpan]:
        """All spans: as they came, filled, and those that were missing."""
        filled = {key_of(one.span): one.span for group in self._groups.values() for one in group}
        kept = [filled.get(key_of(span), span) for span in self._spans]
        added = [one.span for group in self._added.values() for one in group]
        here = {key_of(span) for span in (*kept, *added)}
        # below the span that the event was written under, if that one is here
        return kept + [
            span if (span.trace_id, span.parent_id) in here else replace(span, parent_id=None)
            for span in added
        ]


def _session_of(span: RawSpan) -> str | None:
    """The session that a span tells, plumbing too."""
    found = (span.attributes.get(name) for name in _SESSIONS)
    return next((session for session in found if isinstance(session, str) and session), None)


def _below(parent: RawSpan, span: RawSpan) -> RawSpan:
    return replace(span, trace_id=parent.trace_id, parent_id=parent.span_id)


def _call_of(span: RawSpan) -> str:
    found = (span.attributes.get(name) for name in _CALL_IDS)
    return next((call for call in found if isinstance(call, str)), "")


def _overlap_ns(one: RawSpan, other: RawSpan) -> int:
    """How long two spans run together; below zero how far they are apart."""
    return min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns)


def _agrees(known: _Known, candidate: Candidate) -> bool:
    """Whether nothing that both tell tells them apart: the session, the tool, the id of its call, tokens."""
    mine, others = known.span.attributes, candidate.span.attributes
    tools = known.tool, others.get(names.TOOL_NAME)
    pairs = ((known.session, candidate.session), (known.call, candidate.call), tools)
    return all(not one or not other or one == other for one, other in pairs) and all(
        str(mine[name]) == str(others[name]) for name in _TOKENS if name in mine and name in others
    )
