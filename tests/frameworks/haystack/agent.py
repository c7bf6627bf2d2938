"""Haystack's agent, traced by OpenInference."""

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()


def generator(**options) -> OpenAIChatGenerator:
    return OpenAIChatGenerator(
        model="gpt-fake", api_base_url=f"{lab.URL}/v1", api_key=Secret.from_token("fake"), **options
    )


@tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


@tool
def tides(port: str) -> str:
    """Tell the tides of a port."""
    with lab.tool("tides", 0.05, fails=True):
        return port


@tool
def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    with lab.tool("ask_researcher"), lab.agent("researcher"):
        return ask(Agent(chat_generator=generator(), tools=[]), question)


def ask(agent: Agent, prompt: str, **options) -> str:
    return agent.run(messages=[ChatMessage.from_user(prompt)], **options)["messages"][-1].text


planner = Agent(chat_generator=generator(), tools=[weather, tides, ask_researcher])
print(ask(planner, lab.TRIP))
print(ask(planner, lab.EVENING, streaming_callback=lambda chunk: None))
print(ask(planner, lab.SILENT))

provider.shutdown()
