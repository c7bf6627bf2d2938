"""Microsoft's Semantic Kernel with the spans that it makes itself."""

import asyncio

from openai import AsyncOpenAI
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function

from frameworks import lab, otlp_file

provider = otlp_file.provider()


def service() -> OpenAIChatCompletion:
    client = AsyncOpenAI(base_url=f"{lab.URL}/v1", api_key="fake")
    return OpenAIChatCompletion(ai_model_id="gpt-fake", async_client=client)


class Trip:
    @kernel_function(description="Tell the weather of a city.")
    async def weather(self, city: str) -> str:
        async with lab.atool("trip-weather", 0.1):
            return f"Sun in {city}."

    @kernel_function(description="Tell the tides of a port.")
    async def tides(self, port: str) -> str:
        async with lab.atool("trip-tides", 0.05, fails=True):
            return port

    @kernel_function(description="Ask somebody who knows.")
    async def ask_researcher(self, question: str) -> str:
        async with lab.atool("trip-ask_researcher"):
            with lab.agent("researcher"):
                researcher = ChatCompletionAgent(service=service(), name="researcher")
                return str(await researcher.get_response(messages=question))


def planner() -> ChatCompletionAgent:
    kernel = Kernel()
    kernel.add_plugin(Trip(), plugin_name="trip")
    return ChatCompletionAgent(service=service(), kernel=kernel, name="planner")


async def main() -> None:
    print(await planner().get_response(messages=lab.TRIP))
    async for part in planner().invoke_stream(messages=lab.EVENING):
        print(part, end="")
    print(await planner().get_response(messages=lab.SILENT))


asyncio.run(main())
provider.shutdown()
