"""Hugging Face's smolagents, traced by OpenInference."""

from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from smolagents import OpenAIModel, ToolCallingAgent, tool

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()
SmolagentsInstrumentor().instrument()
model = OpenAIModel("gpt-fake", api_base=f"{lab.URL}/v1", api_key="fake")
researcher = ToolCallingAgent([], model, name="researcher", description="Knows boats.", verbosity_level=0)


@tool
def weather(city: str) -> str:
    """Tell the weather of a city.

    Args:
        city: Which city.
    """
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


@tool
def tides(port: str) -> str:
    """Tell the tides of a port.

    Args:
        port: Which port.
    """
    with lab.tool("tides", 0.05):
        return f"High at six in {port}."


@tool
def ask_researcher(question: str) -> str:
    """Ask somebody who knows.

    Args:
        question: What to ask.
    """
    with lab.tool("ask_researcher"), lab.agent("researcher"):
        return researcher.run(question)


tools = [weather, tides, ask_researcher]
planner = ToolCallingAgent(tools, model, name="planner", description="Plans.", verbosity_level=0)
print(planner.run(lab.TRIP))
streaming = ToolCallingAgent(tools, model, name="planner", stream_outputs=True, verbosity_level=0)
for _ in streaming.run(lab.EVENING, stream=True):
    pass

provider.shutdown()
