"""What to fix first: only what the spans prove, lies on the critical path and can be changed."""

from collections.abc import Iterator

from turntrace.report.case import Case
from turntrace.report.evidence import Finding, Waits, waits
from turntrace.report.rounding import Unit
from turntrace.report.strings import Words
from turntrace.report.tool_calls import tool_findings

__all__ = ["find"]

_LEAST_PERCENT = 1


def find(case: Case, unit: Unit) -> tuple[Finding, ...]:
    """The findings of a turn worth 1 % of its wall or more, the largest saving first."""
    wall_ns = case.attribution.wall_ns
    if not wall_ns:
        return ()
    found = [*_waiting(case), *tool_findings(case, unit)]
    found = [finding for finding in found if finding.saves_ns * 100 >= wall_ns * _LEAST_PERCENT]
    return tuple(sorted(found, key=lambda finding: (-finding.saves_ns, finding.code, finding.span_ids)))


def _times(count: int, one: str, many: str) -> str:
    return one if count == 1 else f"{count} {many}"


def _waiting(case: Case) -> Iterator[Finding]:
    """Phases that are nothing but lost time when the turn waits for them."""
    for code, phase, describe in (
        ("retry", "retry_wait", _retry),
        ("retry", "reconnect_wait", _retry),
        ("queue", "provider_queue", _queue),
        ("queue", "tool_queue", _queue),
        ("compaction", "compaction", _compaction),
        ("stream_consume", "stream_consume", _consume),
    ):
        found = waits(case, phase)
        if found.critical_ns:
            yield Finding(
                code=code,
                label=(phase,),
                message=describe(found),
                saves_ns=found.critical_ns,
                span_ids=tuple(times.span.span_id for times in found.spans if times.critical_ns),
            )


def _retry(found: Waits) -> Words:
    count = len(found.spans)
    why = ("one ", *found.why()) if count == 1 and found.reasons else (_times(count, "one wait", "waits"),)
    if count > 1 and found.reasons:
        why = (*why, " (", *found.why(), ")")
    where = f" {found.where()}" if found.rounds else ""
    alone = f"; nothing else ran while {'it' if count == 1 else 'they'} waited" if found.alone else ""
    return (*why, where, alone)


def _queue(found: Waits) -> Words:
    where = f" {found.where()}" if found.rounds else ""
    return (f"{_times(len(found.spans), 'one call', 'calls')} waited for a free slot{where}",)


def _compaction(found: Waits) -> Words:
    where = f" {found.where()}" if found.rounds else ""
    return (f"{_times(len(found.spans), 'one compaction', 'compactions')}{where} kept the turn waiting",)


def _consume(found: Waits) -> Words:
    return (f"the caller paused {_times(len(found.spans), 'once', 'times')} between two items of a stream",)
