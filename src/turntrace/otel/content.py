"""What leaves the process through exporters that turntrace sets up: allow-listed scalars, no messages."""

from collections.abc import Sequence
from typing import Final

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Status

from turntrace.core.attributes import content_free
from turntrace.otel.enrich import EnrichedSpan
from turntrace.otel.guard import Guard

__all__ = ["ContentFreeExporter"]

_REASON: Final = "content"


class ContentFreeExporter(SpanExporter):
    """Filters spans on their way to ``exporter``; runs on the exporting thread.

    Attributes that are not on the allow-list, those of events and links and status messages are dropped and
    counted under ``content``; strings are cut to 256 characters.
    """

    def __init__(self, exporter: SpanExporter, keep: frozenset[str], guard: Guard) -> None:
        self._exporter = exporter
        self._keep = keep
        self._guard = guard

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export the filtered spans."""
        return self._exporter.export([self._filtered(span) for span in spans])

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Flush the exporter."""
        return self._exporter.force_flush(timeout_millis)

    def _filtered(self, span: ReadableSpan) -> ReadableSpan:
        given = span.attributes or {}
        kept = content_free(given, self._keep)
        lost = len(given) - len(kept)
        lost += bool(span.status.description)
        lost += sum(bool(event.attributes) for event in span.events)
        lost += sum(bool(link.attributes) for link in span.links)
        if not lost and kept == given:
            return span
        if lost:
            self._guard.drop(_REASON, lost)
        events = tuple(Event(event.name, {}, event.timestamp) for event in span.events)
        links = tuple(Link(link.context) for link in span.links)
        status = Status(span.status.status_code)
        return EnrichedSpan(span, attributes=kept, events=events, links=links, status=status)
