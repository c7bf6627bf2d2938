"""An agent that knows OpenTelemetry and nothing of turntrace: one turn, with a nested agent in a tool of it.

With the argument ``exports`` it has a provider and an exporter of its own.
"""

import sys
import time

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

if sys.argv[1:] == ["exports"]:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
tracer = trace.get_tracer("app")


def span(operation, name, **more):
    """A span of the GenAI conventions."""
    attributes = {
        "gen_ai.operation.name": operation,
        **{f"gen_ai.{key}": value for key, value in more.items()},
    }
    return tracer.start_as_current_span(f"{operation} {name}", attributes=attributes)


def chat():
    """A model call."""
    tokens = {"usage.input_tokens": 10, "usage.output_tokens": 5}
    with span("chat", "m", **{"request.model": "m", "provider.name": "openai"}, **tokens):
        time.sleep(0.03)


with span("invoke_agent", "outer", **{"agent.name": "outer"}):
    chat()
    with (
        span("execute_tool", "ask", **{"tool.name": "ask"}),
        span("invoke_agent", "inner", **{"agent.name": "inner"}),
    ):
        chat()
