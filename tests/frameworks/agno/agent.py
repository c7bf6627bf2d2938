"""Agno, traced by OpenInference."""

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from openinference.instrumentation.agno import AgnoInstrumentor

from frameworks import lab, otlp_file

provider = otlp_file.provider()
AgnoInstrumentor().instrument()


def model() -> OpenAIChat:
    return OpenAIChat(id="gpt-fake", base_url=f"{lab.URL}/v1", api_key="fake")


def weather(city: str) -> str:
    """Tell the weather of a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


def tides(port: str) -> str:
    """Tell the tides of a port."""
    with lab.tool("tides", 0.05, fails=True):
        return port


def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    with lab.tool("ask_researcher"), lab.agent("researcher"):
        return Agent(name="researcher", model=model(), telemetry=False).run(question).content


def planner() -> Agent:
    return Agent(name="planner", model=model(), tools=[weather, tides, ask_researcher], telemetry=False)


print(planner().run(lab.TRIP).content)
for event in planner().run(lab.EVENING, stream=True):
    print(event.content or "", end="")
print(planner().run(lab.SILENT).content)

provider.shutdown()
