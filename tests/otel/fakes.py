"""Fakes for tests of recording: a clock that stands until it is told, and what foreign agents say."""

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from turntrace.otel.batch import LazyBatchProcessor

__all__ = [
    "AGENT",
    "CHAT",
    "HTTP",
    "MS",
    "START_NS",
    "TOOL",
    "Exported",
    "FakeClock",
    "a_chat",
    "a_tool",
    "an_agent",
]

MS = 1_000_000
START_NS = 1_790_000_000_000_000_000

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "coder"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.provider.name": "openai"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash"}
HTTP = {"http.request.method": "POST"}


def an_agent(tracer, **options):
    """``with an_agent(tracer)``: an agent's span."""
    return tracer.start_as_current_span("invoke_agent coder", attributes=AGENT, **options)


def a_chat(tracer, name="chat m-1"):
    """``with a_chat(tracer)``: the span of a model call."""
    return tracer.start_as_current_span(name, attributes=CHAT)


def a_tool(tracer, name="execute_tool bash"):
    """``with a_tool(tracer)``: the span of a tool call."""
    return tracer.start_as_current_span(name, attributes=TOOL)


class FakeClock:
    """Both clocks of a process; time passes when a test says so."""

    def __init__(self):
        self._wall_ns = START_NS
        self._monotonic_ns = 7_000_000_000

    def wall_ns(self):
        """The wall clock."""
        return self._wall_ns

    def monotonic_ns(self):
        """The monotonic clock."""
        return self._monotonic_ns

    def wait(self, ms):
        """Let ``ms`` milliseconds pass on both clocks."""
        self.step(ms)
        self._monotonic_ns += round(ms * MS)

    def step(self, ms):
        """Set the wall clock forward, or back."""
        self._wall_ns += round(ms * MS)


class Exported:
    """``with Exported(recorded) as exported``: what our own exporters would be given, by name."""

    def __init__(self, recorded):
        self._recorded = recorded
        self._exporter = InMemorySpanExporter()
        self._batch = LazyBatchProcessor(lambda: self._exporter, recorded.guard, 1000, lambda: None)

    def __enter__(self):
        self._recorded.processor.follow_with([self._batch])
        return self

    def __exit__(self, *error):
        self._batch.shutdown()

    def spans(self):
        """The spans so far; the last of a name wins."""
        assert self._recorded.processor.force_flush()
        return {span.name: span for span in self._exporter.get_finished_spans()}
