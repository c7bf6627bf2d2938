"""AutoGen's agent chat with the spans that it makes itself, and those of the client below it."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelFamily
from autogen_ext.models.openai import OpenAIChatCompletionClient
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

from frameworks import lab, otlp_file

provider = otlp_file.provider()
OpenAIInstrumentor().instrument()


def client() -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(
        model="gpt-fake",
        base_url=f"{lab.URL}/v1",
        api_key="fake",
        include_usage_in_stream_chunk=True,
        model_info={
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "family": ModelFamily.UNKNOWN,
            "structured_output": False,
        },
    )


async def weather(city: str) -> str:
    """Tell the weather of a city."""
    async with lab.atool("weather", 0.1):
        return f"Sun in {city}."


async def tides(port: str) -> str:
    """Tell the tides of a port."""
    async with lab.atool("tides", 0.05, fails=True):
        return port


async def ask_researcher(task: str) -> str:
    """Ask somebody who knows."""
    async with lab.atool("ask_researcher"):
        with lab.agent("researcher"):
            researcher = AssistantAgent("researcher", client())
            return (await researcher.run(task=task)).messages[-1].content


def planner(*, streams: bool = False) -> AssistantAgent:
    return AssistantAgent(
        "planner",
        client(),
        tools=[weather, tides, ask_researcher],
        max_tool_iterations=5,
        model_client_stream=streams,
    )


async def main() -> None:
    print((await planner().run(task=lab.TRIP)).messages[-1].content)
    async for _ in planner(streams=True).run_stream(task=lab.EVENING):
        pass
    print((await planner().run(task=lab.SILENT)).messages[-1].content)


asyncio.run(main())
provider.shutdown()
