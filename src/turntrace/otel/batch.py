"""The official batch processor, started at the first span and never asked to hold more than it can."""

import threading
from collections.abc import Callable, Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import TraceFlags

from turntrace.otel.guard import Guard

__all__ = ["LazyBatchProcessor"]


class _LateExporter(SpanExporter):
    """Builds its exporter on a thread of its own: importing one takes 0.3 s, which no agent should wait.

    Not at the first export either: that may come when the interpreter ends and some of them can no
    longer be built. ``taken`` counts what left the queue, so that the processor before it knows how full it is.
    """

    def __init__(self, make: Callable[[], SpanExporter], guard: Guard) -> None:
        self._make = make
        self._guard = guard
        self._building = threading.Lock()
        self._exporter: SpanExporter | None = None
        self.taken = 0
        self.settled = 0
        self.failures = 0

    def built(self) -> SpanExporter:
        """The exporter; whoever asks first builds it, others wait."""
        with self._building:
            if self._exporter is None:
                self._exporter = self._make()
            return self._exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        result = self.built().export(spans)
        if result is not SpanExportResult.SUCCESS:
            self.failures += 1
            self._guard.drop("export_failed", len(spans))
        self.settled += len(spans)
        return result

    def shutdown(self) -> None:
        if self._exporter is not None:
            self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._exporter is None or self._exporter.force_flush(timeout_millis)


class LazyBatchProcessor(SpanProcessor):
    """A BatchSpanProcessor that is built, with its thread, when the first sampled span ends.

    A full queue drops the newest span and counts it, without a log line for each.
    """

    def __init__(
        self,
        make_exporter: Callable[[], SpanExporter],
        guard: Guard,
        queue_size: int,
        on_begin: Callable[[], None],
    ) -> None:
        """``on_begin`` is called when the batch is built: a thread for the exit has to exist by then."""
        self._make_exporter = make_exporter
        self._guard = guard
        self._queue_size = queue_size
        self._on_begin = on_begin
        self._lock = threading.RLock()
        self._given = 0
        self._late: _LateExporter | None = None
        self._batch: BatchSpanProcessor | None = None
        # kept, never used: to take down a copied connection may hang
        self._inherited: tuple[BatchSpanProcessor | None, ...] = ()

    @property
    def failures(self) -> int:
        """Batches that could not be exported."""
        return 0 if self._late is None else self._late.failures

    @property
    def waiting(self) -> int:
        """Spans in the queue."""
        return 0 if self._late is None else max(self._given - self._late.taken, 0)

    @property
    def unsettled(self) -> int:
        """Spans that were queued and of which no export has ended yet, one way or the other."""
        return 0 if self._late is None else max(self._given - self._late.settled, 0)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing: batches hold ended spans."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a sampled span."""
        context = span.get_span_context()
        if context is None or not context.trace_flags & TraceFlags.SAMPLED:
            return
        batch, late = self._batch, self._late
        if batch is None or late is None:
            batch, late = self._begin()
        if self._given - late.taken >= self._queue_size:
            self._guard.drop("export_queue")
            return
        self._given += 1
        batch.on_end(span)

    def _begin(self) -> tuple[BatchSpanProcessor, _LateExporter]:
        with self._lock:
            if self._batch is None or self._late is None:
                self._late = _LateExporter(self._make_exporter, self._guard)
                self._batch = BatchSpanProcessor(self._late)
                threading.Thread(target=self._late.built, name="turntrace-exporter", daemon=True).start()
                self._on_begin()
            return self._batch, self._late

    def renew(self) -> None:
        """In a forked child: the copied queue and connection are the parent's, and the lock may be held."""
        self._lock = threading.RLock()
        self._inherited = (*self._inherited, self._batch)
        self._given, self._late, self._batch = 0, None, None

    def shutdown(self) -> None:
        """Export what waits, for as long as the SDK takes."""
        if self._batch is not None:
            self._batch.shutdown()  # type: ignore[no-untyped-call]  # the SDK annotates it nowhere

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Export what waits."""
        return self._batch is None or self._batch.force_flush(timeout_millis)
