"""What to fix first: only what the spans prove, lies on the critical path and can be changed."""

from collections import Counter
from collections.abc import Iterable, Iterator

from turntrace.report.call_findings import cache_findings, repeat_findings
from turntrace.report.case import Case
from turntrace.report.evidence import Finding, Waits, waits
from turntrace.report.path_parts import length_ns
from turntrace.report.rounding import Unit, percent_text, quotient
from turntrace.report.strings import Words
from turntrace.report.tool_calls import tool_findings

__all__ = ["find", "observe"]

_LEAST_PERCENT = 1
_BOUND_PERCENT = 25
"""From this part of the wall on a turn is bound by its approvals."""
_DARK_PERCENT = 5
"""From this part of the wall on time that nothing accounts for is a finding."""
_STORM = 3


def find(case: Case, unit: Unit) -> tuple[Finding, ...]:
    """The findings of a turn worth 1 % of its wall or more, the largest saving first."""
    wall_ns = case.attribution.wall_ns
    if not wall_ns:
        return ()
    found = [
        *_waiting(case),
        *tool_findings(case, unit),
        *cache_findings(case),
        *repeat_findings(case),
    ]
    found = [finding for finding in found if finding.saves_ns * 100 >= wall_ns * _LEAST_PERCENT]
    return _largest_first(found)


def observe(case: Case, unit: Unit) -> tuple[Finding, ...]:
    """What else held the turn: a person, and time that nothing accounts for. Neither is the agent's to speed up."""
    wall_ns = case.attribution.wall_ns
    return _largest_first([*_approvals(case, wall_ns), *_gaps(case, unit, wall_ns)]) if wall_ns else ()


def _largest_first(found: Iterable[Finding]) -> tuple[Finding, ...]:
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
                code="retry_storm" if code == "retry" and _in_one_call(case, found) >= _STORM else code,
                label=(phase,),
                message=describe(case, found),
                saves_ns=found.critical_ns,
                span_ids=tuple(times.span.span_id for times in found.spans if times.critical_ns),
            )


def _retry(case: Case, found: Waits) -> Words:
    count = len(found.spans)
    why = ("one ", *found.why()) if count == 1 and found.reasons else (_times(count, "one wait", "waits"),)
    if count > 1 and found.reasons:
        why = (*why, " (", *found.why(), ")")
    where = f" {found.where()}" if found.rounds else ""
    if (most := _in_one_call(case, found)) >= _STORM:
        where += f", {most} of them in one call"
    alone = f"; nothing else ran while {'it' if count == 1 else 'they'} waited" if found.alone else ""
    return (*why, where, alone)


def _in_one_call(case: Case, found: Waits) -> int:
    """The most waits that one call, or where that is not told one round, had."""
    counts: Counter[str | int] = Counter()
    for times in found.spans:
        above = case.by_id.get(times.parent_id or "")
        where = (
            case.rounds[times.span.span_id]
            if above is None or above.phase != "generation"
            else times.parent_id
        )
        if where is not None:
            counts[where] += 1
    return max(counts.values(), default=0)


def _queue(_: Case, found: Waits) -> Words:
    where = f" {found.where()}" if found.rounds else ""
    return (f"{_times(len(found.spans), 'one call', 'calls')} waited for a free slot{where}",)


def _compaction(_: Case, found: Waits) -> Words:
    where = f" {found.where()}" if found.rounds else ""
    return (f"{_times(len(found.spans), 'one compaction', 'compactions')}{where} kept the turn waiting",)


def _consume(_: Case, found: Waits) -> Words:
    return (f"the caller paused {_times(len(found.spans), 'once', 'times')} between two items of a stream",)


def _approvals(case: Case, wall_ns: int) -> Iterator[Finding]:
    """Approvals that the turn mostly waited for: what is asked, and how often, is the author's choice."""
    found = waits(case, "permission_wait")
    if found.critical_ns * 100 >= wall_ns * _BOUND_PERCENT:
        often = _times(len(found.spans), "one approval", "approvals")
        share = percent_text(quotient(found.critical_ns * 1000, wall_ns))
        yield Finding(
            code="approval_bound",
            label=("permission_wait",),
            message=(
                f"{often} held the turn for {share} % of its wall; ask for less, or for several at once",
            ),
            saves_ns=found.critical_ns,
            span_ids=tuple(times.span.span_id for times in found.spans if times.critical_ns),
        )


def _gaps(case: Case, unit: Unit, wall_ns: int) -> Iterator[Finding]:
    """Time that the turn waited for and that no phase accounts for; the table's note says where it lies."""
    attribution = case.attribution
    dark = [section for section in attribution.critical_path if _phase_of(case, section.span_id) is None]
    saves_ns = sum(length_ns(dark, gap.start_ns, gap.end_ns) for gap in attribution.gaps)
    if not saves_ns or saves_ns * 100 < wall_ns * _DARK_PERCENT:
        return
    longest_ns = max(gap.end_ns - gap.start_ns for gap in attribution.gaps)
    stretches = _times(len(attribution.gaps), "one stretch", "stretches")
    yield Finding(
        code="gap",
        label=("unattributed",),
        message=(f"no phase covers {stretches}, the longest {unit.with_name(longest_ns)}; give it a phase",),
        saves_ns=saves_ns,
        span_ids=tuple(dict.fromkeys(section.span_id for section in dark if section.span_id is not None)),
    )


def _phase_of(case: Case, span_id: str | None) -> str | None:
    times = case.by_id.get(span_id or "")
    return None if times is None else times.phase
