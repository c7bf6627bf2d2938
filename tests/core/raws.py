"""Raw spans for the tests of dialects and turns: short builders, and the traces under tests/data."""

import json
from pathlib import Path

from turntrace.core.model import RawSpan
from turntrace.files.foreign import read_json
from turntrace.files.raw_spans import RawSpans

TRACES = Path(__file__).parents[1] / "data" / "traces"
MS = 1_000_000


def raw(span_id, start_ms, end_ms, *, parent=None, name="work", trace_id="t1", **fields):
    """A span on a clock of milliseconds."""
    return RawSpan(
        span_id=span_id,
        trace_id=trace_id,
        parent_id=parent,
        name=name,
        start_ns=start_ms * MS,
        end_ns=end_ms * MS,
        **fields,
    )


def chat(span_id, start_ms, end_ms, *, tokens=(10, 2), scope="sdk", model="m", **fields):
    """A model call of OTel GenAI with (input, output) ``tokens``, None for a call without usage."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        **fields.pop("attributes", {}),
    }
    if tokens is not None:
        attributes |= {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]}
    return raw(
        span_id,
        start_ms,
        end_ms,
        name=f"chat {model}",
        scope=scope,
        attributes=attributes,
        kind="client",
        **fields,
    )


def tool(span_id, start_ms, end_ms, *, tool="bash", **fields):
    """A tool call of OTel GenAI."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    return raw(span_id, start_ms, end_ms, name=f"execute_tool {tool}", attributes=attributes, **fields)


def agent(span_id, start_ms, end_ms, *, agent="main", **fields):
    """An agent of OTel GenAI."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        **fields.pop("attributes", {}),
    }
    return raw(span_id, start_ms, end_ms, name=f"invoke_agent {agent}", attributes=attributes, **fields)


def own(span_id, start_ms, end_ms, phase, **fields):
    """A span that turntrace made."""
    attributes = {"turntrace.phase": phase, **fields.pop("attributes", {})}
    return raw(span_id, start_ms, end_ms, name=phase, scope="turntrace", attributes=attributes, **fields)


def trace(name):
    """The spans and issues of a recorded trace."""
    spans = RawSpans()
    with (TRACES / name).open("rb") as lines:
        read_json(lines, spans)
    return spans.spans, spans.issues


def truth(name):
    """What really happened in a recorded trace."""
    return json.loads((TRACES / f"{name}.truth.json").read_text())["facts"]
