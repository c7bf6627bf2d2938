"""OpenAI's Agents SDK on the Responses API, traced by the two official instrumentations."""

import asyncio

from agents import Agent, Runner, function_tool, set_trace_processors
from frameworks import lab, otlp_file

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
    async with lab.atool("tides", 0.05, fails=True):
        return port


researcher = Agent(name="researcher", model="gpt-fake")


@function_tool
async def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    async with lab.atool("ask_researcher"):
        with lab.agent("researcher"):
            return (await Runner.run(researcher, question)).final_output


planner = Agent(name="planner", model="gpt-fake", tools=[weather, tides, ask_researcher])


async def main() -> None:
    print((await Runner.run(planner, lab.TRIP)).final_output)
    streamed = Runner.run_streamed(planner, lab.EVENING)
    async for _ in streamed.stream_events():
        pass
    print(streamed.final_output)
    print((await Runner.run(planner, lab.SILENT)).final_output)


asyncio.run(main())
provider.shutdown()
