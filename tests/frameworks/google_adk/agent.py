"""Google's Agent Development Kit with the spans that it makes itself."""

import asyncio
import time

from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.tools import AgentTool
from google.genai import types

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()
retry = types.HttpRetryOptions(attempts=3, initial_delay=0.05, max_delay=0.1)
model = Gemini(model="gemini-fake", base_url=lab.URL, retry_options=retry)
began = []


def weather(city: str) -> str:
    """Tell the weather of a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


def tides(port: str) -> dict:
    """Tell the tides of a port."""
    try:
        with lab.tool("tides", 0.05, fails=True):
            return {"result": port}
    except lab.ToolBrokeError as error:
        return {"error": str(error)}


def begin(callback_context):
    began.append(time.time_ns())


def end(callback_context):
    start = began.pop()
    lab.note("agent:ask_researcher", start)
    lab.note("tool:ask_researcher", start)


researcher = Agent(
    name="ask_researcher",
    description="Knows boats.",
    model=model,
    before_agent_callback=begin,
    after_agent_callback=end,
)
planner = Agent(name="planner", model=model, tools=[weather, tides, AgentTool(agent=researcher)])


async def ask(prompt: str, mode: StreamingMode = StreamingMode.NONE) -> None:
    runner = InMemoryRunner(agent=planner, app_name="trips")
    session = await runner.session_service.create_session(app_name="trips", user_id="user")
    message = types.UserContent(prompt)
    async for event in runner.run_async(
        user_id="user",
        session_id=session.id,
        new_message=message,
        run_config=RunConfig(streaming_mode=mode),
    ):
        if event.is_final_response() and event.content:
            print(event.content.parts[0].text)


async def main() -> None:
    await ask(lab.TRIP)
    await ask(lab.EVENING, StreamingMode.SSE)
    await ask(lab.SILENT)


asyncio.run(main())
provider.shutdown()
