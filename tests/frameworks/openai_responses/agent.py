"""A hand-made agent on OpenAI's responses with the asynchronous client; tools at the same time."""

import asyncio
import json

import openai
from opentelemetry import trace

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()
client = openai.AsyncOpenAI()
tracer = trace.get_tracer("app")

TOOLS = [
    {
        "type": "function",
        "name": name,
        "parameters": {"type": "object", "properties": {argument: {"type": "string"}}},
    }
    for name, argument in (("weather", "city"), ("tides", "port"), ("ask_researcher", "question"))
]


async def weather(city: str) -> str:
    async with lab.atool("weather", 0.1):
        return f"Sun in {city}."


async def tides(port: str) -> str:
    async with lab.atool("tides", 0.05, fails=True):
        return port


async def ask_researcher(question: str) -> str:
    async with lab.atool("ask_researcher"):
        with lab.agent("researcher"), agent_span("researcher"):
            return (await ask([{"role": "user", "content": question}])).output_text


def agent_span(name: str):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes)


async def ask(items):
    return await client.responses.create(model="gpt-fake", input=items, tools=TOOLS)


async def use(call) -> dict:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name}
    try:
        with tracer.start_as_current_span(f"execute_tool {call.name}", attributes=attributes):
            output = await globals()[call.name](**json.loads(call.arguments))
    except lab.ToolBrokeError as error:
        output = str(error)
    return {"type": "function_call_output", "call_id": call.call_id, "output": output}


async def plan() -> str:
    items = [{"role": "user", "content": lab.TRIP}]
    while True:
        answer = await ask(items)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        items += [call.model_dump(exclude_none=True) for call in calls]
        items += await asyncio.gather(*(use(call) for call in calls))


async def describe() -> str:
    text = ""
    stream = await client.responses.create(model="gpt-fake", input=lab.EVENING, stream=True)
    async for event in stream:
        text += event.delta if event.type == "response.output_text.delta" else ""
    return text


async def main() -> None:
    with agent_span("planner"):
        print(await plan())
    with agent_span("planner"):
        print(await describe())
    with agent_span("planner"):
        print((await ask(lab.SILENT)).output_text)


asyncio.run(main())
provider.shutdown()
