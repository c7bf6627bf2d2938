"""Calls of Anthropic's messages that go wrong."""

import anthropic
from opentelemetry import trace

from frameworks import otlp_file
from frameworks.troubles import TROUBLES, Trouble

provider = otlp_file.provider()
otlp_file.instrument()
client = anthropic.Anthropic()
tracer = trace.get_tracer("app")


def call(trouble: Trouble) -> None:
    answer = client.messages.create(
        model="claude-fake",
        max_tokens=200,
        messages=[{"role": "user", "content": trouble.name}],
        stream=trouble.stream,
    )
    if not trouble.stream:
        return
    pieces = 0
    with answer:
        for event in answer:
            pieces += event.type == "content_block_delta"
            if pieces == trouble.leave_after:
                break


for trouble in TROUBLES:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    with tracer.start_as_current_span("invoke_agent planner", attributes=attributes):
        try:
            call(trouble)
        except Exception as error:
            print(f"{trouble.name}: {error!r}")

provider.shutdown()
