"""What must be true of a turn that was read from a real agent's telemetry, against the server's own log."""

from typing import Any

from turntrace.core.model import Span, Turn
from turntrace.report.case import examine

__all__ = ["differences"]

MS = 1_000_000
GENERATION_SLACK_NS = 50 * MS
GENERATION_SHARE = 0.05
TOOL_EXCESS_NS = 300 * MS
LEAST_COVERAGE = 0.9
FIELDS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cached_input_tokens": "cached",
    "reasoning_tokens": "reasoning",
}


def differences(
    turns: list[Turn], truth: dict[str, Any], *, unsaid: frozenset[str] = frozenset()
) -> list[str]:
    """What differs, in words. ``unsaid``: kinds of tokens that the provider's API does not tell."""
    outer = [turn for turn in turns if turn.parent_run_id is None]
    if len(outer) != 1:
        return [f"{len(outer)} turns"]
    return [*_counts(outer[0], truth, unsaid), *_times(outer[0], truth)]


def _counts(turn: Turn, truth: dict[str, Any], unsaid: frozenset[str]) -> list[str]:
    wire = truth["wire"]
    expected = {"model_requests": len(wire), "tool_calls": 1}
    found = {name: turn.counters[name] for name in expected}
    wrong = [] if found == expected else [f"counted {found}, there were {expected}"]
    usage = examine(turn).usage
    for field, key in FIELDS.items():
        sent = None if field in unsaid else sum(one["tokens"][key] for one in wire)
        if getattr(usage, field) != sent:
            wrong.append(f"{field} {getattr(usage, field)}, sent {sent}")
    rounds = sum(one["what"] != "beside" for one in wire)
    if turn.rounds != rounds:
        wrong.append(f"{turn.rounds} rounds, there were {rounds}")
    return wrong


def _times(turn: Turn, truth: dict[str, Any]) -> list[str]:
    case = examine(turn)
    calls = [span for span in turn.spans if span.phase == "generation"]
    wrong = []
    for one in truth["wire"]:
        start, end = (truth["t0_unix_ns"] + round(one[key] * MS) for key in ("received_ms", "done_ms"))
        call = min(calls, key=lambda span: abs(span.start_ns - start), default=None)
        taken, real = (call.end_ns - call.start_ns if call else 0), end - start
        if abs(taken - real) > max(GENERATION_SLACK_NS, GENERATION_SHARE * real):
            wrong.append(f"a generation of {taken / MS:.0f} ms, the server had {real / MS:.0f}")
    tools = [span for span in turn.spans if span.phase == "tool_execution"]
    wrong += _tool(tools, calls, truth["tool"])
    coverage = case.attribution.coverage or 0.0
    return wrong if coverage >= LEAST_COVERAGE else [*wrong, f"coverage {coverage:.2f}"]


def _tool(tools: list[Span], calls: list[Span], truth: dict[str, Any]) -> list[str]:
    if len(tools) != 1 or "start_ns" not in truth:
        return [f"{len(tools)} spans of tools, the tool ran: {'start_ns' in truth}"]
    (tool,) = tools
    began, ended = truth["start_ns"], truth["end_ns"]
    wrong = [] if tool.tool == truth["name"] else [f"the tool is called {tool.tool}"]
    if not tool.start_ns <= began < ended <= tool.end_ns:
        wrong.append("the tool's span does not contain what it really did")
    excess = (tool.end_ns - tool.start_ns) - (ended - began)
    if excess > TOOL_EXCESS_NS:
        wrong.append(f"the tool's span exceeds it by {excess / MS:.0f} ms")
    within = sum(max(0, min(call.end_ns, ended) - max(call.start_ns, began)) for call in calls)
    if within:
        wrong.append(f"{within / MS:.0f} ms of the tool are in a generation")
    return wrong
