"""The short way for our own spans: the recording API tells their begin and end itself.

The processor sees them too and lets them pass. Told directly, a span needs no dialect, no second look at
its attributes and one computation of its exclusive time.
"""

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span

from turntrace.core.attributes import REQUEST_MODEL, ROUND, TOOL_NAME
from turntrace.core.model import Outcome
from turntrace.otel.live_turn import OpenSpan
from turntrace.otel.recording import Recording
from turntrace.otel.span_end import SpanEnder, exported_facts
from turntrace.otel.span_start import MODEL_PHASE, OWN_VERDICTS, TOOL_PHASE, Sink, SpanStarter

__all__ = ["OwnSpans"]

_TURN: Final = "turn"


class OwnSpans:
    """Begin and end of spans made by turn(), phase(), generation() and tool()."""

    __slots__ = ("_ender", "_recording", "_starter", "_table")

    def __init__(self, recording: Recording, starter: SpanStarter, ender: SpanEnder) -> None:
        self._recording = recording
        self._table = recording.table
        self._starter = starter
        self._ender = ender

    def begin(
        self, span: Span, context: Context, sink: Sink | None, phase: str, attributes: Mapping[str, Any]
    ) -> OpenSpan:
        """Enter a span that was just started in ``context``; ``sink`` None lets it find its turn."""
        if sink is None or phase == _TURN:
            opened = self._starter.enter(span, context, OWN_VERDICTS[phase], attributes, own=True)
        else:
            opened = self._enter(span, sink, phase, attributes)
        if self._recording.enriches:
            for name, value in exported_facts(opened).items():
                span.set_attribute(name, value)
        return opened

    def _enter(self, span: Span, sink: Sink, phase: str, attributes: Mapping[str, Any]) -> OpenSpan:
        """Enter a span whose turn is known."""
        parent = span.parent
        span_context = span.get_span_context()
        if parent is None:
            parent_id = above = None
        else:
            parent_id = parent.span_id
            above = self._table.open_spans.get(parent_id)
        opened = OpenSpan(
            sink, span_context.span_id, parent_id, span.name, phase, span.start_time or sink.now_ns()
        )
        opened.context = span_context
        round_number = attributes[ROUND]
        opened.round = round_number if type(round_number) is int else None
        opened.above = above
        if above is not None:
            opened.model_call, opened.tool_call = above.model_call, above.tool_call
        elif parent is None:
            opened.inferred = True
        if phase == MODEL_PHASE:
            opened.model = attributes[REQUEST_MODEL]
            opened.verdict = OWN_VERDICTS[phase]
            opened.model_call = opened.model_call or opened
        elif phase == TOOL_PHASE and TOOL_NAME in attributes:
            opened.tool = attributes[TOOL_NAME]
            opened.tool_call = opened.tool_call or opened
        self._starter.admit(opened, above)
        return opened

    def end(self, opened: OpenSpan, end_ns: int, outcome: Outcome, attributes: Mapping[str, Any]) -> int:
        """Take the span out of its turn, before it is ended; returns its exclusive time in ns."""
        turn = opened.turn
        if turn.closed:  # written already, or a parent's in a forked child, whose locks may be held
            return turn.live.exclusive_ns(opened.live, end_ns)
        opened.ended(end_ns, "error" if outcome == "error" else "unset", outcome, attributes)
        exclusive_ns = self._ender.leave(opened)
        self._ender.told(opened, exclusive_ns)
        return exclusive_ns
