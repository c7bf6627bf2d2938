"""Traces that real frameworks made of one scenario, held against what really happened.

``make frameworks`` makes them anew. What a trace does not tell cannot be recovered: kinds of tokens and of
calls are in ``UNSAID``, then turntrace must say that it does not know, and ``told`` in a truth has the facts
that a trace tells otherwise.
"""

import json
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from turntrace.core.dialects import classify
from turntrace.core.usage import total
from turntrace.files.foreign import read_json
from turntrace.files.raw_spans import RawSpans
from turntrace.files.read import read_paths
from turntrace.report.case import examine

TRACES = Path(os.environ.get("FRAMEWORKS_TRACES") or Path(__file__).parent / "frameworks" / "traces")
NAMES = sorted(path.name.removesuffix(".truth.json") for path in TRACES.glob("*.truth.json"))
MS = 1_000_000
SLACK = 15 * MS
"""Two clocks, and a server that notices the end of a request after its client."""
MAIN = {"planner", "north", "east", "south"}
"""The agents of the turns themselves, which some frameworks show below a workflow."""
COUNTED = {"generation", "tool_execution"}
FIELDS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cached_input_tokens": "cached",
    "cache_write_tokens": "cache_write",
    "reasoning_tokens": "reasoning",
}

UNSAID: dict[str, set[str]] = {
    "agno": {"reasoning_tokens"},
    "dspy": {"input_tokens", "output_tokens", "reasoning_tokens"},
    "google_genai_afc": {"sub_agent_calls"},
    "haystack": {"tool_failures", "cached_input_tokens", "reasoning_tokens", "tools", "sub_agents"},
    "langgraph": {"sub_agents", "tool_failures"},
    "langgraph_double": {"sub_agents", "tool_failures"},
    "langgraph_genai": {"tool_failures"},
    "langgraph_traceloop": {"reasoning_tokens", "sub_agent_calls", "tool_failures"},
    "llama_index": {"sub_agents", "streams"},
    "langsmith": {"sub_agents"},
    "openai": {"cached_input_tokens", "reasoning_tokens"},
    "openai_traceloop_troubles": {"broken_streams"},
    "openai_v2_troubles": {"cached_input_tokens"},
    "semantic_kernel": {"cached_input_tokens", "reasoning_tokens"},
    "smolagents": {"cached_input_tokens", "reasoning_tokens"},
    "strands": {"reasoning_tokens"},
    "vercel_ai": {"reasoning_tokens"},
    "vercel_ai_legacy": {"cached_input_tokens", "reasoning_tokens"},
}
"""By framework what its trace does not tell.

A kind of token, its ``tools``, which of them failed, which streams broke or when ``streams`` ended, its
``sub_agents`` or what these called.
"""

each = pytest.mark.parametrize("name", NAMES)


@cache
def truth(name):
    """What really happened."""
    return json.loads((TRACES / f"{name}.truth.json").read_text())


@cache
def facts_of(name):
    """What really happened, as far as the trace tells it."""
    return truth(name)["facts"] | truth(name)["told"]


def calls_of(name):
    """The requests that asked a model for an answer; embeddings are another phase."""
    return [one for one in truth(name)["wire"] if one["api"] != "openai.embeddings"]


@cache
def turns(name):
    """All turns of a trace."""
    return read_paths([str(TRACES / f"{name}.json")]).turns


def outer(name):
    """The turns that lie in no other."""
    return [turn for turn in turns(name) if turn.parent_run_id is None]


def nested(name):
    """The turns of sub-agents."""
    return [turn for turn in turns(name) if turn.parent_run_id is not None and turn.agent not in MAIN]


def totals(name):
    """The tokens of all turns together."""
    usage = [usage for turn in outer(name) for usage in turn.usage]
    return total(usage, sum(turn.counters["model_requests"] for turn in outer(name)))


def unsaid(name):
    """What the trace does not tell."""
    return UNSAID.get(name, set())


