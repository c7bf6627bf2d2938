"""A hand-made agent on Google's client, traced by its OpenTelemetry instrumentation."""

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
        return ask(question).text


def ask(contents):
    config = types.GenerateContentConfig(
        tools=[weather, tides, ask_researcher],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    return client.models.generate_content(model="gemini-fake", contents=contents, config=config)


def use(call) -> types.Part:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name}
    try:
        with tracer.start_as_current_span(f"execute_tool {call.name}", attributes=attributes):
            result = {"result": globals()[call.name](**call.args)}
    except lab.ToolBrokeError as error:
        result = {"error": str(error)}
    return types.Part.from_function_response(name=call.name, response=result)


with agent_span("planner"):
    contents = [types.UserContent(lab.TRIP)]
    while (answer := ask(contents)).function_calls:
        contents.append(answer.candidates[0].content)
        contents.append(types.UserContent([use(call) for call in answer.function_calls]))
    print(answer.text)

with agent_span("planner"):
    stream = client.models.generate_content_stream(model="gemini-fake", contents=lab.EVENING)
    print("".join(chunk.text or "" for chunk in stream))

with agent_span("planner"):
    print(ask(lab.SILENT).text)

provider.shutdown()
