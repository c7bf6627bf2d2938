"""What happens when a span ends: its exclusive time, its line, its metrics, its enriched copy."""

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from turntrace.core.attributes import (
    EXCLUSIVE_MS,
    METRICS,
    OUTCOME,
    PHASE,
    REASON,
    REPEATED,
    RETRIED_MODEL,
    ROUND,
    TURN_AGENT,
    Scalar,
)
from turntrace.core.dialects import Description, Role, Verdict, classify, describe, has_failed, usage_of
from turntrace.core.late_streams import is_stream_record
from turntrace.core.model import Outcome, SpanStatus
from turntrace.core.usage import richer
from turntrace.otel.closing import Closer
from turntrace.otel.enrich import rebuilt
from turntrace.otel.live_turn import LiveTurn, OpenSpan
from turntrace.otel.measuring import measure_span, turn_point, untold_retries
from turntrace.otel.metrics import TurnMetrics
from turntrace.otel.recording import Recording
from turntrace.otel.span_start import KIND_NAMES, MODEL_PHASE, OWN_SCOPE, TOOL_PHASE

__all__ = ["SpanEnder", "exported_facts"]

_NS_PER_MS: Final = 1_000_000
_RETRY_PHASE: Final = "retry_wait"
_EXCLUSIVE_KEPT: Final = 65_536
_ENDED_AT_HEADERS: Final = "streams that went on after their call's span had ended; a report of the exported spans has their time and tokens"
_OUTCOMES: Final[Mapping[object, Outcome]] = {
    name: name for name in ("ok", "error", "cancelled", "abandoned", "incomplete")
}
_STATUS: Final[Mapping[StatusCode, SpanStatus]] = {
    StatusCode.UNSET: "unset",
    StatusCode.OK: "ok",
    StatusCode.ERROR: "error",
}


class SpanEnder:
    """Takes an ended span out of its turn and says what is to be passed on."""

    __slots__ = ("_closer", "_recording")

    def __init__(self, recording: Recording, closer: Closer) -> None:
        self._recording = recording
        self._closer = closer

    def ended(self, span: ReadableSpan) -> ReadableSpan:
        """Record the end of another instrumentation's span; a copy with our attributes where exported."""
        recording, scope = self._recording, span.instrumentation_scope
        if scope is not None and scope.name == OWN_SCOPE:
            return span
        context = span.get_span_context()
        opened = None if context is None else recording.table.open_spans.get(context.span_id)
        attributes = dict(span.attributes or {})
        verdict = classify(scope.name if scope else "", span.name, KIND_NAMES[span.kind], attributes)
        if opened is None:
            if verdict.role is not Role.DROP:
                recording.guard.drop("unseen_start")
            return span
        if is_stream_record(attributes):
            opened.turn.warn("ended_at_headers", _ENDED_AT_HEADERS, opened.span_id)
        _reclassify(opened, verdict, attributes)
        opened.verdict = verdict
        status = _STATUS[span.status.status_code]
        stamped = _OUTCOMES.get(attributes.get(OUTCOME))
        opened.name = span.name
        opened.ended(
            opened.turn.clock.corrected(span.end_time or opened.start_ns),
            status,
            stamped
            or ("error" if has_failed(verdict, status, (event.name for event in span.events)) else "ok"),
            attributes,
        )
        exclusive_ns = self.leave(opened)
        answer = self._rooted(opened) if opened.span_id == opened.turn.root_id else {}
        self.told(opened, exclusive_ns)
        return _enriched(span, opened, exclusive_ns, answer) if recording.enriches else span

    def leave(self, opened: OpenSpan) -> int:
        """Take the span out of its turn and return its exclusive time in ns."""
        turn, parent = opened.turn, opened.live.parent
        self._recording.table.open_spans.pop(opened.span_id, None)
        with turn.lock:
            exclusive_ns = turn.live.end(opened.live, opened.end_ns, opened.phase)
            if opened.phase is not None and opened.phase != "other":
                turn.has_phase = True
            if parent is not None and not parent.is_open:
                turn.counts.detached = True
            if opened.tool_call is opened:
                turn.counts.tool_closed()
        return exclusive_ns

    def told(self, opened: OpenSpan, exclusive_ns: int) -> None:
        """Tell the log, the metrics and the closer."""
        if opened.phase == MODEL_PHASE:
            self._called(opened)
        turn, kept = opened.turn, self._recording.exclusive_of
        metrics = turn.metrics  # not the recording's: a turn is measured as a whole or not at all
        turn.log.ended(opened)
        turn.open_spans.pop(opened.span_id, None)  # told: from here on the turn may be closed
        if metrics is not None:
            self._measure(metrics, opened, exclusive_ns)
        if kept is not None:
            _keep(kept, opened.span_id, exclusive_ns)
        if turn.end_ns is not None or not turn.root_id:
            self._closer.left(opened)

    def _called(self, opened: OpenSpan) -> None:
        """Usage and first moments of a model call; the outermost span of nested ones is the call."""
        call, verdict = opened.model_call or opened, opened.verdict
        span_id = f"{opened.span_id:016x}"
        failed = "error" in (opened.status, opened.outcome)
        usage = usage_of(verdict, span_id, opened.attributes, failed=failed)
        if usage is not None:
            opened.turn.log.usage(usage)  # of every span; the block has one for each call
        call.usage = richer(known for known in (usage, call.usage) if known is not None)
        opened.facts = facts = describe(verdict, opened.name, opened.attributes)
        opened.model = facts.model
        if call is opened:
            opened.turn.called(facts.model, facts.provider, call.usage)
            _stamp(opened, facts)

    def _rooted(self, opened: OpenSpan) -> dict[str, Scalar]:
        turn = opened.turn
        answer = turn.finish("error" if opened.status == "error" else "ok", opened.end_ns)
        return answer if not turn.candidate or turn.has_phase else {}

    def _measure(self, metrics: TurnMetrics, opened: OpenSpan, exclusive_ns: int) -> None:
        turn, submit = opened.turn, self._recording.writer.submit
        submit(measure_span, metrics, opened, exclusive_ns)
        if opened.phase == _RETRY_PHASE:
            turn.counts.retry_waits += 1
            reason = opened.attributes.get(REASON)
            submit(metrics.retried, turn.who.agent, _retried_model(opened), reason, 1)
        if opened.span_id == turn.root_id and not turn.candidate and turn.end_ns is not None:
            self._measure_turn(turn, metrics, turn.end_ns)

    def _measure_turn(self, turn: LiveTurn, metrics: TurnMetrics, end_ns: int) -> None:
        """One point for the turn: now, since spans that outlive it change its live totals."""
        turn.is_measured = True
        submit = self._recording.writer.submit
        submit(metrics.turn_ended, turn_point(turn, turn.live.totals(end_ns), turn.rounds))
        submit(metrics.retried, turn.who.agent, turn.model, "unknown", untold_retries(turn))


