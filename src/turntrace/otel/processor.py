"""TurnSpanProcessor: exclusive time, journal and turns, from the starts and ends of any spans.

The owner of what the trace file guarantees: only a processor sees spans open, so only it can keep what
a killed process had in flight. It never raises, in thread mode never waits for the disk, and keeps
memory for open spans only.
"""

import os
import weakref
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from turntrace.core.model import Turn
from turntrace.core.results import Attribution
from turntrace.otel.adoption import exports_over_otlp
from turntrace.otel.batch import LazyBatchProcessor
from turntrace.otel.clock import Clock, SystemClock
from turntrace.otel.closing import Closer
from turntrace.otel.live_turn import LiveTurn, NestedTurn
from turntrace.otel.options import RecordingOptions
from turntrace.otel.own_span import OwnSpan
from turntrace.otel.own_spans import OwnSpans
from turntrace.otel.own_tracer import OwnTracer
from turntrace.otel.recording import Recording
from turntrace.otel.span_end import SpanEnder
from turntrace.otel.span_start import SpanStarter
from turntrace.otel.writer import Writer

__all__ = ["TurnSpanProcessor"]


class TurnSpanProcessor(SpanProcessor):
    """Records turns from spans and passes spans on, enriched, to the batches of our own exporters.

    Runs on the thread that starts or ends a span. Public for applications that build their own
    provider: ``provider.add_span_processor(TurnSpanProcessor(RecordingOptions(out="turns.ndjson")))``.
    """

    def __init__(self, options: RecordingOptions, *, clock: Clock | None = None) -> None:
        self.recording = Recording(options, clock or SystemClock())
        self.closer = Closer(self.recording)
        self.recording.writer = self._new_writer()
        self.tracer: OwnTracer = OwnTracer(trace.NoOpTracer())
        self._start = SpanStarter(self.recording, self.closer)
        self._end = SpanEnder(self.recording, self.closer)
        own = OwnSpans(self.recording, self._start, self._end)
        self.begin, self.end = own.begin, own.end
        self._batches: tuple[LazyBatchProcessor, ...] = ()
        self._adopted_by: trace.TracerProvider | None = None
        _renew_after_fork(self)

    # -- SpanProcessor --------------------------------------------------------------------------------

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Open the span's record; never raises."""
        if type(span) is OwnSpan:
            return  # the recording API tells it itself
        try:
            self._start.started(span, parent_context)
        except Exception as error:  # noqa: BLE001 - telemetry never changes the agent
            self.recording.guard.caught("on_start", error)

    def on_end(self, span: ReadableSpan) -> None:
        """Close the span's record and pass the enriched span on; never raises."""
        try:
            if self._adopted_by is not None:
                self._decide_who_exports()
            if self.recording.table.is_inherited(span.get_span_context()):
                return  # a copy in a forked child; the parent ends and exports the span
            span = self._end.ended(span)
            for batch in self._batches:
                batch.on_end(span)
        except Exception as error:  # noqa: BLE001 - as above
            self.recording.guard.caught("on_end", error)

    def shutdown(self) -> None:
        """Close every live turn and write what waits; exporters are shut down by who set them up."""
        self.closer.close_all()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Write every journal line that waits, close what is ready and flush the exporters."""
        self.closer.finish()
        flushed = [
            batch.force_flush(timeout_millis) for batch in self._batches
        ]  # each one, whatever the first says
        return all(flushed)

    @property
    def unsettled(self) -> int:
        """Spans whose export has neither failed nor succeeded."""
        return sum(batch.unsettled for batch in self._batches)

    # -- set-up ---------------------------------------------------------------------------------------

    def follow_with(self, batches: Sequence[LazyBatchProcessor]) -> None:
        """Pass spans on to ``batches``."""
        self._batches = tuple(batches)
        self.recording.enriches = bool(batches)

    def adopted(self, provider: trace.TracerProvider) -> None:
        """The application set a provider of its own: if that exports over OTLP, we export no more.

        Decided when the first span ends, since exporters are often added after the provider is set.
        """
        self._adopted_by = provider

    def _decide_who_exports(self) -> None:
        provider, self._adopted_by = self._adopted_by, None
        if provider is not None and exports_over_otlp(provider):
            self.follow_with(())

    def _new_writer(self) -> Writer:
        return Writer(self.recording.guard, self.closer.tick, self.recording.flush_intake)

    def _renew(self) -> None:
        """In a forked child: new locks and threads, none of the parent's turns; one that fails spoils no other."""
        self.recording.writer = self._new_writer()  # first: the old one's lock may be held for ever
        for renew in (self.recording.renew, self.closer.renew, *(batch.renew for batch in self._batches)):
            try:
                renew()
            except Exception as error:  # noqa: BLE001 - as in on_start; the interpreter would print it
                self.recording.guard.caught("fork", error)

    # -- Recorder: what the recording API asks ----------------------------------------------------------

    @property
    def strict(self) -> bool:
        """See Recorder."""
        return self.recording.options.strict

    @property
    def out(self) -> str | None:
        """See Recorder."""
        out = self.recording.options.out
        return None if out == "-" else out

    def flush(self) -> None:
        """See Recorder."""
        self.recording.writer.drain()

    def sink(self, context: Context) -> LiveTurn | NestedTurn | None:
        """See Recorder."""
        return self.recording.sink(context)

    def is_remote(self, context: Context) -> bool:
        """See Recorder."""
        current = trace.get_current_span(context).get_span_context()
        return current.is_valid and (
            current.is_remote or current.trace_id in self.recording.table.inherited_traces
        )

    def homeless(self, name: str) -> None:
        """See Recorder."""
        self.recording.homeless(name)

    def record_of(self, sink: LiveTurn | NestedTurn) -> tuple[Turn, Attribution]:
        """See Recorder."""
        return self.closer.record_of(sink)

    def caught(self, where: str, error: BaseException) -> None:
        """See Recorder."""
        self.recording.guard.caught(where, error)


def _renew_after_fork(processor: TurnSpanProcessor) -> None:
    renew = weakref.WeakMethod(processor._renew)  # noqa: SLF001 - its own module

    def in_child() -> None:
        method = renew()
        if method is not None:
            method()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)
