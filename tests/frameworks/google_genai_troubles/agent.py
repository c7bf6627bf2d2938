"""Calls of Google's client that go wrong."""

from google import genai
from google.genai import types
from opentelemetry import trace

from frameworks import lab, otlp_file
from frameworks.troubles import TROUBLES, Trouble

provider = otlp_file.provider()
otlp_file.instrument()
codes = [429, 500, 529]
retry = types.HttpRetryOptions(attempts=3, initial_delay=0.05, max_delay=0.1, http_status_codes=codes)
client = genai.Client(http_options=types.HttpOptions(base_url=lab.URL, retry_options=retry))
tracer = trace.get_tracer("app")


def call(trouble: Trouble) -> None:
    if not trouble.stream:
        client.models.generate_content(model="gemini-fake", contents=trouble.name)
        return
    stream = client.models.generate_content_stream(model="gemini-fake", contents=trouble.name)
    for pieces, _ in enumerate(stream, 1):
        if pieces == trouble.leave_after:
            break
    stream.close()


for trouble in TROUBLES[:-1]:  # it does not connect again
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    with tracer.start_as_current_span("invoke_agent planner", attributes=attributes):
        try:
            call(trouble)
        except Exception as error:
            print(f"{trouble.name}: {error!r}")

provider.shutdown()
