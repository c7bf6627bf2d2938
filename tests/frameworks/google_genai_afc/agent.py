"""Google's client that calls functions itself, traced by its OpenTelemetry instrumentation."""

from google import genai
from google.genai import types
from opentelemetry import trace
from opentelemetry.instrumentation.google_genai import GoogleGenAiSdkInstrumentor

from frameworks import lab, otlp_file

provider = otlp_file.provider()
GoogleGenAiSdkInstrumentor().instrument()
retry = types.HttpRetryOptions(attempts=3, initial_delay=0.05, max_delay=0.1)
client = genai.Client(http_options=types.HttpOptions(base_url=lab.URL, retry_options=retry))
tracer = trace.get_tracer("app")


def agent_span(name: str):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes)


def weather(city: str) -> str:
    """Tell the weather of a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


def tides(port: str) -> str:
    """Tell the tides of a port."""
    with lab.tool("tides", 0.05, fails=True):
        return port


def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    with lab.tool("ask_researcher"), lab.agent("researcher"), agent_span("researcher"):
        return client.models.generate_content(model="gemini-fake", contents=question).text


with agent_span("planner"):
    config = types.GenerateContentConfig(tools=[weather, tides, ask_researcher])
    print(client.models.generate_content(model="gemini-fake", contents=lab.TRIP, config=config).text)

with agent_span("planner"):
    stream = client.models.generate_content_stream(model="gemini-fake", contents=lab.EVENING)
    print("".join(chunk.text or "" for chunk in stream))

with agent_span("planner"):
    print(client.models.generate_content(model="gemini-fake", contents=lab.SILENT).text)

provider.shutdown()
