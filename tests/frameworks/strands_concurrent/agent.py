"""Three agents of Strands at the same time, in threads."""

from concurrent.futures import ThreadPoolExecutor

from strands import Agent, tool
from strands.models.openai import OpenAIModel

from frameworks import lab, otlp_file
from frameworks.troubles import SESSIONS

provider = otlp_file.provider()


@tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


@tool
def tides(port: str) -> str:
    """Tell the tides of a port."""
    with lab.tool("tides", 0.15):
        return f"High at six in {port}."


def run(session: str) -> None:
    there = {"api_key": "fake", "base_url": f"{lab.URL}/s/{session}/v1"}
    model = OpenAIModel(client_args=there, model_id="gpt-fake")
    print(Agent(name=session, model=model, tools=[weather, tides], callback_handler=None)(lab.TRIP))


with ThreadPoolExecutor() as pool:
    list(pool.map(run, SESSIONS))
provider.shutdown()
