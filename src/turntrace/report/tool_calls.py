"""Findings about tool calls that run side by side, or could."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from turntrace.report.case import Case, name_of
from turntrace.report.evidence import Finding, on_path, spans_of
from turntrace.report.path_parts import held_by, length_ns
from turntrace.report.rounding import Unit
from turntrace.report.strings import Words

__all__ = ["tool_findings"]

_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A tool call cut to the turn; ``waited_for`` when the critical path runs through it."""

    span_id: str
    name: Words
    start_ns: int
    end_ns: int
    round: int | None
    waited_for: bool

    @property
    def ran_ns(self) -> int:
        return max(self.end_ns - self.start_ns, 0)


def tool_findings(case: Case, unit: Unit) -> Iterator[Finding]:
    """Calls that ran on alone after those beside them, and calls that ran one after another."""
    tails: dict[Words, list[tuple[_Call, _Call]]] = defaultdict(list)
    for group in _groups(case):
        for cluster in _clusters(group):
            if len(cluster) >= _PAIR:
                second, last = sorted(cluster, key=lambda call: call.end_ns)[-_PAIR:]
                if last.waited_for and second.end_ns < last.end_ns:
                    tails[last.name].append((second, last))
        yield from _serial(case, group, unit)
    for pairs in tails.values():
        yield from _tail(case, pairs, unit)


def _groups(case: Case) -> list[list[_Call]]:
    """The calls below one phase span (or none), in order of start.

    A batch around calls is no call, and a call in which a person was asked is not the agent's to speed up.
    """
    tools = list(spans_of(case, "tool_execution"))
    batches = {times.phase_parent_id for times in tools}
    asked = {times.phase_parent_id for times in spans_of(case, "permission_wait")}
    path = on_path(case)
    last_ns = case.turn.completed_ns or 0
    groups: dict[str | None, list[_Call]] = defaultdict(list)
    for times in tools:
        span = times.span
        if span.span_id not in batches and span.span_id not in asked:
            call = _Call(
                span_id=span.span_id,
                name=name_of(times),
                start_ns=span.start_ns,
                end_ns=min(span.end_ns, last_ns),
                round=case.rounds[span.span_id],
                waited_for=span.span_id in path,
            )
            groups[times.phase_parent_id].append(call)
    return list(groups.values())


def _clusters(calls: Sequence[_Call]) -> Iterator[list[_Call]]:
    """The calls, at least one, cut into runs that overlap."""
    cluster: list[_Call] = []
    end_ns = 0
    for call in calls:
        if cluster and call.start_ns >= end_ns:
            yield cluster
            cluster = []
        end_ns = max(end_ns, call.end_ns) if cluster else call.end_ns
        cluster.append(call)
    yield cluster


def _tail(case: Case, pairs: Sequence[tuple[_Call, _Call]], unit: Unit) -> Iterator[Finding]:
    """One tool that ran on, once or several times, after the last call beside it was done."""
    held = held_by(case, [last.span_id for _, last in pairs])
    saves_ns = sum(length_ns(held[last.span_id], second.end_ns, last.end_ns) for second, last in pairs)
    ran_on_ns = sum(last.end_ns - second.end_ns for second, last in pairs)
    beside = {second.name for second, _ in pairs}
    done: Words = (*beside.pop(), " was done") if len(beside) == 1 else ("the calls beside it were done",)
    often = f" ({len(pairs)} times in all)" if len(pairs) > 1 else ""
    yield Finding(
        code="tool_tail",
        label=pairs[0][1].name,
        message=(f"ran {unit.with_name(ran_on_ns)} after ", *done, often),
        saves_ns=saves_ns,
        span_ids=tuple(last.span_id for _, last in pairs),
    )


def _serial(case: Case, group: Sequence[_Call], unit: Unit) -> Iterator[Finding]:
    """Calls that one answer of the model asked for together and that never overlapped."""
    rounds: dict[int, list[_Call]] = defaultdict(list)
    for call in group:
        if call.round is not None and call.waited_for:
            rounds[call.round].append(call)
    for number, calls in rounds.items():
        if len(calls) < _PAIR or any(len(cluster) > 1 for cluster in _clusters(calls)):
            continue
        longest_ns = max(call.ran_ns for call in calls)
        held = held_by(case, [call.span_id for call in calls])
        waited_ns = sum(length_ns(sections) for sections in held.values())
        yield Finding(
            code="serial_tools",
            label=("tool_execution",),
            message=(
                f"{len(calls)} calls of round {number} ran one after another; ",
                f"the longest takes {unit.with_name(longest_ns)}",
            ),
            saves_ns=min(sum(call.ran_ns for call in calls) - longest_ns, waited_ns),
            span_ids=tuple(call.span_id for call in calls),
        )
