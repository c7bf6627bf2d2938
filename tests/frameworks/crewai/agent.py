"""CrewAI, traced by OpenInference together with the client that it calls."""

import os

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from openinference.instrumentation.crewai import CrewAIInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor

from frameworks import lab, otlp_file

provider = otlp_file.provider()
CrewAIInstrumentor().instrument()
OpenAIInstrumentor().instrument()
llm = LLM(model="openai/gpt-4o", base_url=f"{lab.URL}/v1", api_key="fake")


@tool("weather")
def weather(city: str) -> str:
    """Tell the weather of a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


@tool("tides")
def tides(port: str) -> str:
    """Tell the tides of a port."""
    with lab.tool("tides", 0.05):
        return f"High at six in {port}."


@tool("ask_researcher")
def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    with lab.tool("ask_researcher"), lab.agent("researcher"):
        return crew("researcher", question, [])


def crew(role: str, prompt: str, tools: list) -> str:
    member = Agent(role=role, goal="Help.", backstory="Long at sea.", llm=llm, tools=tools)
    task = Task(description=prompt, expected_output="A sentence.", agent=member)
    return Crew(agents=[member], tasks=[task]).kickoff().raw


print(crew("planner", lab.TRIP, [weather, tides, ask_researcher]))

provider.shutdown()
