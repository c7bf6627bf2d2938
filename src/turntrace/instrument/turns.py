"""``turn()``: one user prompt until the agent hands control back."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from opentelemetry.context import Context, attach, get_current, set_value
from opentelemetry.trace import Span, get_current_span, set_span_in_context

from turntrace.core.attributes import (
    AGENT_NAME,
    CONVERSATION_ID,
    LABEL_PREFIX,
    OPERATION,
    OUTCOME,
    PHASE,
    RUN_ID,
)
from turntrace.core.outcomes import Outcome, TurnStatus, outcome_of
from turntrace.core.ports import Recorder, TurnSink
from turntrace.instrument.spans import PhaseSpan
from turntrace.otel.slot import TURN_KEY

__all__ = ["MAX_LABELS", "TurnSpan"]

MAX_LABELS: Final = 8
_MAX_LABEL_CHARACTERS: Final = 64


class TurnSpan(PhaseSpan):
    """A turn; inside another turn it is a sub-agent: structure of the outer one and a turn of its own.

    ``run_id`` names it in the file. ``report()`` tells where its time went.
    """

    __slots__ = ("_session_id", "_status", "agent", "labels", "run_id")

    present: ClassVar[Callable[[Any], Any]] = staticmethod(lambda record: record)
    """What report() makes of the record of a turn; the package's facade puts the table here."""

    def __init__(
        self,
        recorder: Recorder,
        agent: str,
        session_id: str | None,
        labels: Mapping[str, str] | None,
    ) -> None:
        super().__init__(recorder, "turn", f"invoke_agent {agent}")
        self.agent = agent
        self.labels = _checked(labels or {}, recorder)
        self.run_id = ""
        self._session_id = session_id
        self._status: TurnStatus = "ok"

    def report(self) -> Any:
        """The turn's record so far: after the block, at once; open spans count up to now."""
        return None if self._sink is None else type(self).present(self._recorder.record_of(self._sink))

    def _open(self) -> None:
        context = get_current()
        is_inside = get_current_span(context).get_span_context().is_valid
        outer = self._recorder.sink(context) if is_inside else None
        attributes: dict[str, Any] = {
            PHASE: "turn",
            OPERATION: "invoke_agent",
            AGENT_NAME: self.agent,
            OUTCOME: "ok",
            **{LABEL_PREFIX + name: value for name, value in self.labels.items()},
        }
        if self._session_id is not None:
            attributes[CONVERSATION_ID] = self._session_id
        self._enter(context, outer, attributes, None if outer is None else outer.now_ns())
        if self._sink is not None:
            self.run_id = self._sink.run_id

    def _context_of(self, span: Span, context: Context) -> Context:
        return set_value(TURN_KEY, self._sink, set_span_in_context(span, context))

    def _leave(self, current: Context, sink: TurnSink) -> None:
        """As a phase's; a context that still lies in this turn was left behind by a block in it."""
        if current is not self._attached and current.get(TURN_KEY) is sink:
            attach(self._previous)
        else:
            super()._leave(current, sink)

    def _close(self, kind: type[BaseException] | None) -> None:
        outcome = outcome_of(kind)
        self._status = "ok" if outcome == "ok" else "error" if outcome == "error" else "cancelled"
        super()._close(kind)

    def _ending(self, span: Span, sink: TurnSink, end_ns: int, outcome: Outcome) -> Outcome:
        span.set_attributes({RUN_ID: sink.run_id, **sink.finish(self._status, end_ns)})
        return outcome


def _checked(labels: Mapping[str, str], recorder: Recorder) -> dict[str, str]:
    """At most 8 labels of at most 64 characters; more is an error in strict mode and cut otherwise."""
    kept = {
        str(name)[:_MAX_LABEL_CHARACTERS]: str(value)[:_MAX_LABEL_CHARACTERS]
        for name, value in list(labels.items())[:MAX_LABELS]
    }
    if recorder.strict and kept != dict(labels):
        raise ValueError(f"labels: at most {MAX_LABELS}, keys and values of at most {_MAX_LABEL_CHARACTERS}")
    return kept
