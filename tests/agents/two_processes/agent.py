"""An agent whose one tool is that of an MCP server it starts; it knows nothing of turntrace."""

import asyncio
import json
import os
import sys
from pathlib import Path

import openai
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from opentelemetry import trace

client = openai.AsyncOpenAI()
attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "caller"}


async def answer(session: ClientSession, prompt: str) -> str:
    """Ask the model until it asks for no tool any more."""
    listed = (await session.list_tools()).tools
    tools = [
        {"type": "function", "function": {"name": one.name, "parameters": one.input_schema}} for one in listed
    ]
    messages = [{"role": "user", "content": prompt}]
    while True:
        said = await client.chat.completions.create(model="gpt-fake", messages=messages, tools=tools)
        message = said.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = await session.call_tool(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result.content[0].text})


async def main() -> None:
    """One turn, the server's start and end outside it."""
    script = Path(__file__).with_name(sys.argv[1])
    server = StdioServerParameters(command=sys.executable, args=[str(script)], env=dict(os.environ))
    async with stdio_client(server) as pipes, ClientSession(*pipes) as session:
        await session.initialize()
        with trace.get_tracer("app").start_as_current_span("invoke_agent caller", attributes=attributes):
            print(await answer(session, "Run tool.sh."))


asyncio.run(main())
