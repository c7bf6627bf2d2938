"""The context manager behind every phase: a span of the OpenTelemetry API that knows its exclusive time.

A class, not a generator, because a generator doubles the cost. It holds no context token: leaving puts
the context back that was current before, and only if its own is still current, so that a block held
across a ``yield`` and left in another context ends once and says nothing.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from opentelemetry.context import Context, attach, get_current
from opentelemetry.trace import Span, SpanKind, StatusCode, get_current_span, set_span_in_context

from turntrace.core.attributes import ERROR_TYPE, EXCLUSIVE_MS, OUTCOME, PHASE, ROUND
from turntrace.core.outcomes import Outcome, outcome_of
from turntrace.core.ports import Recorder, TurnSink
from turntrace.instrument.failures import error_type
from turntrace.otel.slot import TURN_KEY

__all__ = ["PhaseSpan"]

_NS_PER_MS: Final = 1_000_000
_MOST_ATTRIBUTES: Final = 96
_OPENING: Final = frozenset({"prompt_build", "tool_partition", "provider_queue", "provider_prewarm"})


class PhaseSpan:
    """``with`` or ``async with``: one phase of the turn it is entered in; a no-op outside a turn.

    Raises nothing of its own; what the block raises passes through unchanged.
    """

    __slots__ = (
        "_attached",
        "_attributes",
        "_kind",
        "_name",
        "_opened",
        "_previous",
        "_recorder",
        "_sink",
        "_span",
        "phase",
    )

    def __init__(
        self,
        recorder: Recorder,
        phase: str,
        name: str,
        attributes: Mapping[str, Any] | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        self._recorder = recorder
        self.phase = phase
        self._name = name
        self._attributes = dict(attributes) if attributes else {}
        self._kind = kind
        self._span: Span | None = None
        self._sink: TurnSink | None = None
        self._opened: Any = None
        self._previous: Context
        self._attached: Context

    def __enter__(self) -> Self:
        try:
            self._open()
        except Exception as error:  # noqa: BLE001 - telemetry never changes the agent
            self._recorder.caught("phase", error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._span is not None:
            try:
                self._close(kind)
            except Exception as own_error:  # noqa: BLE001 - as above
                self._recorder.caught("phase", own_error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def set(self, name: str, value: str | bool | float | None) -> None:  # noqa: FBT001 - any scalar
        """Set an attribute of the span; None is skipped. Names off the allow-list stay in the process."""
        if self._span is not None and value is not None:
            self._span.set_attribute(name, value)
            self._attributes[name] = value

    def _open(self) -> None:
        context = get_current()
        recorder = self._recorder
        sink: Any = context.get(TURN_KEY)
        current = get_current_span(context).get_span_context()
        if sink is None or sink.closed or sink.turn.trace_id != current.trace_id:
            sink = recorder.sink(context)
            if sink is None and not recorder.is_remote(context):
                recorder.homeless(self._name)
                return
        if sink is None:
            self._enter(context, None, {PHASE: self.phase, OUTCOME: "ok", **self._attributes}, None)
            return
        if len(self._attributes) > _MOST_ATTRIBUTES:
            self._cut(sink)
        own = {PHASE: self.phase, OUTCOME: "ok", ROUND: self._round(sink)}
        attributes = {**own, **self._attributes} if self._attributes else own
        self._enter(context, sink, attributes, sink.now_ns())

    def _cut(self, sink: TurnSink) -> None:
        """Keep the first attributes: the SDK, whose limit is 128, would drop the oldest, which are ours."""
        kept = list(self._attributes.items())[:_MOST_ATTRIBUTES]
        lost = len(self._attributes) - len(kept)
        self._attributes = dict(kept)
        sink.warn("many_attributes", f"attributes of a {self.phase} that were left out: {lost}", None)

    def _enter(
        self, context: Context, sink: TurnSink | None, attributes: dict[str, Any], start_ns: int | None
    ) -> None:
        recorder = self._recorder
        span: Span = recorder.tracer.start_span(
            self._name, context, self._kind, attributes, start_time=start_ns
        )
        if span.is_recording():
            self._opened = recorder.begin(span, context, sink, self.phase, attributes)
            self._sink = self._opened.sink
            self._span = span
            self._previous = self._opened.previous = context
            self._attached = self._context_of(span, context)
            attach(self._attached)

    def _context_of(self, span: Span, context: Context) -> Context:
        return set_span_in_context(span, context)

    def _round(self, sink: TurnSink) -> int:
        return sink.rounds + 1 if self.phase in _OPENING else sink.rounds or 1

    def _close(self, kind: type[BaseException] | None) -> None:
        span, sink, self._span = self._span, self._sink, None
        if span is None or sink is None:
            return
        self._leave(get_current(), sink)
        if self._opened.turn.is_inherited:
            return  # a copy in a forked child: the parent ends the span, whose lock may be held for ever here
        end_ns = sink.now_ns()
        try:
            outcome: Outcome = "ok" if kind is None else _failed(span, kind, self._attributes)
            outcome = self._ending(span, sink, end_ns, outcome)
            exclusive_ns = self._recorder.end(self._opened, end_ns, outcome, self._attributes)
            span.set_attribute(EXCLUSIVE_MS, exclusive_ns / _NS_PER_MS)
        finally:
            span.end(end_ns)

    def _leave(self, current: Context, sink: TurnSink) -> None:
        """Put back the context from before, past blocks that were left while this one was current."""
        if current is not self._attached:
            sink.warn("context_moved", f"{self.phase} ended in another context than it began in", None)
            return
        previous, above = self._previous, self._opened.above
        while above is not None and above.is_over and above.previous is not None:
            previous, above = above.previous, above.above
        attach(previous)

    def _ending(self, span: Span, sink: TurnSink, end_ns: int, outcome: Outcome) -> Outcome:
        """For subclasses: the last attributes before the span ends, and how it ended."""
        del span, sink, end_ns
        return outcome


def _failed(span: Span, kind: type[BaseException], attributes: dict[str, Any]) -> Outcome:
    outcome = outcome_of(kind)
    attributes[ERROR_TYPE] = error_type(kind)
    span.set_attribute(OUTCOME, outcome)
    span.set_attribute(ERROR_TYPE, attributes[ERROR_TYPE])
    if outcome == "error":
        span.set_status(StatusCode.ERROR)
    return outcome
