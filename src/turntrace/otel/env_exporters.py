"""The exporters that OTEL_TRACES_EXPORTER can name: ``turntrace`` (the file), ``turntrace_otlp``.

For set-ups that allow nothing but an exporter. An exporter sees spans after they ended, in batches: what
a killed process had open is lost, and no journal says that it was there. ``turntrace run``,
``configure()`` and ``attach()`` use a span processor, which sees them start.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import INVALID_SPAN_CONTEXT, StatusCode

from turntrace.config import Settings, program_name
from turntrace.core.attribution import attributed
from turntrace.core.codec.encode import encode_block
from turntrace.core.model import RawSpan, SpanStatus
from turntrace.core.turns import assemble
from turntrace.files.append import Rotation, append_block
from turntrace.files.out import default_out, expand
from turntrace.files.preparation import prepare
from turntrace.otel.content import ContentFreeExporter
from turntrace.otel.exporters import span_exporter
from turntrace.otel.guard import Guard
from turntrace.otel.run_ids import new_run_id
from turntrace.otel.span_start import KIND_NAMES
from turntrace.otel.wrap import EnrichingExporter

__all__ = ["MAX_HELD_SPANS", "TurntraceFileExporter", "TurntraceOtlpExporter", "raw_span"]

MAX_HELD_SPANS: Final = 100_000
"""Spans that wait for the end of their local root; above it the oldest trace is written as it is."""

_MAX_WRITTEN: Final = 10_000
"""Traces that are remembered as written, so that a late span does not become a turn of its own."""

_STATUS: Final[Mapping[StatusCode, SpanStatus]] = {
    StatusCode.UNSET: "unset",
    StatusCode.OK: "ok",
    StatusCode.ERROR: "error",
}


class TurntraceFileExporter(SpanExporter):
    """Writes turns to TURNTRACE_TRACE, or to a new file in .turntrace, each when its local root has ended.

    Raises:
        ConfigurationError: when a variable of ours cannot be used.
        TraceWriteError: when the file cannot be written.
    """

    def __init__(self) -> None:
        self._settings = Settings.from_env()
        template = self._settings.trace or default_out()
        self.out = Path(expand(template, run_id=new_run_id(), agent=program_name())).absolute()
        prepare(self.out, truncate=False)
        self._rotation = Rotation(self._settings.trace_max_bytes, self._settings.trace_keep)
        self._guard = Guard()
        self._lock = threading.Lock()
        self._held: OrderedDict[str, list[RawSpan]] = OrderedDict()
        self._held_count = 0
        self._written: OrderedDict[str, None] = OrderedDict()

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many spans were left out, by reason."""
        return self._guard.dropped

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Hold the spans; write the traces whose local root is among them."""
        with self._lock:
            ended: dict[str, None] = {}
            for span in spans:
                trace_id = self._hold(span)
                if span.parent is None or span.parent.is_remote:
                    ended[trace_id] = None
            results = [self._write(trace_id) for trace_id in ended]
            while self._held_count > MAX_HELD_SPANS:
                results.append(self._give_up(next(iter(self._held))))
        return SpanExportResult.SUCCESS if all(results) else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Write what is left: turns whose root never ended, as interrupted."""
        with self._lock:
            for trace_id in tuple(self._held):
                self._give_up(trace_id)

    def _hold(self, span: ReadableSpan) -> str:
        raw = raw_span(span)
        self._held.setdefault(raw.trace_id, []).append(raw)
        self._held_count += 1
        return raw.trace_id

    def _give_up(self, trace_id: str) -> bool:
        """Write spans whose local root did not end; drop those that came after their turn was written."""
        if trace_id not in self._written:
            return self._write(trace_id)
        late = self._held.pop(trace_id)
        self._held_count -= len(late)
        self._guard.drop("late", len(late))
        return True

    def _write(self, trace_id: str) -> bool:
        """Append the turns of a trace; False when the disk does not take them."""
        spans = self._held.pop(trace_id)
        self._held_count -= len(spans)
        self._written[trace_id] = None
        while len(self._written) > _MAX_WRITTEN:
            self._written.popitem(last=False)
        try:
            for turn in assemble(spans):
                if turn.parent_run_id is None:  # the others are read off the turn around them
                    labelled = replace(turn, labels={**self._settings.labels, **turn.labels})
                    block = encode_block(labelled, attributed(labelled))
                    append_block(self.out, block, self._rotation)
        except OSError as error:
            self._guard.lost(str(self.out), error, len(spans))
            return False
        return True


class TurntraceOtlpExporter(EnrichingExporter):
    """The official OTLP exporter, with phase and exclusive time on every span and without content.

    Named by a variable it is made without arguments, by a configuration file (OTEL_CONFIG_FILE) with those
    that stand there: ``endpoint`` (http://HOST:PORT), ``protocol`` (grpc or http/protobuf) and ``content``
    (keep or drop). What is not given the OTEL_EXPORTER_OTLP_* variables say; the protocol may be the port's.
    Content goes out when that, or OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, asks for it.

    Raises:
        ConfigurationError: for a protocol that no official exporter speaks.
    """

    def __init__(
        self,
        *,
        endpoint: str | None = None,
        protocol: str | None = None,
        content: Literal["drop", "keep"] = "drop",
    ) -> None:
        settings = Settings.from_env()
        if protocol is not None:
            settings = replace(settings, protocol=protocol)
        base = None if endpoint is None else endpoint.removesuffix("/").removesuffix("/v1/traces")
        exporter = span_exporter(settings, base)()
        if content != "keep" and not settings.capture_content:
            exporter = ContentFreeExporter(exporter, settings.keep_attributes, Guard())
        super().__init__(exporter)


def raw_span(span: ReadableSpan) -> RawSpan:
    """An ended span of the SDK as the record that dialects read."""
    context, parent, scope = (
        span.get_span_context() or INVALID_SPAN_CONTEXT,
        span.parent,
        span.instrumentation_scope,
    )
    start_ns = span.start_time or 0
    return RawSpan(
        span_id=f"{context.span_id:016x}",
        trace_id=f"{context.trace_id:032x}",
        parent_id=None if parent is None else f"{parent.span_id:016x}",
        name=span.name,
        start_ns=start_ns,
        end_ns=start_ns if span.end_time is None else span.end_time,
        kind=KIND_NAMES[span.kind],
        scope="" if scope is None else scope.name,
        status=_STATUS[span.status.status_code],
        attributes=dict(span.attributes or {}),
        events=tuple((event.timestamp, event.name, dict(event.attributes or {})) for event in span.events),
        resource=dict(span.resource.attributes),
        remote_parent=parent is not None and parent.is_remote,
    )
