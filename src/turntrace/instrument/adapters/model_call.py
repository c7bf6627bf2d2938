"""The span of one call through an SDK's client, from the request until its answer has been read."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

from opentelemetry import trace
from opentelemetry.context import Context, attach, create_key, get_current, set_value
from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context

from turntrace.core import attributes as names
from turntrace.core.outcomes import Outcome, outcome_of
from turntrace.core.ports import Recorder, TurnSink
from turntrace.instrument.adapters.answers import Answer
from turntrace.instrument.failures import error_type
from turntrace.instrument.model_calls import GenerationSpan
from turntrace.instrument.spans import PhaseSpan
from turntrace.otel.delegate import DelegatingProvider

__all__ = ["ModelCall", "current_call"]

_REFUSED: Final = 400
_CALL_KEY: Final = create_key("turntrace-model-call")


def current_call() -> "ModelCall | None":
    """The call whose request is under way in the current context."""
    call = get_current().get(_CALL_KEY)
    return call if isinstance(call, ModelCall) else None


class ModelCall(GenerationSpan):
    """A ``with`` block around the request; the call goes on after it while its answer is being read.

    The block puts the context back, so that what the agent does next is no child of the call. An
    exception that leaves it ends the call; else ``end`` does, once, from any thread.
    """

    __slots__ = (
        "_attempt_ns",
        "_attempts",
        "_before",
        "_once",
        "answer",
        "counts_attempts",
        "prefix",
        "started_ns",
    )

    def __init__(self, recorder: Recorder, answer: Answer, model: str, request: Mapping[str, Any]) -> None:
        """``request`` holds ``provider``, ``operation`` and ``attributes``."""
        super().__init__(recorder, model, request["provider"], request["operation"], request["attributes"])
        self.answer = answer
        self.counts_attempts = True
        self.prefix: Mapping[str, str] | None = None
        self.started_ns = 0
        self._attempts = 1
        self._attempt_ns = 0
        self._before: Context | None = None
        self._once = Lock()

    @property
    def opened(self) -> tuple[Span, TurnSink] | None:
        """The span and its turn while the call is open."""
        return None if self._span is None or self._sink is None else (self._span, self._sink)

    def __enter__(self) -> Self:
        self._before = get_current()
        super().__enter__()
        if self._sink is not None:
            self.started_ns = self._sink.monotonic_ns()
            self._attempt_ns = self._sink.now_ns()
            if self.prefix is not None:
                self._sink.prefix(self.prefix)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._span is None:
            return
        try:
            self._step_out()
            if kind is not None:
                self._tried(error, None)
                self.end(kind)
        except Exception as own_error:  # noqa: BLE001 - telemetry never changes the agent
            self._recorder.caught("adapter", own_error)

    def end(self, kind: type[BaseException] | None = None) -> None:
        """The call is over, by an exception of class ``kind`` if one is given; never raises."""
        if not self._once.acquire(blocking=False):
            return
        try:
            self._close(kind)
        except Exception as error:  # noqa: BLE001 - as above
            self._recorder.caught("adapter", error)
        self._streams.clear()

    @property
    def is_stream(self) -> bool:
        """Whether the request asked for a stream."""
        return names.REQUEST_STREAM in self._attributes

    def streams(self, listener: Any) -> None:
        """``listener`` hears of the answer's stream, whose measures become the span's."""
        self._streams.append(listener)

    def connected(self, status: int) -> None:
        """The headers of a streamed answer came."""
        self._tried(None, status)

    @contextmanager
    def _waits(self, reason: str) -> Iterator[None]:
        with PhaseSpan(self._recorder, "retry_wait", "retry_wait", {names.REASON: reason}):
            yield
        if self._sink is not None:
            self._attempt_ns = self._sink.now_ns()

    def waiting(self, response: Any) -> Any:
        """A block around the back-off after an attempt that ``response`` refused, or that raised."""
        try:
            status = getattr(response, "status_code", None)
            error = sys.exc_info()[1]
            self._tried(error, status)
            self._attempts += 1
            if self._sink is not None:
                self._sink.count("retry_count", 1)
            return self._waits(_reason(error, status))
        except Exception as own_error:  # noqa: BLE001 - as above
            self._recorder.caught("adapter", own_error)
            return nullcontext()

    def _tried(self, error: BaseException | None, status: int | None) -> None:
        """Make the span of an attempt that is over: a refused one, or one whose headers came."""
        sink, opened = self._sink, self._opened
        if not self.counts_attempts or sink is None:
            return
        status = getattr(error, "status_code", status)
        outcome, failed = _outcome_of(error, status)
        attributes: dict[str, Any] = {
            names.PHASE: "provider_connect",
            names.OUTCOME: outcome,
            names.ROUND: opened.round,
            names.ATTEMPT: self._attempts,
            names.SERVER_ADDRESS: self._attributes.get(names.SERVER_ADDRESS),
            names.HTTP_STATUS: status,
            names.ERROR_TYPE: failed,
        }
        known = {name: value for name, value in attributes.items() if value is not None}
        recorder, start_ns, end_ns = self._recorder, self._attempt_ns, sink.now_ns()
        span: Span = recorder.tracer.start_span(
            "provider_connect", self._attached, SpanKind.CLIENT, dict(known), start_time=start_ns
        )
        if outcome == "error":
            span.set_status(StatusCode.ERROR)
        begun = recorder.begin(span, self._attached, sink, "provider_connect", known)
        exclusive_ns = recorder.end(begun, end_ns, outcome, known)
        span.set_attribute(names.EXCLUSIVE_MS, exclusive_ns / 1_000_000)
        span.end(end_ns)

    def _open(self) -> None:
        """As any phase; where there is no turn the call opens one, as spans of other libraries do."""
        context = get_current()
        if self._recorder.sink(context) is None and not self._recorder.is_remote(context):
            own = {names.PHASE: self.phase, names.OUTCOME: "ok", **self._attributes}
            self._enter(_below_remote(context), None, own, None)
        else:
            super()._open()

    def _context_of(self, span: Span, context: Context) -> Context:
        return set_value(_CALL_KEY, self, set_span_in_context(span, context))

    def _step_out(self) -> None:
        if self._before is not None and get_current() is self._attached:
            attach(self._before)

    def _leave(self, current: Context, sink: TurnSink) -> None:
        """The block around the request has put the context back."""

    def _ending(self, span: Span, sink: TurnSink, end_ns: int, outcome: Outcome) -> Outcome:
        self._span = span  # once more, for set()
        self._tell(self.answer)
        outcome = super()._ending(span, sink, end_ns, outcome)
        failure = self.answer.failure
        if outcome != "ok" or failure is None:
            return outcome
        self._attributes[names.ERROR_TYPE] = failure
        span.set_attribute(names.ERROR_TYPE, failure)
        span.set_attribute(names.OUTCOME, "error")
        span.set_status(StatusCode.ERROR)
        return "error"

    def _tell(self, answer: Answer) -> None:
        self.set(names.RESPONSE_ID, answer.response_id)
        self.set(names.RESPONSE_MODEL, answer.model)
        self.set(names.HTTP_RESEND, self._attempts - 1 or None)
        if answer.is_final:
            self.usage(**answer.tokens())
            if answer.reasons:
                self.finish_reasons(*answer.reasons)


def _outcome_of(error: BaseException | None, status: int | None) -> tuple[Outcome, str | None]:
    """How an attempt ended and by what; not every SDK raises something for a status that refuses."""
    if status is not None:
        is_refused = error is not None or status >= _REFUSED
        return ("error", str(status)) if is_refused else ("ok", None)
    return ("ok", None) if error is None else (outcome_of(type(error)), error_type(type(error)))


def _reason(error: BaseException | None, status: int | None) -> str:
    if status is not None:
        return str(status)
    return "timeout" if "Timeout" in type(error).__name__ else "connect"


def _below_remote(context: Context) -> Context:
    """``context``, with the span around the process as the parent of what has none."""
    provider = trace.get_tracer_provider()
    remote = provider.remote_parent if isinstance(provider, DelegatingProvider) else None
    if remote is None or trace.get_current_span(context).get_span_context().is_valid:
        return context
    return Context({**context, **remote})
