"""A hand-made agent whose tools are those of an MCP server."""

import asyncio
import json
import os
import sys
from pathlib import Path

import openai
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from opentelemetry import trace
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

from frameworks import lab, otlp_file

provider = otlp_file.provider()
OpenAIInstrumentor().instrument()
client = openai.AsyncOpenAI()
tracer = trace.get_tracer("app")


def agent_span(name: str):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes)


async def use(session: ClientSession, call) -> dict:
    result = await session.call_tool(call.function.name, json.loads(call.function.arguments))
    return {"role": "tool", "tool_call_id": call.id, "content": result.content[0].text}


async def run(session: ClientSession, prompt: str) -> str:
    listed = await session.list_tools()
    tools = [
        {"type": "function", "function": {"name": tool.name, "parameters": tool.input_schema}}
        for tool in listed.tools
    ]
    messages = [{"role": "user", "content": prompt}]
    while True:
        answer = await client.chat.completions.create(model="gpt-fake", messages=messages, tools=tools)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        messages += await asyncio.gather(*(use(session, call) for call in message.tool_calls))


async def stream(prompt: str) -> str:
    chunks = await client.chat.completions.create(
        model="gpt-fake",
        messages=[{"role": "user", "content": prompt}],
        stream=True,
        stream_options={"include_usage": True},
    )
    return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices])


async def main() -> None:
    server = StdioServerParameters(
        command=sys.executable, args=[str(Path(__file__).with_name("server.py"))], env=dict(os.environ)
    )
    async with stdio_client(server) as pipes, ClientSession(*pipes) as session:
        await session.initialize()
        with agent_span("planner"):
            print(await run(session, lab.TRIP))
        with agent_span("planner"):
            print(await stream(lab.EVENING))
        with agent_span("planner"):
            print(await run(session, lab.SILENT))


asyncio.run(main())
provider.shutdown()
