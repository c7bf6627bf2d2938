"""Microsoft's Agent Framework with the spans that it makes itself."""

import asyncio

from agent_framework import Agent, tool
from agent_framework.observability import enable_instrumentation
from agent_framework.openai import OpenAIChatCompletionClient

from frameworks import lab, otlp_file

provider = otlp_file.provider()
enable_instrumentation()


def client() -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(model="gpt-fake", base_url=f"{lab.URL}/v1", api_key="fake")


@tool(approval_mode="never_require")
async def weather(city: str) -> str:
    """Tell the weather of a city."""
    async with lab.atool("weather", 0.1):
        return f"Sun in {city}."


@tool(approval_mode="never_require")
async def tides(port: str) -> str:
    """Tell the tides of a port."""
    async with lab.atool("tides", 0.05, fails=True):
        return port


@tool(approval_mode="never_require")
async def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    async with lab.atool("ask_researcher"):
        with lab.agent("researcher"):
            return (await Agent(client(), name="researcher").run(question)).text


planner = Agent(client(), name="planner", tools=[weather, tides, ask_researcher])


async def main() -> None:
    print((await planner.run(lab.TRIP)).text)
    async for update in planner.run(lab.EVENING, stream=True):
        print(update.text, end="")
    print((await planner.run(lab.SILENT)).text)


asyncio.run(main())
provider.shutdown()
