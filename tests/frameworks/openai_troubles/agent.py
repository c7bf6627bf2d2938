"""Calls of OpenAI's chat completions that go wrong."""

import openai
from opentelemetry import trace

from frameworks import otlp_file
from frameworks.troubles import TROUBLES, Trouble

provider = otlp_file.provider()
otlp_file.instrument()
client = openai.OpenAI()
tracer = trace.get_tracer("app")


def call(trouble: Trouble) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}} if trouble.stream else {}
    answer = client.chat.completions.create(
        model="gpt-fake", messages=[{"role": "user", "content": trouble.name}], **options
    )
    if not trouble.stream:
        return
    pieces = 0
    with answer:
        for chunk in answer:
            pieces += bool(chunk.choices and chunk.choices[0].delta.content)
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
