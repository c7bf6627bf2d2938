"""Three tool runners of Anthropic's SDK at the same time, in threads."""

from concurrent.futures import ThreadPoolExecutor

import anthropic
from anthropic import beta_tool

from frameworks import lab, otlp_file
from frameworks.troubles import SESSIONS

provider = otlp_file.provider()


@beta_tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


@beta_tool
def tides(port: str) -> str:
    """Tell the tides of a port."""
    with lab.tool("tides", 0.15):
        return f"High at six in {port}."


def run(session: str) -> None:
    client = anthropic.Anthropic(base_url=f"{lab.URL}/s/{session}")
    messages = [{"role": "user", "content": lab.TRIP}]
    tools = [weather, tides]
    runner = client.beta.messages.tool_runner(
        model="claude-fake", max_tokens=200, tools=tools, messages=messages
    )
    print(runner.until_done().content[0].text)


with ThreadPoolExecutor() as pool:
    list(pool.map(run, SESSIONS))
provider.shutdown()
