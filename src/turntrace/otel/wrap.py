"""wrap(): exclusive time and phase on every span that goes through an application's own exporter.

With a TurnSpanProcessor beside it the values are exact. Without one, an exporter sees ended spans only
and gets them in batches: the value is what is known so far, and says so.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from turntrace.core.attributes import EXCLUSIVE_MS, EXCLUSIVE_PROVISIONAL, PHASE
from turntrace.core.dialects import classify
from turntrace.core.intervals import clip, union_ns
from turntrace.otel import slot
from turntrace.otel.enrich import rebuilt
from turntrace.otel.processor import TurnSpanProcessor
from turntrace.otel.span_start import KIND_NAMES

__all__ = ["EnrichingExporter"]

_MAX_PARENTS: Final = 10_000
_MAX_CHILDREN: Final = 1_000
_NS_PER_MS: Final = 1_000_000

Interval = tuple[int, int]


class EnrichingExporter(SpanExporter):
    """Passes copies of spans with turntrace's attributes on to ``exporter``."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._children: OrderedDict[int, list[Interval]] = OrderedDict()
        recorder: Any = slot.recorder
        if isinstance(recorder, TurnSpanProcessor):
            recorder.recording.keep_exclusive()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export the enriched spans."""
        for span in spans:
            self._note(span)
        return self._exporter.export([self._enriched(span) for span in spans])

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Flush the exporter."""
        return self._exporter.force_flush(timeout_millis)

    def _note(self, span: ReadableSpan) -> None:
        if span.parent is None or span.start_time is None or span.end_time is None:
            return
        children = self._children.setdefault(span.parent.span_id, [])
        if len(children) < _MAX_CHILDREN:
            children.append((span.start_time, span.end_time))
        while len(self._children) > _MAX_PARENTS:
            self._children.popitem(last=False)

    def _enriched(self, span: ReadableSpan) -> ReadableSpan:
        given = dict(span.attributes or {})
        if EXCLUSIVE_MS in given:
            return span
        scope = span.instrumentation_scope
        verdict = classify(scope.name if scope else "", span.name, KIND_NAMES[span.kind], given)
        added: dict[str, Any] = self._exclusive(span)
        if verdict.phase is not None:
            added[PHASE] = verdict.phase
        return rebuilt(span, {**given, **added})

    def _exclusive(self, span: ReadableSpan) -> dict[str, Any]:
        context = span.get_span_context()
        span_id = 0 if context is None else context.span_id
        recorder: Any = slot.recorder
        if isinstance(recorder, TurnSpanProcessor):
            exact_ns = (recorder.recording.keep_exclusive()).pop(span_id, None)
            if exact_ns is not None:
                return {EXCLUSIVE_MS: exact_ns / _NS_PER_MS}
        start_ns, end_ns = span.start_time or 0, span.end_time or 0
        children = [clip(child, (start_ns, end_ns)) for child in self._children.pop(span_id, ())]
        exclusive_ns = max(0, end_ns - start_ns - union_ns(children))
        return {EXCLUSIVE_MS: exclusive_ns / _NS_PER_MS, EXCLUSIVE_PROVISIONAL: True}
