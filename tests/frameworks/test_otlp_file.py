"""The exporter of the framework traces: what it writes, turntrace reads as it was, without the machine."""

import json
from pathlib import Path

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from frameworks.otlp_file import OtlpFileExporter
from turntrace.files.foreign import read_json
from turntrace.files.raw_spans import RawSpans


def written(path, make):
    """The text of a file of spans that ``make`` made, and the spans that are read from it."""
    provider = TracerProvider(resource=Resource({"service.name": "agent", "host.name": "box"}))
    provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path)))
    make(provider.get_tracer("scope", "1"))
    provider.shutdown()
    spans = RawSpans()
    with path.open("rb") as lines:
        read_json(lines, spans)
    assert spans.issues == []
    return path.read_text(), {span.name: span for span in spans.spans}


def test_spans_are_read_as_they_were(tmp_path):
    """Parents, kinds, times, status and attributes of every type."""

    def make(tracer):
        with tracer.start_as_current_span("turn") as turn:
            link = Link(turn.get_span_context(), {"why": "same"})
            span = tracer.start_span("call", kind=SpanKind.CLIENT, links=[link], start_time=5)
            span.set_attributes({"a": 1, "b": True, "c": 1.5, "d": "x", "e": [1, 2]})
            span.add_event("first", {"f": 2}, timestamp=6)
            span.set_status(Status(StatusCode.ERROR, "no"))
            span.end(end_time=2**62)

    text, spans = written(tmp_path / "t.json", make)
    call, turn = spans["call"], spans["turn"]
    assert (call.parent_id, turn.parent_id) == (turn.span_id, None)
    assert (call.kind, call.status, call.scope) == ("client", "error", "scope")
    assert (call.start_ns, call.end_ns) == (5, 2**62)
    assert call.attributes == {"a": 1, "b": True, "c": 1.5, "d": "x", "e": (1, 2)}
    assert call.events == ((6, "first", {"f": 2}),)
    assert call.resource == {"service.name": "agent"}
    assert len(text.splitlines()) == 2


def test_nothing_of_the_machine_is_written(tmp_path):
    """Neither stack traces nor the folders of this checkout."""

    def make(tracer):
        with tracer.start_as_current_span("turn") as span:
            span.set_attribute("error", f"broke in {__file__}")
            try:
                raise ValueError("broke")
            except ValueError as error:
                span.record_exception(error)

    text, spans = written(tmp_path / "t.json", make)
    assert str(Path(__file__).parents[2]) not in text
    assert spans["turn"].attributes["error"].endswith("test_otlp_file.py")
    event = json.loads(text)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["events"][0]
    assert {"key": "exception.stacktrace", "value": {"stringValue": ""}} in event["attributes"]
