"""Three agents of Pydantic AI at the same time."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from frameworks import lab, otlp_file
from frameworks.troubles import SESSIONS

provider = otlp_file.provider()
Agent.instrument_all()


async def weather(city: str) -> str:
    """Tell the weather of a city."""
    async with lab.atool("weather", 0.1):
        return f"Sun in {city}."


async def tides(port: str) -> str:
    """Tell the tides of a port."""
    async with lab.atool("tides", 0.15):
        return f"High at six in {port}."


async def run(session: str) -> None:
    there = OpenAIProvider(base_url=f"{lab.URL}/s/{session}/v1", api_key="fake")
    agent = Agent(OpenAIChatModel("gpt-fake", provider=there), name=session, tools=[weather, tides])
    print((await agent.run(lab.TRIP)).output)


async def main() -> None:
    await asyncio.gather(*(run(session) for session in SESSIONS))


asyncio.run(main())
provider.shutdown()
