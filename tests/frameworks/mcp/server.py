"""The tools, behind MCP in a process of their own."""

import openai
from mcp.server.mcpserver import MCPServer
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

from frameworks import lab, otlp_file

provider = otlp_file.provider(service="tools")
OpenAIInstrumentor().instrument()
server = MCPServer("tools")
client = openai.AsyncOpenAI()


@server.tool()
async def weather(city: str) -> str:
    """Tell the weather of a city."""
    async with lab.atool("weather", 0.1):
        return f"Sun in {city}."


@server.tool()
async def tides(port: str) -> str:
    """Tell the tides of a port."""
    async with lab.atool("tides", 0.05, fails=True):
        return port


@server.tool()
async def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    async with lab.atool("ask_researcher"):
        messages = [{"role": "user", "content": question}]
        answer = await client.chat.completions.create(model="gpt-fake", messages=messages)
        return answer.choices[0].message.content


server.run()
provider.shutdown()
