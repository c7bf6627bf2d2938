"""The global provider that gives way when the application sets one of its own."""

import threading

import pytest
from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from integration.programs import run_code
from turntrace.otel.delegate import DelegatingProvider

REMOTE = set_span_in_context(NonRecordingSpan(SpanContext(0xABC, 0xDEF, True, TraceFlags(1))), Context())


def provider():
    """An SDK provider, and what it exported."""
    made, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made, lambda: [span.name for span in exporter.get_finished_spans()]


def test_a_tracer_that_was_handed_out_follows_the_target():
    """Spans go where the provider points at their start, from tracers of any age."""
    (first, seen_first), (second, seen_second) = provider(), provider()
    delegate = DelegatingProvider(first)
    tracer = delegate.get_tracer("scope", "1.2", schema_url="https://s", attributes={"a": 1})
    tracer.start_span("a").end()
    with tracer.start_as_current_span("b") as span:
        delegate.follow(second)
        assert trace.get_current_span() is span
        assert span.instrumentation_scope.name == "scope"
        assert span.instrumentation_scope.version == "1.2"
    tracer.start_span("c").end()
    assert seen_first() == ["a", "b"]
    assert seen_second() == ["c"]


def test_the_tracer_of_the_target_is_made_once():
    """A call costs no new tracer while the target stays."""
    made, asked = provider()[0], []

    class Counting(TracerProvider):
        def get_tracer(self, *args, **kwargs):
            asked.append(args)
            return made.get_tracer(*args, **kwargs)

    delegate = DelegatingProvider(Counting(shutdown_on_exit=False))
    tracer = delegate.get_tracer("s")
    for _ in range(3):
        tracer.start_span("a").end()
    assert asked == [("s",)]


def test_what_the_api_does_not_know_is_the_targets():
    """An application that asks the global provider for SDK things finds them."""
    made, _ = provider()
    assert DelegatingProvider(made).resource is made.resource
    with pytest.raises(AttributeError, match="nonsense"):
        _ = DelegatingProvider(made).nonsense


def test_a_span_without_a_parent_is_below_the_remote_one():
    """TRACEPARENT is the parent in every thread, unless a span is current or given."""
    made, _ = provider()
    tracer = DelegatingProvider(made, REMOTE).get_tracer("s")
    parents = []
    thread = threading.Thread(target=lambda: parents.append(tracer.start_span("a").parent))
    thread.start()
    thread.join()
    with tracer.start_as_current_span("b") as outer:
        parents.append(outer.parent)
        assert tracer.start_span("c").parent == outer.get_span_context()
    given = set_span_in_context(NonRecordingSpan(SpanContext(5, 6, False, TraceFlags(1))), Context())
    assert tracer.start_span("d", given).parent.span_id == 6
    assert [parent.span_id for parent in parents] == [0xDEF, 0xDEF]


def test_what_the_context_carries_besides_is_kept_below_a_remote_parent():
    """Only the span is added to the caller's context."""
    made, _ = provider()
    seen = []
    made.add_span_processor(
        type("Seen", (), {
            "on_start": lambda self, span, parent_context: seen.append(parent_context),
            "on_end": lambda self, span: None, "_on_ending": lambda self, span: None,
        })()
    )  # fmt: skip
    token = attach(Context({"key": "value"}))
    try:
        DelegatingProvider(made, REMOTE).get_tracer("s").start_span("a").end()
    finally:
        detach(token)
    assert seen[0]["key"] == "value"


def test_a_block_decorator_of_the_tracer_works_for_coroutines():
    """start_as_current_span is a decorator too, as in the API."""
    import asyncio

    made, seen = provider()
    tracer = DelegatingProvider(made).get_tracer("s")

    @tracer.start_as_current_span("work")
    async def work():
        return trace.get_current_span().name

    assert asyncio.run(work()) == "work"
    assert seen() == ["work"]


SETS_ITS_OWN = """
import turntrace as tt
early = __import__("opentelemetry.trace").trace.get_tracer("early")
handle = tt.configure(trace=OUT)
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
tracer = trace.get_tracer("app")
tracer.start_span("before").end()
exporter, own = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
own.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(own)
assert trace.get_tracer_provider() is own
with tt.turn("a"):
    tracer.start_span("execute_tool x", attributes={"gen_ai.operation.name": "execute_tool"}).end()
    early.start_span("execute_tool y", attributes={"gen_ai.operation.name": "execute_tool"}).end()
print(sorted(span.name for span in exporter.get_finished_spans()))
handle.shutdown()
print(sorted(span.span.name for span in tt.read(OUT)[0].spans))
trace.set_tracer_provider(TracerProvider())
print(trace.get_tracer_provider() is own)
"""


def test_the_applications_provider_is_the_global_one_once_it_is_set(tmp_path):
    """Its exporters see what they saw before, our file sees all of it, a second set is refused as always."""
    out = tmp_path / "t.ndjson"
    ended = run_code(SETS_ITS_OWN.replace("OUT", repr(str(out))))
    names = "['execute_tool x', 'execute_tool y', 'invoke_agent a']"
    assert ended.out.splitlines() == [names, "['execute_tool x', 'execute_tool y']", "True"]
    assert ended.status == 0
    assert "Overriding of current TracerProvider is not allowed" in ended.err


API_ONLY = """
import turntrace as tt
from opentelemetry import trace
tt.configure(trace=OUT)
class Foreign(trace.TracerProvider):
    def get_tracer(self, *args, **kwargs):
        return trace.NoOpTracer()
trace.set_tracer_provider(Foreign())
with tt.turn("a"):
    pass
print(type(trace.get_tracer_provider()).__name__)
"""


def test_a_provider_that_takes_no_processors_is_followed_all_the_same(tmp_path):
    """A provider of the API alone records nothing of its own; our spans still reach our file."""
    out = tmp_path / "t.ndjson"
    ended = run_code(API_ONLY.replace("OUT", repr(str(out))))
    assert (ended.status, ended.out, ended.err) == (0, "Foreign\n", "")
    assert out.read_bytes().count(b'"type":"trace"') == 1


AGAIN = """
import turntrace as tt
from opentelemetry import trace
tracer = trace.get_tracer("app")
for name in ("first", "second"):
    handle = tt.configure(trace=f"OUT.{name}")
    with tt.turn(name):
        tracer.start_span("execute_tool x", attributes={"gen_ai.operation.name": "execute_tool"}).end()
    handle.shutdown()
"""


def test_recording_can_be_set_up_again_after_it_was_shut_down(tmp_path):
    """A second configure() points the same delegate at a new provider."""
    out = tmp_path / "t.ndjson"
    ended = run_code(AGAIN.replace("OUT", str(out)))
    assert (ended.status, ended.err) == (0, "")
    for name in ("first", "second"):
        text = (tmp_path / f"t.ndjson.{name}").read_text()
        assert text.count('"execute_tool x"') == 1
        assert f'"agent":"{name}"' in text
