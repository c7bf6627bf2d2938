"""Anthropic's SDK with the spans that it makes itself: its tool runner, one within another, and a stream."""

import anthropic
from anthropic import beta_tool

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()
client = anthropic.Anthropic()


@beta_tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


@beta_tool
def tides(port: str) -> str:
    """Tell the tides of a port."""
    with lab.tool("tides", 0.05, fails=True):
        return port


@beta_tool
def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    with lab.tool("ask_researcher"), lab.agent("researcher"):
        return run(question, [])


def run(prompt: str, tools: list) -> str:
    runner = client.beta.messages.tool_runner(
        model="claude-fake", max_tokens=200, tools=tools, messages=[{"role": "user", "content": prompt}]
    )
    return runner.until_done().content[0].text


print(run(lab.TRIP, [weather, tides, ask_researcher]))

with client.messages.stream(
    model="claude-fake", max_tokens=200, messages=[{"role": "user", "content": lab.EVENING}]
) as stream:
    print("".join(stream.text_stream))

answer = client.messages.create(
    model="claude-fake", max_tokens=200, messages=[{"role": "user", "content": lab.SILENT}]
)
print(answer.content[0].text)

provider.shutdown()
