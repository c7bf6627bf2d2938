"""An exporter that writes each batch of spans as one line of OTLP JSON, with nothing of the machine in it."""

import importlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

__all__ = ["OtlpFileExporter", "instrument", "processor", "provider"]


_PLACES = (str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix)


def provider(*, install: bool = True, service: str = "agent") -> TracerProvider:
    """A provider whose spans go to the file; with ``install`` it is everybody's."""
    found = TracerProvider(resource=Resource({"service.name": service}))
    found.add_span_processor(processor())
    if install:
        trace.set_tracer_provider(found)
    return found


def instrument() -> None:
    """Switch on the instrumentations that the case names as ``module:class``."""
    for name in filter(None, os.environ["FRAMEWORKS_INSTRUMENTS"].split(",")):
        module, _, kind = name.partition(":")
        getattr(importlib.import_module(module), kind)().instrument()


def processor() -> SimpleSpanProcessor:
    """What to add to a provider that a framework made itself."""
    return SimpleSpanProcessor(OtlpFileExporter(Path(os.environ["FRAMEWORKS_SPANS"])))


class OtlpFileExporter(SpanExporter):
    """Appends to ``path``; whole lines only, so that several processes may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write ``spans`` as one line."""
        line = json.dumps({"resourceSpans": [_resource_spans(span) for span in spans]}) + "\n"
        with self._path.open("a") as file:
            file.write(line)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing is held back."""

    def force_flush(self, timeout_millis: int = 0) -> bool:
        """Nothing is held back."""
        return True


def _resource_spans(span: ReadableSpan) -> dict[str, Any]:
    scope = span.instrumentation_scope
    named = {"name": scope.name, "version": scope.version or ""} if scope else {}
    return {
        "resource": {
            "attributes": _attributes(
                (key, value)
                for key, value in span.resource.attributes.items()
                if key.startswith(("service.", "telemetry."))
            )
        },
        "scopeSpans": [{"scope": named, "spans": [_span(span)]}],
    }


def _span(span: ReadableSpan) -> dict[str, Any]:
    context = span.get_span_context()
    value = {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "flags": int(context.trace_flags) | (0x100 if span.parent else 0),
        "name": span.name,
        "kind": span.kind.value + 1,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": _attributes((span.attributes or {}).items()),
        "events": [
            {
                "timeUnixNano": str(event.timestamp),
                "name": event.name,
                "attributes": _attributes((event.attributes or {}).items()),
            }
            for event in span.events
        ],
        "links": [
            {
                "traceId": f"{link.context.trace_id:032x}",
                "spanId": f"{link.context.span_id:016x}",
                "attributes": _attributes((link.attributes or {}).items()),
            }
            for link in span.links
        ],
        "status": {"code": span.status.status_code.value},
    }
    if span.parent:
        value["parentSpanId"] = f"{span.parent.span_id:016x}"
        value["flags"] |= 0x200 if span.parent.is_remote else 0
    if span.status.description:
        value["status"]["message"] = span.status.description
    return {key: part for key, part in value.items() if part != []}


def _attributes(items: Iterable[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Attributes, without stack traces: they name folders of the machine."""
    return [
        {"key": key, "value": _value("" if key == "exception.stacktrace" else value)} for key, value in items
    ]


def _value(value: Any) -> dict[str, Any]:
    for kind, key, text in (
        (bool, "boolValue", bool),
        (int, "intValue", str),
        (float, "doubleValue", float),
        (dict, "kvlistValue", lambda given: {"values": _attributes(given.items())}),
        ((list, tuple), "arrayValue", lambda given: {"values": [_value(one) for one in given]}),
    ):
        if isinstance(value, kind):
            return {key: text(value)}
    return {} if value is None else {"stringValue": _without_places(str(value))}


def _without_places(text: str) -> str:
    """A text without the folders of this machine."""
    for place in _PLACES:
        text = text.replace(place, "")
    return text