def test_the_traces_are_there():
    """Every framework that can be run has a trace, and every trace its truth."""
    runnable = {path.parent.name for path in TRACES.parent.glob("*/case.toml")}
    traces = {path.stem for path in TRACES.glob("*.json")} - {f"{name}.truth" for name in NAMES}
    assert runnable == set(NAMES) == traces
    assert set(UNSAID) <= set(NAMES)


@each
def test_calls_are_counted_once(name):
    """Turns, model requests, tool calls and sub-agents are as many as there were."""
    facts = facts_of(name)
    assert len(outer(name)) == facts["turns"]
    assert sum(turn.counters["model_requests"] for turn in outer(name)) == facts["logical_generations"]
    tools = 0 if "tools" in unsaid(name) else facts["tools"]
    assert sum(turn.counters["tool_calls"] for turn in outer(name)) == tools
    agents = 0 if "sub_agents" in unsaid(name) else facts["sub_agent_runs"]
    assert len(nested(name)) == agents


@each
def test_a_sub_agent_has_its_own_calls(name):
    """The turn of the sub-agent holds the one request that it made, and its tokens."""
    made = [one["tokens"] for one in truth(name)["wire"] if one["under"] != "turn"]
    for turn in nested(name):
        found = examine(turn)
        if "sub_agent_calls" in unsaid(name):
            assert turn.counters["model_requests"] == 0
        else:
            assert turn.counters["model_requests"] == len(made) == 1
            assert (found.usage.input_tokens, found.usage.output_tokens) == (
                made[0]["input"],
                made[0]["output"],
            )


@each
def test_what_failed_is_an_error(name):
    """Tools that raised and calls that were refused or broke, and nothing else."""
    facts = facts_of(name)
    spans = [span for turn in outer(name) for span in turn.spans if span.outcome == "error"]
    tools = {(span.tool, span.round) for span in spans if span.phase == "tool_execution"}
    assert len(tools) == (0 if "tool_failures" in unsaid(name) else facts["tools_failed"])
    calls = sum(span.phase == "generation" for span in spans)
    expected = facts["generations_failed"]
    if "broken_streams" in unsaid(name):
        expected -= sum(one["dropped"] and not one["retried"] for one in truth(name)["wire"])
    assert expected <= calls <= expected + facts["generations_left"]


@each
@pytest.mark.parametrize("field", FIELDS)
def test_tokens_are_those_that_were_sent(name, field):
    """Known tokens equal the usage on the wire, or are unknown where the trace does not tell them."""
    sent = facts_of(name)["tokens_known"][FIELDS[field]]
    found = totals(name).known[field]
    partial = facts_of(name)["tokens_partial"] if field == "input_tokens" else []
    if field in unsaid(name):
        assert not found
    elif partial:  # what a stream told at its start may be known or not, its output is not
        assert sent <= found <= sent + sum(partial)
    else:
        assert found in ({sent} if sent else {0, None})


@each
def test_calls_without_usage_are_missing(name):
    """What a provider did not say is missing, not 0."""
    facts, found = facts_of(name), totals(name)
    reports, missing = facts["tokens_known"]["requests"], facts["tokens_unknown_requests"]
    if "input_tokens" in unsaid(name):
        reports, missing = 0, reports + missing
    partial = len(facts["tokens_partial"])
    assert found.reports + found.missing == reports + missing
    assert reports <= found.reports <= reports + partial


@each
def test_no_total_is_a_partial_sum(name):
    """A turn's total is what all its calls were told that they cost, and null where one was not told."""
    for number, turn in enumerate(outer(name), 1):
        found = examine(turn).usage
        window = turn.started_ns, turn.completed_ns
        made = [one for one in calls_of(name) if not one["retried"] and within(name, one, *window)]
        if any(one["session"] != "main" for one in made):
            return  # the next test
        known = bool(made) and all(one["tokens"] for one in made)
        known = known and number not in truth(name)["told"].get("turns_without_total", ())
        tokens_in, tokens_out = (
            sum(one["tokens"][key] for one in made) if known else None for key in ("input", "output")
        )
        assert found.output_tokens == tokens_out
        assert found.input_tokens in {tokens_in, *(one["input_sent"] for one in made if not known)}


