"""LangChain's agent, a LangGraph, traced by OpenInference."""

from langchain.agents import create_agent
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()
model = ChatOpenAI(model="gpt-fake", base_url=f"{lab.URL}/v1", api_key="fake", stream_usage=True)
researcher = create_agent(model, name="researcher")


@tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


@tool
def tides(port: str) -> str:
    """Tell the tides of a port."""
    try:
        with lab.tool("tides", 0.05, fails=True):
            return port
    except lab.ToolBrokeError as error:
        raise ToolException(str(error)) from error


@tool
def ask_researcher(question: str) -> str:
    """Ask somebody who knows."""
    with lab.tool("ask_researcher"), lab.agent("researcher"):
        return answer(researcher.invoke(prompt(question)))


def prompt(text: str) -> dict:
    return {"messages": [{"role": "user", "content": text}]}


def answer(state: dict) -> str:
    return state["messages"][-1].content


tides.handle_tool_error = True
planner = create_agent(model, [weather, tides, ask_researcher], name="planner")

print(answer(planner.invoke(prompt(lab.TRIP))))
for chunk, _ in planner.stream(prompt(lab.EVENING), stream_mode="messages"):
    print(chunk.content, end="")
print(answer(planner.invoke(prompt(lab.SILENT))))

provider.shutdown()
