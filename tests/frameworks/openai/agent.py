"""A hand-made agent on OpenAI's chat completions, traced by the instrumentation openai-v2."""

import json

import openai
from opentelemetry import trace

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()
client = openai.OpenAI()
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


def ask(messages):
    answer = client.chat.completions.create(model="gpt-fake", messages=messages, tools=TOOLS)
    return answer.choices[0].message


def use(call) -> str:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.function.name}
    try:
        with tracer.start_as_current_span(f"execute_tool {call.function.name}", attributes=attributes):
            return globals()[call.function.name](**json.loads(call.function.arguments))
    except lab.ToolBrokeError as error:
        return str(error)


with agent_span("planner"):
    messages = [{"role": "user", "content": lab.TRIP}]
    while (message := ask(messages)).tool_calls:
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": use(call)})

with agent_span("planner"):
    stream = client.chat.completions.create(
        model="gpt-fake",
        messages=[{"role": "user", "content": lab.EVENING}],
        stream=True,
        stream_options={"include_usage": True},
    )
    print("".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices))

with agent_span("planner"):
    print(ask([{"role": "user", "content": lab.SILENT}]).content)

provider.shutdown()
