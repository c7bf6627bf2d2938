"""Messages sent on through the official OTLP exporters, without content unless it is asked for."""

from collections.abc import Iterable, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from turntrace.config import Settings
from turntrace.otel.content import ContentFreeExporter
from turntrace.otel.exporters import span_exporter
from turntrace.otel.guard import Guard
from turntrace.otel.quiet import quieten
from turntrace.otel.replay import replayed

__all__ = ["Sender"]


class Sender:
    """Sends spans to one endpoint. ``dropped`` counts what was held back, by reason."""

    __slots__ = ("_exporter", "_guard")

    def __init__(self, settings: Settings, endpoint: str | None, *, keeps_content: bool) -> None:
        """Load the exporter; ``endpoint`` None goes where the OTEL_* variables say.

        Raises:
            ConfigurationError: for an endpoint or a protocol that no official exporter takes.
        """
        quieten()
        self._guard = Guard()
        exporter = span_exporter(settings, endpoint)()
        self._exporter: SpanExporter = (
            exporter
            if keeps_content
            else ContentFreeExporter(exporter, settings.keep_attributes, self._guard)
        )

    def send(self, resource_spans: Iterable[Any]) -> bool:
        """Send the spans of ResourceSpans messages; False when the endpoint did not take them.

        It takes as long as OTEL_EXPORTER_OTLP_TIMEOUT allows, further tries included.
        """
        return self.send_spans(list(replayed(resource_spans)))

    def send_spans(self, spans: Sequence[ReadableSpan]) -> bool:
        """The same for spans of the SDK."""
        return self._exporter.export(spans) is SpanExportResult.SUCCESS

    @property
    def dropped(self) -> dict[str, int]:
        """What was held back so far."""
        return dict(self._guard.dropped)

    def close(self) -> None:
        """Give up what is being sent."""
        self._exporter.shutdown()
