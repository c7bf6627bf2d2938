"""LlamaIndex's function agent, traced by OpenInference."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()


def model() -> OpenAILike:
    return OpenAILike(
        model="gpt-fake",
        api_base=f"{lab.URL}/v1",
        api_key="fake",
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=3,
    )


async def weather(city: str) -> str:
    """Tell the weather of a city."""
    async with lab.atool("weather", 0.1):
        return f"Sun in {city}."


async def tides(port: str) -> str:
    """Tell the tides of a port."""
    async with lab.atool("tides", 0.05, fails=True):
        return port


async def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    async with lab.atool("ask_researcher"):
        with lab.agent("researcher"):
            return str(await agent("researcher", []).run(question))


def agent(name: str, tools: list, *, streams: bool = False) -> FunctionAgent:
    return FunctionAgent(name=name, description=name, tools=tools, llm=model(), streaming=streams)


async def main() -> None:
    tools = [weather, tides, ask_researcher]
    print(await agent("planner", tools).run(lab.TRIP))
    print(await agent("planner", tools, streams=True).run(lab.EVENING))
    print(await agent("planner", tools).run(lab.SILENT))


asyncio.run(main())
provider.shutdown()
