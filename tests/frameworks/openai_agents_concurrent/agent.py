"""Three runs of OpenAI's Agents SDK at the same time."""

import asyncio

import openai

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_trace_processors
from frameworks import lab, otlp_file
from frameworks.troubles import SESSIONS

provider = otlp_file.provider()
set_trace_processors([])
otlp_file.instrument()


@function_tool
async def weather(city: str) -> str:
    """Tell the weather of a city."""
    async with lab.atool("weather", 0.1):
        return f"Sun in {city}."


@function_tool
async def tides(port: str) -> str:
    """Tell the tides of a port."""
    async with lab.atool("tides", 0.15):
        return f"High at six in {port}."


async def run(session: str) -> None:
    client = openai.AsyncOpenAI(base_url=f"{lab.URL}/s/{session}/v1")
    model = OpenAIChatCompletionsModel(model="gpt-fake", openai_client=client)
    agent = Agent(name=session, model=model, tools=[weather, tides])
    print((await Runner.run(agent, lab.TRIP)).final_output)


async def main() -> None:
    await asyncio.gather(*(run(session) for session in SESSIONS))


asyncio.run(main())
provider.shutdown()
