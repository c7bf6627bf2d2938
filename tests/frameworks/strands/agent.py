"""Strands Agents with the spans that it makes itself."""

from strands import Agent, tool
from strands.models.openai import OpenAIModel

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()


def model() -> OpenAIModel:
    return OpenAIModel(client_args={"api_key": "fake", "base_url": f"{lab.URL}/v1"}, model_id="gpt-fake")


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
        return str(Agent(name="researcher", model=model(), callback_handler=None)(question))


for prompt in lab.PROMPTS:
    planner = Agent(
        name="planner", model=model(), tools=[weather, tides, ask_researcher], callback_handler=None
    )
    print(planner(prompt))

provider.shutdown()
