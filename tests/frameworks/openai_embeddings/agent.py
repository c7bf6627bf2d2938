"""A hand-made agent that looks things up by their embeddings, before it asks the model and in its tool."""

import json

import openai
from opentelemetry import trace

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()
client = openai.OpenAI()
tracer = trace.get_tracer("app")

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "w", "parameters": PARAMETERS}}]


def near(text: str) -> int:
    answer = client.embeddings.create(model="embed-fake", input=[text, "boats"])
    return len(answer.data)


def weather(city: str) -> str:
    with lab.tool("weather", 0.05):
        return f"Sun in {city}, as in {near(city)} other places."


def ask(messages):
    return client.chat.completions.create(model="gpt-fake", messages=messages, tools=TOOLS).choices[0].message


AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}

with tracer.start_as_current_span("invoke_agent planner", attributes=AGENT):
    near(lab.TRIP)
    messages = [{"role": "user", "content": lab.TRIP}]
    while (message := ask(messages)).tool_calls:
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            with tracer.start_as_current_span("execute_tool weather", attributes=TOOL):
                said = weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
    print(message.content)

provider.shutdown()
