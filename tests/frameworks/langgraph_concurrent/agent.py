"""Three agents of LangGraph at the same time, in threads."""

from concurrent.futures import ThreadPoolExecutor

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from frameworks import lab, otlp_file
from frameworks.troubles import SESSIONS

provider = otlp_file.provider()
otlp_file.instrument()


def weather(city: str) -> str:
    """Tell the weather of a city."""
    with lab.tool("weather", 0.1):
        return f"Sun in {city}."


def tides(port: str) -> str:
    """Tell the tides of a port."""
    with lab.tool("tides", 0.15):
        return f"High at six in {port}."


def run(session: str) -> None:
    model = ChatOpenAI(model="gpt-fake", base_url=f"{lab.URL}/s/{session}/v1", api_key="fake")
    agent = create_agent(model, [weather, tides], name=session)
    state = agent.invoke({"messages": [{"role": "user", "content": lab.TRIP}]})
    print(state["messages"][-1].content)


with ThreadPoolExecutor() as pool:
    list(pool.map(run, SESSIONS))
provider.shutdown()
