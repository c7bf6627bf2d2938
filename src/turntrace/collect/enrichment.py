"""Spans with what turntrace knows of them, as messages to be sent on; turn spans carry the whole answer."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from turntrace.collect.gathering import Trace
from turntrace.collect.messages import request_class
from turntrace.collect.request_spans import Origin
from turntrace.collect.turn_writer import attributed
from turntrace.core.attributes import EXCLUSIVE_MS, OUTCOME, PHASE, ROUND, Scalar
from turntrace.core.codec.encode import usage_totals
from turntrace.core.live import LiveTotals
from turntrace.core.model import Turn
from turntrace.core.results import Attribution
from turntrace.core.usage import TOKEN_FIELDS
from turntrace.otel.answer import LiveFacts, answer

__all__ = ["CUT_PREFIX", "enriched_requests", "facts_of_turns"]

_NS_PER_MS: Final = 1_000_000
_MAX_REQUEST_BYTES: Final = 2 << 20
_MAX_VALUE_BYTES: Final = 64 << 10
CUT_PREFIX: Final = "turntrace.original_length."
"""Before the name of an attribute that was cut: its length before, in characters."""

Attributes = dict[str, dict[str, Scalar]]


def facts_of_turns(turns: Iterable[tuple[Turn, Attribution | None]]) -> Attributes:
    """The attributes that spans get, by span id; nested turns have their own answers."""
    found: Attributes = {}
    for turn, given in turns:
        attribution = attributed(turn) if given is None else given
        if turn.parent_run_id is None:
            for times in attribution.spans:
                facts: dict[str, Scalar] = {
                    EXCLUSIVE_MS: times.exclusive_ns / _NS_PER_MS,
                    OUTCOME: times.span.outcome,
                }
                if times.phase is not None:
                    facts[PHASE] = times.phase
                if times.span.round is not None:
                    facts[ROUND] = times.span.round
                found[times.span.span_id] = facts
        if turn.span_id is not None:
            found[turn.span_id] = found.get(turn.span_id, {}) | _answer(turn, attribution)
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
    if attribution.root_exclusive_ns is not None:
        own[EXCLUSIVE_MS] = attribution.root_exclusive_ns / _NS_PER_MS
    return own | answer(totals, facts)


def enriched_requests(traces: Iterable[Trace], facts: Attributes) -> Iterator[bytes]:
    """Requests of at most about 2 MB with all spans of ``traces``, those of no turn too."""
    request = request_class("traces")()
    size_bytes = 0
    last: tuple[int, int] = (0, 0)
    for origin, attributes in _enriched(traces, facts):
        place = id(origin.resource_spans), id(origin.scope_spans)
        if size_bytes > _MAX_REQUEST_BYTES:
            yield request.SerializeToString()
            request.Clear()
            size_bytes, last = 0, (0, 0)
        if place != last:
            _begin_scope(request, origin)
            last = place
        span = request.resource_spans[-1].scope_spans[-1].spans.add()
        span.CopyFrom(origin.span)
        _cut(span)
        _set(span, attributes)
        size_bytes += span.ByteSize()
    if size_bytes:
        yield request.SerializeToString()


def _enriched(traces: Iterable[Trace], facts: Attributes) -> Iterator[tuple[Origin, Mapping[str, Scalar]]]:
    for trace in traces:
        for span_id, arrived in trace.spans.items():
            if arrived.origin is not None:
                yield arrived.origin, facts.get(span_id, {})


def _begin_scope(request: Any, origin: Origin) -> None:
    resource_spans = request.resource_spans.add(schema_url=origin.resource_spans.schema_url)
    resource_spans.resource.CopyFrom(origin.resource_spans.resource)
    scope_spans = resource_spans.scope_spans.add(schema_url=origin.scope_spans.schema_url)
    scope_spans.scope.CopyFrom(origin.scope_spans.scope)


def _cut(span: Any) -> None:
    """Cut values that would make the request too large for its receiver; the neighbours are to arrive."""
    for holder in (span, *span.events):
        for pair in list(holder.attributes):
            if pair.ByteSize() <= _MAX_VALUE_BYTES:
                continue
            kind = pair.value.WhichOneof("value")
            length = (
                len(getattr(pair.value, kind)) if kind in {"string_value", "bytes_value"} else pair.ByteSize()
            )
            if kind == "string_value":
                pair.value.string_value = pair.value.string_value[: _MAX_VALUE_BYTES // 4]
            else:
                pair.value.string_value = ""
            holder.attributes.add(key=CUT_PREFIX + pair.key).value.int_value = length


def _set(span: Any, attributes: Mapping[str, Scalar]) -> None:
    if not attributes:
        return
    there = {pair.key: pair for pair in span.attributes if pair.key in attributes}
    for name, value in attributes.items():
        pair = there.get(name) or span.attributes.add(key=name)
        if isinstance(value, bool):
            pair.value.bool_value = value
        elif isinstance(value, int):
            pair.value.int_value = value
        elif isinstance(value, float):
            pair.value.double_value = value
        else:
            pair.value.string_value = value
