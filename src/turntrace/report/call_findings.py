"""Findings about model calls and repeated work: a cold prompt cache, a prefix that changed, the same call again."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from turntrace.core.attributes import CALL_HASH, FIRST_TOKEN_MS, TIME_TO_FIRST_CHUNK
from turntrace.core.model import Usage
from turntrace.core.results import SpanTimes
from turntrace.report.case import Case, name_of
from turntrace.report.evidence import Finding, spans_of
from turntrace.report.path_parts import held_by, length_ns
from turntrace.report.rounding import count_text, quotient
from turntrace.report.strings import Data, Words

__all__ = ["cache_findings", "repeat_findings"]

_LEAST_TOKENS: Final = 1024
"""Providers cache prompts from about this length on; a shorter one says nothing of a cache."""
_COLD_PERCENT: Final = 10
_WARM_PERCENT: Final = 50
_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """A model call that told its tokens and when its first token came."""

    times: SpanTimes
    usage: Usage
    first_ns: int
    changed: str

    @property
    def cached_percent(self) -> int:
        return quotient((self.usage.cached_input_tokens or 0) * 100, self.usage.input_tokens or 1)

    @property
    def is_cold(self) -> bool:
        return self.cached_percent < _COLD_PERCENT


def cache_findings(case: Case) -> Iterator[Finding]:
    """Requests whose prompt was read anew while others of the turn came from the provider's cache.

    Worth at most what their first token came later than that of the warm ones, as far as the turn waited.
    """
    requests = list(_requests(case))
    warm = sorted(one.first_ns for one in requests if one.cached_percent >= _WARM_PERCENT)
    if not warm:
        return
    typical_ns = warm[(len(warm) - 1) // 2]
    first = requests[0].times.span.span_id
    held = held_by(case, [one.times.span.span_id for one in requests])
    for one in requests:
        span = one.times.span
        if not one.is_cold:
            continue
        on_path_ns = length_ns(held[span.span_id], span.start_ns, span.start_ns + one.first_ns)
        saves_ns = min(one.first_ns - typical_ns, on_path_ns)
        if saves_ns > 0:
            is_first = span.span_id == first
            yield Finding(
                code="cold_cache" if is_first else "cache_break",
                label=("generation",),
                message=_cold(one, case, len(warm), is_first=is_first),
                saves_ns=saves_ns,
                span_ids=(span.span_id,),
            )


def _cold(one: _Request, case: Case, warm: int, *, is_first: bool) -> Words:
    number = case.rounds[one.times.span.span_id]
    which = (
        "the first request" if is_first else f"the request of round {number}" if number else "a later request"
    )
    told = f"{one.cached_percent} % of {count_text(one.usage.input_tokens or 0)} tokens cached"
    why: Words = ("; changed: ", Data(one.changed)) if one.changed and not is_first else ()
    return (f"{which} had {told}, {warm} other{'s' if warm > 1 else ''} most", *why)


def _requests(case: Case) -> Iterator[_Request]:
    """The calls that told what is needed, in order."""
    usage = {one.span_id: one for one in case.turn.usage if one.provenance == "reported"}
    calls = list(spans_of(case, "generation"))
    changes = _changes(case, len(calls))
    for times, changed in zip(calls, changes, strict=True):
        used = usage.get(times.span.span_id)
        first_ns = _first_ns(times)
        if used is None or first_ns is None or used.cached_input_tokens is None:
            continue
        if (used.input_tokens or 0) >= _LEAST_TOKENS:
            yield _Request(times=times, usage=used, first_ns=first_ns, changed=changed)


def _changes(case: Case, calls: int) -> list[str]:
    """What of each request's prefix changed, by the hashes stamped with it; only where each call has its own."""
    reasons = [
        str(one.fields.get("invalidation_reason", ""))
        for one in case.turn.events
        if one.type == "prefix_hash"
    ]
    if len(reasons) != calls:
        return [""] * calls
    return ["" if reason in {"initial", "unchanged"} else reason.replace(",", ", ") for reason in reasons]


def _first_ns(times: SpanTimes) -> int | None:
    """How long after its start the call's first token, else its first chunk, came."""
    for name, unit_ns in ((FIRST_TOKEN_MS, _NS_PER_MS), (TIME_TO_FIRST_CHUNK, _NS_PER_S)):
        value = times.span.attributes.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return round(value * unit_ns)
    return None


def repeat_findings(case: Case) -> Iterator[Finding]:
    """Tool calls whose name and arguments had been called with before, by salted hashes of both.

    Worth what the turn waited for the repeats.
    """
    same: dict[tuple[Words, str], list[SpanTimes]] = defaultdict(list)
    for times in spans_of(case, "tool_execution"):
        stamped = times.span.attributes.get(CALL_HASH)
        if isinstance(stamped, str) and times.span.outcome == "ok":
            same[name_of(times), stamped].append(times)
    by_tool: dict[Words, list[list[SpanTimes]]] = defaultdict(list)
    for (name, _), calls in same.items():
        if len(calls) > 1:
            by_tool[name].append(calls)
    for name, groups in by_tool.items():
        yield from _repeated(case, name, groups)


def _repeated(case: Case, name: Words, groups: Sequence[Sequence[SpanTimes]]) -> Iterator[Finding]:
    repeats = [times.span.span_id for calls in groups for times in calls[1:]]
    held = held_by(case, repeats)
    saves_ns = sum(length_ns(sections) for sections in held.values())
    if saves_ns:
        calls = f"{len(repeats)} call{'s' if len(repeats) > 1 else ''}"
        yield Finding(
            code="repeated_call",
            label=name,
            message=(f"{calls} with arguments that the same turn had called it with before",),
            saves_ns=saves_ns,
            span_ids=tuple(repeats),
        )
