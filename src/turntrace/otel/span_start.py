"""What happens when a span starts: which turn it belongs to, what its dialect says, its first line."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import SpanKind, TraceFlags

from turntrace.core.attributes import LABEL_PREFIX, PHASE, ROUND, TOOL_NAME
from turntrace.core.contract import PHASES
from turntrace.core.dialects import Role, Verdict, classify, describe
from turntrace.core.model import TurnSource
from turntrace.otel.closing import Closer
from turntrace.otel.live_turn import LiveTurn, NestedTurn, OpenSpan
from turntrace.otel.logs import open_log
from turntrace.otel.recording import Recording
from turntrace.otel.run_ids import new_run_id
from turntrace.otel.turn_identity import TurnIdentity

__all__ = [
    "KIND_NAMES",
    "MODEL_PHASE",
    "OWN_SCOPE",
    "OWN_VERDICTS",
    "ROOT_ROLES",
    "TOOL_PHASE",
    "Sink",
    "SpanStarter",
]

OWN_SCOPE: Final = "turntrace"
MODEL_PHASE: Final = "generation"
TOOL_PHASE: Final = "tool_execution"
KIND_NAMES: Final = {kind: kind.name.lower() for kind in SpanKind}

OWN_VERDICTS: Final = {
    phase: classify(OWN_SCOPE, "", "internal", {PHASE: phase}) for phase in (*PHASES, "turn")
}
"""The verdicts on our own spans, whose phase is stamped on them."""

MAX_SPANS: Final = 1_000_000
MAX_AGE_NS: Final = 24 * 3600 * 1_000_000_000
"""A turn beyond either is closed as interrupted and goes on under a new run id."""

_ENTRY_KINDS: Final = frozenset({SpanKind.SERVER, SpanKind.CONSUMER})
ROOT_ROLES: Final = frozenset({Role.TURN, Role.AGENT})

Sink = LiveTurn | NestedTurn


class SpanStarter:
    """Turns a started span into an OpenSpan of a live turn."""

    __slots__ = ("_closer", "_recording", "_table")

    def __init__(self, recording: Recording, closer: Closer) -> None:
        self._recording = recording
        self._closer = closer
        self._table = recording.table

    def started(self, span: Span, parent_context: Context | None) -> None:
        """Enter a span of another instrumentation."""
        scope = span.instrumentation_scope
        if scope is not None and scope.name == OWN_SCOPE:
            return  # the recording API tells its own spans itself
        if span.get_span_context().span_id in self._table.open_spans:
            self._recording.guard.say("a provider has the same processor twice; its spans are recorded once")
            return
        attributes = dict(span.attributes or {})  # a plain dict is read many times faster
        verdict = classify(scope.name if scope else "", span.name, KIND_NAMES[span.kind], attributes)
        if verdict.role is not Role.DROP:
            self.enter(span, parent_context, verdict, attributes, own=False)

    def enter(
        self,
        span: Span,
        parent_context: Context | None,
        verdict: Verdict,
        attributes: Mapping[str, Any],
        *,
        own: bool,
    ) -> OpenSpan:
        """Enter ``span`` into its turn; a span of no turn opens one as a candidate."""
        parent = span.parent
        above = None if parent is None else self._table.open_spans.get(parent.span_id)
        sink: Sink | None = above.sink if above else self._sink(span, verdict, parent_context)
        is_root = verdict.role in ROOT_ROLES
        is_new = sink is None or (is_root and (sink.candidate or sink.turn.end_ns is not None))
        if sink is None or is_new:
            sink, above = self._open_turn(span, verdict, attributes), None
        start_ns = span.start_time or sink.now_ns()
        opened = OpenSpan(
            sink,
            span.get_span_context().span_id,
            None if parent is None else parent.span_id,
            span.name,
            verdict.phase,
            start_ns if own else sink.turn.clock.corrected(start_ns),
        )
        opened.verdict = verdict
        opened.context = span.get_span_context()
        opened.inferred = above is None and not is_new and parent is None
        _classify(opened, above, verdict, attributes)
        if is_new:
            opened.turn.log.opened()
            if opened.turn.who.is_remote:
                self._closer.opened_remotely(opened.turn)
        self.admit(opened, above, leaf=verdict.role is Role.LEAF and opened.phase is None)
        return opened

    def _sink(self, span: Span, verdict: Verdict, parent_context: Context | None) -> Sink | None:
        """The turn of a span whose parent is not open here: by context, by trace, else the only one."""
        found = self._table.in_context(parent_context) or self._table.of_trace(
            span.get_span_context().trace_id
        )
        if found is not None or span.parent is not None:
            return found
        is_lone = span.kind not in _ENTRY_KINDS and verdict.role not in ROOT_ROLES
        return self._table.only_turn() if is_lone else None

    def _open_turn(self, span: Span, verdict: Verdict, attributes: Mapping[str, Any]) -> LiveTurn:
        recording, context = self._recording, span.get_span_context()
        facts = describe(verdict, span.name, attributes)
        source = _source(verdict)
        if source == "local_root" and context.trace_id == recording.options.run_trace:
            source = "run"
        # a lone phase is no root: it is a span of a turn whose root nobody made
        has_root = verdict.role is not Role.PHASE and source != "run"
        who = TurnIdentity(
            run_id=facts.run_id or new_run_id(),
            trace_id=context.trace_id,
            root_id=context.span_id if has_root else 0,
            root_name=span.name if has_root else "",
            turn_source=source,
            source="native" if verdict.dialect == OWN_SCOPE else verdict.dialect,
            agent=(facts.agent if verdict.role in ROOT_ROLES else None) or recording.options.agent,
            session_id=facts.session_id or "",
            labels={**recording.options.labels, **_labels(attributes)},
            sampled=bool(context.trace_flags & TraceFlags.SAMPLED),
            is_remote=span.parent is not None
            and (source == "local_root" or (source == "run" and recording.is_inside)),
        )
        turn = LiveTurn(who, recording.clock, span.start_time or recording.clock.wall_ns())
        metrics = turn.metrics = recording.metrics
        if metrics is not None:
            turn.tell_count = partial(recording.writer.submit, metrics.counted, who.agent)
        turn.log = open_log(turn, recording)
        self._table.add(turn)
        return turn

    def admit(self, opened: OpenSpan, above: OpenSpan | None, *, leaf: bool = False) -> None:
        """Count an opened span in: live times, open spans, tools at once, its first line."""
        turn, span_id = opened.turn, opened.span_id
        with turn.lock:
            if span_id == turn.root_id:
                opened.live = turn.live.root
            else:
                opened.live = turn.live.start(
                    None if above is None else above.live, opened.start_ns, opened.phase, leaf=leaf
                )
            turn.open_spans[span_id] = opened
            turn.span_count += 1
            is_outgrown = turn.span_count >= MAX_SPANS or opened.start_ns - turn.since_ns > MAX_AGE_NS
            if is_outgrown:
                turn.span_count, turn.since_ns = 0, opened.start_ns
            is_tool = opened.tool_call is opened
            if is_tool:
                turn.counts.tool_opened()
        self._table.open_spans[span_id] = opened
        turn.log.started(opened)
        if is_outgrown:
            self._recording.writer.submit_later(self._closer.roll_over, turn)
        if is_tool and turn.first_ns("first_useful") is None:
            turn.mark("first_useful", opened.start_ns, span_id)


def _source(verdict: Verdict) -> TurnSource:
    if verdict.role is Role.TURN and verdict.dialect == OWN_SCOPE:
        return "api"
    return "dialect" if verdict.role in ROOT_ROLES else "local_root"


def _labels(attributes: Mapping[str, Any]) -> dict[str, str]:
    cut = len(LABEL_PREFIX)
    return {name[cut:]: str(value) for name, value in attributes.items() if name.startswith(LABEL_PREFIX)}


def _classify(
    opened: OpenSpan, above: OpenSpan | None, verdict: Verdict, attributes: Mapping[str, Any]
) -> None:
    """Phase, round, and the outermost model and tool call that the span lies in."""
    if above is not None:
        opened.model_call, opened.tool_call = above.model_call, above.tool_call
    if verdict.http_attempt and opened.model_call is not None:
        opened.phase = "provider_connect"
    if opened.phase == MODEL_PHASE and opened.model_call is None:
        opened.model_call = opened
    if opened.phase == TOOL_PHASE and TOOL_NAME in attributes:
        opened.tool = attributes[TOOL_NAME]
        opened.tool_call = opened.tool_call or opened
    if verdict.role in ROOT_ROLES and opened.span_id != opened.turn.root_id:
        _nest(opened, verdict, attributes)
    opened.round = attributes.get(ROUND) or _round(opened, above)


def _nest(opened: OpenSpan, verdict: Verdict, attributes: Mapping[str, Any]) -> None:
    facts = describe(verdict, opened.name, attributes)
    opened.agent, opened.run_id = facts.agent or opened.name, facts.run_id or new_run_id()
    opened.sink = NestedTurn(opened.turn, opened.run_id)
    opened.model_call = opened.tool_call = None


def _round(opened: OpenSpan, above: OpenSpan | None) -> int | None:
    if opened.model_call is opened:
        return opened.sink.next_round()
    if above is not None and above.round is not None:
        return above.round
    return opened.sink.rounds or None
