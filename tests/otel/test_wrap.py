"""wrap(): exclusive time on an application's own exports, exact beside a processor, provisional without."""

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, TraceFlags

import turntrace as tt
from otel.fakes import CHAT, HTTP, MS, START_NS, a_tool, an_agent
from recordings import Recorded
from turntrace.otel import span_end, wrap
from turntrace.otel.wrap import EnrichingExporter


class Inner(InMemorySpanExporter):
    """Says how it was asked to end."""

    ended = ()

    def force_flush(self, timeout_millis=30000):
        """Note the time."""
        self.ended = (*self.ended, timeout_millis)
        return False

    def shutdown(self):
        """Note the end."""
        self.ended = (*self.ended, "down")


def added(span):
    """What was added to a span: exclusive ms, whether provisional, phase."""
    get = span.attributes.get
    return (
        get("turntrace.exclusive_ms"),
        get("turntrace.exclusive_provisional"),
        get("turntrace.phase"),
    )


def run(tracer, clock):
    """A tool of 30 ms, 10 of them an HTTP call; children end first."""
    with an_agent(tracer):
        with a_tool(tracer):
            clock.wait(20)
            with tracer.start_as_current_span("GET", attributes=HTTP):
                clock.wait(10)
        clock.wait(5)


def test_without_a_processor_values_are_provisional(clock):
    """An exporter knows the children that ended so far; it says so on each span."""
    inner = Inner()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(EnrichingExporter(inner)))
    run(provider.get_tracer("app"), clock)
    spans = {span.name: span for span in inner.get_finished_spans()}
    assert added(spans["GET"]) == (10.0, True, None)
    assert added(spans["execute_tool bash"]) == (20.0, True, "tool_execution")
    assert added(spans["invoke_agent coder"]) == (5.0, True, None)
    assert spans["execute_tool bash"].attributes["gen_ai.tool.name"] == "bash"


def test_beside_a_processor_values_are_exact(clock):
    """The processor's own computation is taken, once, and is not marked."""
    inner = Inner()
    with Recorded(clock=clock) as recorded:
        recorded.provider.add_span_processor(SimpleSpanProcessor(EnrichingExporter(inner)))
        tracer = recorded.tracer()
        with an_agent(tracer):
            outer = tracer.start_span("chat m-1", attributes=CHAT)
            clock.wait(10)
            outer.end()
        assert recorded.processor.recording.exclusive_of == {}
    spans = {span.name: span for span in inner.get_finished_spans()}
    assert added(spans["chat m-1"]) == (10.0, None, "generation")
    assert added(spans["invoke_agent coder"]) == (0.0, None, None)


def test_a_processor_that_never_saw_the_span_leaves_it_provisional(clock):
    """A span from another provider has no exact value, and says so."""
    inner = Inner()
    with Recorded(clock=clock):
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(EnrichingExporter(inner)))
        run(provider.get_tracer("app"), clock)
    assert added(inner.get_finished_spans()[0]) == (10.0, True, None)


def test_own_spans_go_through_as_they_are():
    """A span of turntrace says its exclusive time already."""
    inner = Inner()
    with Recorded() as recorded:
        recorded.provider.add_span_processor(SimpleSpanProcessor(EnrichingExporter(inner)))
        with tt.turn("a"), tt.tool("bash"):
            pass
    for span in inner.get_finished_spans():
        assert span is recorded.spans()[span.name]


def span(number, parent=None, start_ms=0, end_ms=10):
    """An ended span by number."""
    ids = [
        None if one is None else SpanContext(1, one, False, TraceFlags(TraceFlags.SAMPLED))
        for one in (number, parent)
    ]
    times = [START_NS + ms * MS for ms in (start_ms, end_ms)]
    return ReadableSpan(f"s{number}", context=ids[0], parent=ids[1], start_time=times[0], end_time=times[1])


def test_children_count_within_their_parent_and_once():
    """Overlapping children and such that lie outside the parent take no more than it has."""
    inner = Inner()
    children = [span(2, 1, -5, 2), span(3, 1, 1, 4), span(4, 1, 3, 5), span(5, 1, 9, 20)]
    EnrichingExporter(inner).export([span(1), *children])
    assert added(inner.get_finished_spans()[0])[0] == 4.0


def test_children_that_come_in_a_later_batch_are_not_known():
    """That is why the value is provisional."""
    inner = Inner()
    exporter = EnrichingExporter(inner)
    exporter.export([span(1)])
    exporter.export([span(2, 1)])
    assert added(inner.get_finished_spans()[0])[:2] == (10.0, True)


@pytest.mark.parametrize(
    ("bound", "limit", "spans"),
    [
        ("_MAX_CHILDREN", 1, [span(2, 1, 0, 3), span(3, 1, 3, 6)]),
        ("_MAX_PARENTS", 1, [span(2, 1), span(4, 3, 0, 3)]),
    ],
)
def test_what_is_remembered_has_a_bound(monkeypatch, bound, limit, spans):
    """Children beyond the bound, and the oldest parents, are forgotten."""
    monkeypatch.setattr(wrap, bound, limit)
    inner = Inner()
    exporter = EnrichingExporter(inner)
    exporter.export(spans)
    parent = spans[-1].parent.span_id
    exporter.export([span(parent), span(1)])
    assert len(exporter._children) <= 1
    times = [added(one)[0] for one in inner.get_finished_spans()[2:]]
    assert times == [7.0, 10.0]


def test_a_span_without_ids_and_times_goes_through():
    """An odd span is no reason to lose a batch."""
    inner = Inner()
    EnrichingExporter(inner).export([ReadableSpan("odd")])
    assert added(inner.get_finished_spans()[0]) == (0.0, True, None)


def test_exact_values_that_nobody_asks_for_are_forgotten(clock, monkeypatch):
    """A processor keeps no more values for an exporter than a bound, the oldest first."""
    monkeypatch.setattr(span_end, "_EXCLUSIVE_KEPT", 2)
    with Recorded(clock=clock) as recorded:
        kept = recorded.processor.recording.keep_exclusive()
        for _ in range(5):
            recorded.tracer().start_span("chat m-1", attributes=CHAT).end()
        assert len(kept) == 2


def test_flush_and_shutdown_are_the_exporters():
    """The wrapper adds nothing to how an exporter ends."""
    inner = Inner()
    exporter = EnrichingExporter(inner)
    assert exporter.force_flush(7) is False
    exporter.shutdown()
    assert inner.ended == (7, "down")