@each
def test_turns_at_the_same_time_keep_their_tokens(name):
    """Of agents that run at once each has its own calls and no other's."""
    wire = truth(name)["wire"]
    by_session = {one["session"]: Counter() for one in wire if one["session"] != "main"}
    for one in wire:
        by_session.get(one["session"], Counter()).update(one["tokens"])
    expected = [(count["input"], count["output"]) for count in by_session.values()]
    found = [examine(turn).usage for turn in outer(name)]
    assert not expected or sorted(expected) == sorted((one.input_tokens, one.output_tokens) for one in found)


def within(name, exchange, started_ns, ended_ns):
    """Whether a request reached the server between two times."""
    return started_ns <= truth(name)["t0_unix_ns"] + exchange["received_ms"] * MS < ended_ns


@each
def test_parents_are_those_of_the_truth(name):
    """Each call lies below the tool that made it, the others below their turn."""
    found = Counter()
    for turn in outer(name):
        spans = {span.span_id: span for span in turn.spans}
        for span in turn.spans:
            if span.phase not in COUNTED:
                continue
            above = spans.get(span.parent_id)
            while above is not None and above.phase != "tool_execution":
                above = spans.get(above.parent_id)
            if above is not None and above.tool == span.tool:
                continue  # one call that its caller and its server both show
            what = "generation" if span.phase == "generation" else f"tool:{span.tool}"
            found[what, f"tool:{above.tool}" if above else "turn"] += 1
    expected = {(what, under): count for what, under, count in facts_of(name)["tree"]}
    if "tools" in unsaid(name):
        expected = {("generation", "turn"): facts_of(name)["logical_generations"]}
    assert found == expected


@each
def test_every_request_lies_in_a_model_call(name):
    """What went over the wire happened while a span says that a model was called or, if refused, tried."""
    spans = [span for turn in outer(name) for span in turn.spans]
    calls = [span for span in spans if span.phase == "generation"]
    tries = [span for span in spans if span.phase == "provider_connect" and span.outcome == "error"]
    zero = truth(name)["t0_unix_ns"]
    for exchange in calls_of(name):
        if exchange["stream"] and "streams" in unsaid(name):
            continue
        around = [call for call in calls if within(name, exchange, call.start_ns, call.end_ns)]
        if exchange["retried"] and not around:
            around = [one for one in tries if within(name, exchange, one.start_ns, one.end_ns)]
        assert len(around) == 1 or exchange["session"] != "main", exchange
        ended = zero if exchange["client_gone"] else zero + exchange["done_ms"] * MS
        assert any(ended <= call.end_ns + SLACK for call in around), exchange


@each
def test_without_model_and_tool_spans_nothing_is_covered(name, tmp_path):
    """Wrappers alone explain nothing: with what they wrap deleted from the file, coverage is at most 0.05."""
    spans = RawSpans()
    with (TRACES / f"{name}.json").open("rb") as lines:
        read_json(lines, spans)
    gone = {
        one.span_id
        for one in spans.spans
        if classify(one.scope, one.name, one.kind, one.attributes).phase in COUNTED | {"embedding"}
    }
    for _ in spans.spans:
        gone |= {one.span_id for one in spans.spans if one.parent_id in gone}
    lines = [line for line in (TRACES / f"{name}.json").read_text().splitlines() if not _ids(line) & gone]
    assert gone
    (tmp_path / "left.json").write_text("\n".join(lines) + "\n")
    left = read_paths([str(tmp_path / "left.json")]).turns if lines else []
    assert all((examine(turn).attribution.coverage or 0) <= 0.05 for turn in left)


def _ids(line):
    """The ids of the spans in a line."""
    return {
        span["spanId"]
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    }


@each
def test_a_trace_is_small_and_tells_nothing_of_the_machine(name):
    """Fixtures stay readable and can be made by anybody."""
    text = (TRACES / f"{name}.json").read_text()
    assert len(text) < 300_000
    assert not re.search(r"site-packages|/(root|home|Users)/", text)
