"""Pydantic AI with the spans that it makes itself."""

import asyncio

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()
Agent.instrument_all()
model = OpenAIChatModel("gpt-fake", provider=OpenAIProvider(base_url=f"{lab.URL}/v1", api_key="fake"))
planner = Agent(model, name="planner")
researcher = Agent(model, name="researcher")


@planner.tool_plain
async def weather(city: str) -> str:
    """Tell the weather of a city."""
    async with lab.atool("weather", 0.1):
        return f"Sun in {city}."


@planner.tool_plain
async def tides(port: str) -> str:
    """Tell the tides of a port."""
    try:
        async with lab.atool("tides", 0.05, fails=True):
            return port
    except lab.ToolBrokeError as error:
        raise ModelRetry(str(error)) from error


@planner.tool_plain
async def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    async with lab.atool("ask_researcher"):
        with lab.agent("researcher"):
            return (await researcher.run(question)).output


async def main() -> None:
    print((await planner.run(lab.TRIP)).output)
    async with planner.run_stream(lab.EVENING) as result:
        print("".join([text async for text in result.stream_text(delta=True)]))
    print((await planner.run(lab.SILENT)).output)


asyncio.run(main())
provider.shutdown()
