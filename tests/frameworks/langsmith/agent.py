"""A hand-made agent under LangSmith's SDK in OpenTelemetry mode: its decorator and its wrapper of OpenAI's client."""

import json

import openai
from langsmith import traceable
from langsmith.run_trees import get_cached_client
from langsmith.wrappers import wrap_openai

from frameworks import lab, otlp_file

provider = otlp_file.provider()
client = wrap_openai(openai.OpenAI())
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": {}}},
    }
    for name in ("weather", "tides", "ask_researcher")
]


@traceable(run_type="tool")
def weather(city: str) -> str:
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


@traceable(run_type="tool")
def tides(port: str) -> str:
    with lab.tool("tides", 0.05, fails=True):
        return port


@traceable(run_type="tool")
def ask_researcher(question: str) -> str:
    with lab.tool("ask_researcher"), lab.agent("researcher"):
        return researcher(question)


@traceable(run_type="chain")
def researcher(prompt: str) -> str:
    return ask([{"role": "user", "content": prompt}]).content


def ask(messages):
    answer = client.chat.completions.create(model="gpt-fake", messages=messages, tools=TOOLS)
    return answer.choices[0].message


def use(call) -> str:
    try:
        return globals()[call.function.name](**json.loads(call.function.arguments))
    except lab.ToolBrokeError as error:
        return str(error)


@traceable(run_type="chain")
def planner(prompt: str) -> str:
    messages = [{"role": "user", "content": prompt}]
    if prompt == lab.EVENING:
        chunks = client.chat.completions.create(
            model="gpt-fake", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    while (message := ask(messages)).tool_calls:
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": use(call)})
    return message.content


for prompt in lab.PROMPTS:
    print(planner(prompt))

get_cached_client().flush()
provider.shutdown()
