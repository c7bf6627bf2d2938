"""What turntrace knows of the spans of finished turns, as attributes: what ``collect`` sends on and ``send`` sends."""

from collections.abc import Iterable
from typing import Final

from turntrace.core.attributes import (
    EXCLUSIVE_MS,
    METRICS,
    OUTCOME,
    PARENT_RUN_ID,
    PHASE,
    REPEATED,
    RETRIED_MODEL,
    ROUND,
    TURN_AGENT,
    Scalar,
)
from turntrace.core.codec.encode import usage_totals
from turntrace.core.live import LiveTotals
from turntrace.core.model import Turn
from turntrace.core.results import Attribution, SpanTimes
from turntrace.core.usage import TOKEN_FIELDS
from turntrace.otel.answer import LiveFacts, answer

__all__ = ["Attributes", "facts_of_turns"]

_NS_PER_MS: Final = 1_000_000
_CALLS: Final = frozenset({"generation", "tool_execution"})

Attributes = dict[str, dict[str, Scalar]]


def facts_of_turns(turns: Iterable[tuple[Turn, Attribution]]) -> Attributes:
    """The attributes that spans get, by span id; nested turns have their own answers.

    Spans say that the collector is to make metrics of them: nobody else did.
    """
    found: Attributes = {}
    for turn, attribution in turns:
        whose: dict[str, Scalar] = {METRICS: "collector"}
        if turn.agent is not None:
            whose[TURN_AGENT] = turn.agent
        if turn.parent_run_id is None:
            repeated = _repeated(attribution.spans)
            models = {times.span.span_id: times.span.model for times in attribution.spans}
            for times in attribution.spans:
                found[times.span.span_id] = whose | _facts(times)
                if times.phase == "retry_wait" and (model := models.get(times.parent_id or "") or turn.model):
                    found[times.span.span_id][RETRIED_MODEL] = model
                if times.span.span_id in repeated:
                    found[times.span.span_id][REPEATED] = True
        if turn.span_id is not None:
            found[turn.span_id] = found.get(turn.span_id, whose) | _answer(turn, attribution)
    return found


def _facts(times: SpanTimes) -> dict[str, Scalar]:
    facts: dict[str, Scalar] = {
        EXCLUSIVE_MS: times.exclusive_ns / _NS_PER_MS,
        OUTCOME: times.span.outcome,
    }
    if times.phase is not None:
        facts[PHASE] = times.phase
    if times.span.round is not None:
        facts[ROUND] = times.span.round
    return facts


def _repeated(spans: Iterable[SpanTimes]) -> set[str]:
    """Spans of calls that lie in a call of their kind: the call seen again. Each span is looked at once."""
    by_id = {times.span.span_id: times for times in spans}
    phases_above: dict[str, frozenset[str]] = {}
    found: set[str] = set()
    for span_id in by_id:
        path: list[str] = []
        at = span_id
        while at in by_id and at not in phases_above:
            phases_above[at] = frozenset()  # a cycle ends here
            path.append(at)
            at = by_id[at].parent_id or ""
        known = phases_above.get(at, frozenset())
        for one in reversed(path):
            times = by_id[one]
            if times.phase in known:
                found.add(one)
            if times.span.agent is not None:
                known = frozenset()  # a nested agent's calls are its own
            elif times.phase in _CALLS:
                known |= {times.phase}
            phases_above[one] = known
    return found


def _answer(turn: Turn, attribution: Attribution) -> dict[str, Scalar]:
    totals = LiveTotals(
        wall_ns=attribution.wall_ns or 0,
        wall_ns_by_phase={phase.name: phase.wall_share_ns or 0 for phase in attribution.phases},
        unattributed_ns=attribution.unattributed_ns or 0,
        active_ns=attribution.active_ns or 0,
    )
    usage = usage_totals(turn)
    first = turn.first_token_ns
    facts = LiveFacts(
        run_id=turn.run_id,
        status=turn.status,
        rounds=turn.rounds or 0,
        model_requests=turn.counters.get("model_requests", 0),
        tool_calls=turn.counters.get("tool_calls", 0),
        retries=turn.counters.get("retry_count", 0),
        compactions=turn.counters.get("compaction_count", 0),
        usage_complete=usage.complete,
        tokens={name: getattr(usage, name) for name in TOKEN_FIELDS if name != "total_tokens"},
        first_token_ns=None if first is None or turn.started_ns is None else first - turn.started_ns,
        max_tools_at_once=attribution.max_concurrency.get("tool_execution", 0),
        detached=any(times.detached for times in attribution.spans),
        counters=turn.counters,
    )
    own: dict[str, Scalar] = {PHASE: "turn"}
    if turn.parent_run_id is not None:
        own[PARENT_RUN_ID] = turn.parent_run_id
    if attribution.root_exclusive_ns is not None:
        own[EXCLUSIVE_MS] = attribution.root_exclusive_ns / _NS_PER_MS
    return own | answer(totals, facts)