def exported_facts(opened: OpenSpan) -> dict[str, Scalar]:
    """What whoever reads exported spans one by one cannot look up: agent, repetition, who measures the turn."""
    turn = opened.turn
    facts: dict[str, Scalar] = {} if turn.who.agent is None else {TURN_AGENT: turn.who.agent}
    if turn.metrics is not None:
        facts[METRICS] = "process"
    phase = opened.phase
    if phase == _RETRY_PHASE and (model := _retried_model(opened)) is not None:
        facts[RETRIED_MODEL] = model
    if phase in {MODEL_PHASE, TOOL_PHASE}:
        call = opened.model_call if phase == MODEL_PHASE else opened.tool_call
        if call is not None and call is not opened:
            facts[REPEATED] = True
    return facts


def _retried_model(opened: OpenSpan) -> str | None:
    """The model of the call that a wait lies in, else the turn's first one."""
    call = opened.model_call
    return opened.turn.model if call is None or call.model is None else call.model


def _keep(kept: dict[int, int], span_id: int, exclusive_ns: int) -> None:
    """Keep an exclusive time for an exporter made by wrap(); the oldest gives way."""
    kept[span_id] = exclusive_ns
    while len(kept) > _EXCLUSIVE_KEPT:
        kept.pop(next(iter(kept)), None)


def _reclassify(opened: OpenSpan, verdict: Verdict, attributes: Mapping[str, Any]) -> None:
    """The phase that the span's dialect says at its end; attributes may have come since its start."""
    if verdict.role is Role.PHASE and not verdict.http_attempt:
        opened.phase = verdict.phase
    elif verdict.role is Role.LEAF and opened.phase is None and opened.live.is_leaf:
        opened.phase = "other"
    if opened.phase == TOOL_PHASE:
        opened.tool = describe(verdict, opened.name, attributes).tool


def _stamp(opened: OpenSpan, facts: Description) -> None:
    turn: LiveTurn = opened.turn
    for name, offset_ns in (("first_chunk", facts.first_chunk_ns), ("first_token", facts.first_token_ns)):
        if offset_ns is not None and turn.first_ns(name) is None:
            turn.mark(name, opened.start_ns + offset_ns, opened.span_id)


def _enriched(
    span: ReadableSpan, opened: OpenSpan, exclusive_ns: int, answer: dict[str, Scalar]
) -> ReadableSpan:
    attributes: dict[str, Any] = {
        **(span.attributes or {}),
        EXCLUSIVE_MS: exclusive_ns / _NS_PER_MS,
        OUTCOME: opened.outcome,
        **exported_facts(opened),
        **answer,
    }
    phase = "turn" if answer else opened.phase
    if phase is not None:
        attributes[PHASE] = phase
    if opened.round is not None:
        attributes[ROUND] = opened.round
    return rebuilt(span, attributes, start_ns=opened.start_ns, end_ns=opened.end_ns)
