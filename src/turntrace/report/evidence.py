"""What the spans of a turn prove: who waited and why, what ran beside what, what the turn waited for."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from turntrace.core.attributes import REASON
from turntrace.core.results import PathSection, SpanTimes
from turntrace.report.case import Case, name_of, ran_ns
from turntrace.report.strings import Data, Words, joined

__all__ = ["Finding", "Waits", "hidden_tools", "on_path", "spans_of", "waits"]

_LISTED_REASONS = 3


def spans_of(case: Case, phase: str) -> Iterator[SpanTimes]:
    """The spans of a phase in order of start."""
    return (times for times in case.attribution.spans if times.phase == phase)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to change: where, the evidence in words, and the most it can save."""

    code: str
    label: Words
    message: Words
    saves_ns: int
    span_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """The waits of one phase: how often, for which reasons, in which rounds, and whether alone."""

    spans: tuple[SpanTimes, ...]
    reasons: tuple[tuple[str, int], ...]
    rounds: tuple[int, ...]
    critical_ns: int
    alone: bool

    def why(self) -> Words:
        """The reasons, the most frequent first: ``429``, or ``429 x2, timeout``."""
        named: list[Words] = [
            (Data(reason), f" x{count}" if count > 1 else "")
            for reason, count in self.reasons[:_LISTED_REASONS]
        ]
        return joined(named, ", ")

    def where(self) -> str:
        """The rounds in words, empty when no span knows its round."""
        if len(self.rounds) == 1:
            return f"in round {self.rounds[0]}"
        return f"in {len(self.rounds)} rounds" if self.rounds else ""


def waits(case: Case, phase: str) -> Waits:
    """The waits of ``phase``; alone means that no other phase was active beside any of them."""
    spans = tuple(spans_of(case, phase))
    reasons = Counter(
        str(times.span.attributes[REASON]) for times in spans if REASON in times.span.attributes
    )
    rounds = {case.rounds[times.span.span_id] for times in spans}
    return Waits(
        spans=spans,
        reasons=tuple(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
        rounds=tuple(sorted(number for number in rounds if number is not None)),
        critical_ns=sum(times.critical_ns or 0 for times in spans),
        alone=all(times.wall_share_ns == times.exclusive_ns for times in spans),
    )


def on_path(case: Case) -> frozenset[str]:
    """The spans that the critical path runs through, themselves or inside their descendants."""
    reached: set[str] = set()
    for section in case.attribution.critical_path:
        at = section.span_id
        while at is not None and at not in reached and at in case.by_id:
            reached.add(at)
            at = case.by_id[at].parent_id
    return frozenset(reached)


def hidden_tools(case: Case, tools: Collection[str]) -> dict[str, Words]:
    """For each of the tools what the turn waited for most while its longest call ran.

    Tools whose call ran beside no phase of the critical path are left out.
    """
    longest: dict[str, SpanTimes] = {}
    for times in spans_of(case, "tool_execution"):
        tool = times.span.tool
        if (
            tool is not None
            and tool in tools
            and (tool not in longest or ran_ns(times) > ran_ns(longest[tool]))
        ):
            longest[tool] = times
    path = sorted(case.attribution.critical_path, key=lambda section: section.start_ns) if longest else []
    found = {tool: _beside(case, times, path) for tool, times in longest.items()}
    return {tool: words for tool, words in found.items() if words}


def _beside(case: Case, call: SpanTimes, path: Sequence[PathSection]) -> Words:
    """The phase or tool that holds most of ``path``, which is in order of time, during the call."""
    start, end = call.span.start_ns, call.span.end_ns
    ns_by_name: Counter[Words] = Counter()
    at = bisect_right(path, start, key=lambda section: section.end_ns)
    while at < len(path) and path[at].start_ns < end:
        section = path[at]
        other = case.by_id.get(section.span_id or "")
        if other is not None and other.phase is not None:
            ns_by_name[name_of(other)] += min(end, section.end_ns) - max(start, section.start_ns)
        at += 1
    return max(ns_by_name, key=lambda name: ns_by_name[name], default=())
