"""DSPy's ReAct: a loop of thoughts and tools, then an answer drawn from them."""

import dspy

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()


def weather(city: str) -> str:
    """The weather in a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


dspy.configure(lm=dspy.LM("openai/gpt-fake", api_base=f"{lab.URL}/v1", api_key="fake", cache=False))
planner = dspy.ReAct("question -> answer", tools=[weather])
print(planner(question=lab.TRIP).answer)

provider.shutdown()
