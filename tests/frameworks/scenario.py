"""The scenario that every framework plays, as far as it can: a trip with tools, a stream, a silent model.

The first turn asks for two tools, then for a third in which a sub-agent asks the model itself, then
answers. The second turn is streamed. In the third the provider says nothing of tokens. Other scenarios are
that of troubles, that of agents which run at the same time, each in a session of its own, and that of
embeddings, of which the turn itself asks for some and its tool for others.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from frameworks.model_server import Exchange, ModelServer
from frameworks.steps import Step, ToolCall
from frameworks.troubles import SESSIONS, TROUBLES

__all__ = ["expected", "scripts"]

WEATHER = ToolCall("weather", {"city": "Oslo"})
TIDES = ToolCall("tides", {"port": "Bergen"})
RESEARCHER = "ask_researcher"


def scripts(case: dict[str, Any]) -> dict[str, list[Step]]:
    """The model's answers by session."""
    if case.get("scenario") != "concurrent":
        return {"main": steps(case)}
    return {
        name: [
            _step(0.1 + 0.05 * number, tools=(WEATHER, TIDES), input_tokens=100 + number, output_tokens=10),
            _step(0.2 - 0.05 * number, text="Done.", input_tokens=200 + number, output_tokens=20 + number),
        ]
        for number, name in enumerate(SESSIONS)
    }


def steps(case: dict[str, Any]) -> list[Step]:
    """The model's answers; ``case`` says what the framework can do."""
    if case.get("scenario") == "troubles":
        return [step for trouble in TROUBLES[: case["turns"]] for step in trouble.steps]
    if case.get("scenario") == "embeddings":
        return [
            _step(0.1, input_tokens=8),
            _step(0.15, tools=(WEATHER,), input_tokens=150, output_tokens=40),
            _step(0.1, input_tokens=5, under=WEATHER.name),
            _step(0.15, text="Go at seven.", input_tokens=210, output_tokens=29),
        ]
    if case.get("scenario") == "structured":
        return _structured(case["fields"])
    found = []
    researcher = ToolCall(RESEARCHER, case.get("ask", {"question": "Which boat?"}))
    if case.get("retry", True):
        found.append(Step(status=429, retry_after_s=0.05, text="slow down"))
    asks = [(WEATHER, TIDES)] if case.get("parallel", True) else [(WEATHER,), (TIDES,)]
    for number, tools in enumerate(asks):
        found.append(_step(0.15, tools=tools, input_tokens=150 + 70 * number, output_tokens=40))
    if case.get("sub_agent", True):
        found.append(_step(0.12, tools=(researcher,), input_tokens=330, output_tokens=20, cached_tokens=128))
        found.append(_step(0.2, text="Take the ferry.", input_tokens=60, output_tokens=12, under=RESEARCHER))
    found.append(
        _step(
            0.15,
            text="Go at seven.",
            input_tokens=410,
            output_tokens=29,
            cached_tokens=256,
            cache_write_tokens=64 if case.get("cache_write") else 0,
            reasoning_tokens=4 if case.get("reasoning", True) else 0,
        )
    )
    if case.get("streamed", True):
        found.append(
            _step(
                0.2,
                text="A quiet evening by the sea.",
                chunks=5,
                gap_s=0.03,
                input_tokens=71,
                output_tokens=21,
                usage=case.get("stream_usage", "present"),
            )
        )
    if case.get("silent", True):
        found.append(_step(0.1, text="Fine.", usage="absent"))
    if "final_tool" in case:
        found = [_finally(step, case["final_tool"]) for step in found]
    return [_with_prefix(step, case.get("tool_prefix", "")) for step in found]


def _structured(fields: list[str]) -> list[Step]:
    """Answers of which one has not the form that was asked for; ``fields`` for a framework that reads text."""
    if not fields:
        asked = (ToolCall("Trip", {"hour": "late"}), ToolCall("Trip", {"hour": 7}))
        return [
            _step(0.15, tools=(tool,), input_tokens=120 + 60 * number, output_tokens=20)
            for number, tool in enumerate(asked)
        ]
    return [
        _step(0.15, text=text, input_tokens=200 + 50 * number, output_tokens=30 + number, reasoning_tokens=4)
        for number, text in enumerate(fields)
    ]


def _with_prefix(step: Step, prefix: str) -> Step:
    """A step for a framework that puts a prefix before the names of tools."""
    tools = tuple(replace(tool, name=prefix + tool.name) for tool in step.tools)
    return replace(step, tools=tools, under=step.under if step.under == "turn" else prefix + step.under)


def _finally(step: Step, tool: str) -> Step:
    """An answer in the way of a framework that wants it as the argument of a tool."""
    if step.tools or step.status != 200:
        return step
    return replace(step, text="ok", tools=(ToolCall(tool, {"answer": step.text}),))


def _step(seconds: float, **fields: Any) -> Step:
    """A step that takes as long to its first word, streamed or not: some frameworks stream everything."""
    return Step(latency_s=seconds, ttft_s=seconds, **fields)


def _above(exchange: Exchange) -> str:
    """What a call lies below."""
    return exchange.under if exchange.under == "turn" else f"tool:{exchange.under}"


def _answered(exchange: Exchange) -> bool:
    """Whether the client got anything of an answer."""
    return exchange.status == 200 and (exchange.finished or exchange.content_chunks > 0)


def expected(case: dict[str, Any], server: ModelServer, intervals: list[dict[str, Any]]) -> dict[str, Any]:
    """What a report of the trace must say, from the wire and from what the tools noted themselves."""
    calls = [one for one in server.settled() if not one.retried and not one.is_embedding]
    embeddings = sum(one.is_embedding for one in server.exchanges)
    tokens = server.truth()["usage_sent_total"]
    known = {key: tokens[key] for key in ("input", "output", "cached", "cache_write", "reasoning")}
    tools = [one["what"].removeprefix("tool:") for one in intervals if one["what"].startswith("tool:")]
    agents = [one["what"].removeprefix("agent:") for one in intervals if one["what"].startswith("agent:")]
    tree = Counter((f"tool:{tool}", "turn") for tool in tools)
    if "final_tool" in case:
        finals = [one for one in calls if one.tools == [case["final_tool"]]]
        tools += [case["final_tool"]] * len(finals)
        tree.update((f"tool:{case['final_tool']}", _above(one)) for one in finals)
    tree.update(("generation", _above(exchange)) for exchange in calls)
    return {
        "turns": case["turns"],
        "logical_generations": len(calls),
        "http_requests": len(server.exchanges),
        "failed_attempts": len(server.exchanges) - len(calls) - embeddings,
        "tools": len(tools),
        "tools_failed": sum(one["failed"] for one in intervals),
        "generations_failed": sum(one.status != 200 or one.dropped for one in calls),
        "generations_left": sum(one.client_gone for one in calls),
        "sub_agent_runs": len(agents),
        "sub_agents": agents,
        "tokens_known": {**known, "requests": tokens["requests_with_usage"]},
        "tokens_unknown_requests": sum(_answered(one) and one.tokens is None for one in calls),
        "tokens_partial": [one.input_sent for one in calls if one.tokens is None and one.input_sent],
        **({"embeddings": embeddings} if embeddings else {}),
        "tree": [[what, under, count] for (what, under), count in sorted(tree.items())],
    }
