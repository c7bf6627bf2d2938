"""What leaves the process through exporters that turntrace sets up."""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from turntrace.otel.content import ContentFreeExporter
from turntrace.otel.guard import Guard


class Inner(InMemorySpanExporter):
    """Says how it was asked to end."""

    flushed_ms = None
    is_down = False

    def force_flush(self, timeout_millis=30000):
        """Note the time."""
        self.flushed_ms = timeout_millis
        return False

    def shutdown(self):
        """Note the end."""
        self.is_down = True


def sent(keep=frozenset(), status=None, event=None, links=(), **attributes):
    """A span on its way: what was exported, what was given, what was counted."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("t")
    span = tracer.start_span("s", attributes=attributes, links=links)
    if status is not None:
        span.set_status(status)
    if event is not None:
        span.add_event("happened", event, timestamp=5)
    span.end()
    guard, inner = Guard(), Inner()
    assert ContentFreeExporter(inner, keep, guard).export([span]) is SpanExportResult.SUCCESS
    (exported,) = inner.get_finished_spans()
    return exported, span, guard.dropped["content"]


def test_attributes_off_the_list_are_dropped_and_counted():
    """A prompt stays in the process; what is on the list goes out."""
    exported, _, dropped = sent(**{"gen_ai.request.model": "m", "gen_ai.prompt": "secret", "x": 1})
    assert exported.attributes == {"gen_ai.request.model": "m"}
    assert dropped == 2


def test_names_that_the_user_keeps_go_out():
    """TURNTRACE_KEEP_ATTRIBUTES adds to the list."""
    exported, _, dropped = sent(frozenset({"x"}), x=1, y=2)
    assert exported.attributes == {"x": 1}
    assert dropped == 1


def test_a_status_message_and_event_attributes_are_content():
    """The code of a status and the name and time of an event stay; what they say does not."""
    exported, _, dropped = sent(
        status=Status(StatusCode.ERROR, "secret"), event={"exception.message": "secret"}
    )
    assert exported.status.status_code is StatusCode.ERROR
    assert exported.status.description is None
    assert [(event.name, dict(event.attributes), event.timestamp) for event in exported.events] == [
        ("happened", {}, 5)
    ]
    assert dropped == 2
    assert "secret" not in exported.to_json()


def test_what_a_link_says_is_content_too():
    """A link leads where it led, without attributes."""
    there = SpanContext(7, 8, False, TraceFlags(TraceFlags.SAMPLED))
    exported, _, dropped = sent(links=[Link(there, {"why": "secret"})])
    assert [(link.context, link.attributes or {}) for link in exported.links] == [(there, {})]
    assert dropped == 1


def test_long_strings_are_cut_without_a_count():
    """256 characters of an allowed string are enough; nothing was left out."""
    exported, _, dropped = sent(**{"gen_ai.request.model": "m" * 300})
    assert exported.attributes == {"gen_ai.request.model": "m" * 256}
    assert dropped == 0


def test_a_span_without_content_goes_out_as_it_is():
    """No copy is made of what needs none."""
    exported, span, dropped = sent(**{"gen_ai.request.model": "m"})
    assert exported is span
    assert dropped == 0


def test_flush_and_shutdown_are_the_exporters():
    """The filter adds nothing to how an exporter ends."""
    inner = Inner()
    exporter = ContentFreeExporter(inner, frozenset(), Guard())
    assert exporter.force_flush(7) is False
    exporter.shutdown()
    assert (inner.flushed_ms, inner.is_down) == (7, True)
