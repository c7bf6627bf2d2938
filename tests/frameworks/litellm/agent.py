"""A hand-made agent on litellm, traced by the callback that litellm brings."""

import json
import time

import litellm
from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig
from opentelemetry import trace

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()
litellm.callbacks = [OpenTelemetry(config=OpenTelemetryConfig(exporter="console"), tracer_provider=provider)]
tracer = trace.get_tracer("app")

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": name,
            "parameters": {"type": "object", "properties": {argument: {"type": "string"}}},
        },
    }
    for name, argument in (("weather", "city"), ("tides", "port"), ("ask_researcher", "question"))
]


def weather(city: str) -> str:
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


def tides(port: str) -> str:
    with lab.tool("tides", 0.05, fails=True):
        return port


def ask_researcher(question: str) -> str:
    with lab.tool("ask_researcher"), lab.agent("researcher"), agent_span("researcher"):
        return ask([{"role": "user", "content": question}]).content


def agent_span(name: str):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes)


def call(messages, **options):
    return litellm.completion(
        model="openai/gpt-fake",
        api_base=f"{lab.URL}/v1",
        api_key="fake",
        messages=messages,
        tools=TOOLS,
        num_retries=2,
        **options,
    )


def ask(messages):
    return call(messages).choices[0].message


def use(wanted) -> str:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": wanted.function.name}
    try:
        with tracer.start_as_current_span(f"execute_tool {wanted.function.name}", attributes=attributes):
            return globals()[wanted.function.name](**json.loads(wanted.function.arguments))
    except lab.ToolBrokeError as error:
        return str(error)


with agent_span("planner"):
    messages = [{"role": "user", "content": lab.TRIP}]
    while (message := ask(messages)).tool_calls:
        messages.append(message.model_dump(exclude_none=True))
        for wanted in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": wanted.id, "content": use(wanted)})

with agent_span("planner"):
    chunks = call(
        [{"role": "user", "content": lab.EVENING}], stream=True, stream_options={"include_usage": True}
    )
    print("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))

with agent_span("planner"):
    print(ask([{"role": "user", "content": lab.SILENT}]).content)

time.sleep(0.5)  # its spans are made by a thread
provider.shutdown()
