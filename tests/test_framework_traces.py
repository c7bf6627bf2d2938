"""Traces that real frameworks made of one scenario, held against what really happened.

``make frameworks`` makes them anew. A fact that a trace does not tell is in ``UNSAID``: then turntrace must
say that it does not know. ``WRONG`` are the places where turntrace is known to differ from the truth.
"""

import json
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

TRACES = Path(__file__).parent / "frameworks" / "traces"
NAMES = sorted(path.name.removesuffix(".truth.json") for path in TRACES.glob("*.truth.json"))
MS = 1_000_000
COUNTED = {"generation", "tool_execution"}

UNSAID: dict[str, set[str]] = {
    "openai": {"cached_input_tokens", "reasoning_tokens"},
}
"""By framework what its trace does not tell: a kind of token, ``tools``, ``sub_agents``."""

WRONG: dict[tuple[str, str], str] = {}
"""By framework and check what turntrace gets wrong."""


def each(check):
    """The frameworks as parameters of a check."""
    marks = {
        name: [pytest.mark.xfail(strict=True, reason=WRONG[name, check])] if (name, check) in WRONG else []
        for name in NAMES
    }
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks[name]) for name in NAMES])


@cache
def truth(name):
    """What really happened."""
    return json.loads((TRACES / f"{name}.truth.json").read_text())


@cache
def turns(name):
    """All turns of a trace."""
    return read_paths([str(TRACES / f"{name}.json")]).turns


def outer(name):
    """The turns that lie in no other."""
    return [turn for turn in turns(name) if turn.parent_run_id is None]


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
    assert {name for name, _ in WRONG} | set(UNSAID) <= set(NAMES)


@each("calls")
def test_calls_are_counted_once(name):
    """Turns, model requests, tool calls and sub-agents are as many as there were."""
    facts = truth(name)["facts"]
    assert len(outer(name)) == facts["turns"]
    assert sum(turn.counters["model_requests"] for turn in outer(name)) == facts["logical_generations"]
    tools = 0 if "tools" in unsaid(name) else facts["tools"]
    assert sum(turn.counters["tool_calls"] for turn in outer(name)) == tools
    agents = 0 if "sub_agents" in unsaid(name) else facts["sub_agent_runs"]
    assert len(turns(name)) - len(outer(name)) == agents


@each("tokens")
def test_tokens_are_those_that_were_sent(name):
    """Known tokens equal the usage on the wire; calls without usage are missing, not 0."""
    facts, found = truth(name)["facts"], totals(name)
    sent = facts["tokens_known"]
    expected = {
        "input_tokens": sent["input"],
        "output_tokens": sent["output"],
        "cached_input_tokens": sent["cached"],
        "cache_write_tokens": sent["cache_write"],
        "reasoning_tokens": sent["reasoning"],
    }
    for field, count in expected.items():
        if field in unsaid(name):
            assert found.known[field] is None, field
        else:
            assert found.known[field] in ({count} if count else {0, None}), field
    assert (found.reports, found.missing) == (sent["requests"], facts["tokens_unknown_requests"])


@each("totals")
def test_no_total_is_a_partial_sum(name):
    """Where a call said nothing the total is null; a turn whose calls all said something has one."""
    facts = truth(name)["facts"]
    assert (totals(name).total_tokens is None) == bool(facts["tokens_unknown_requests"])
    for turn in turns(name):
        found = examine(turn).usage
        missing = turn.counters["model_requests"] - found.reports
        assert (found.input_tokens is None) == bool(missing)
        assert {found.input_tokens, found.known["input_tokens"]} == {found.known["input_tokens"]} or missing


@each("tree")
def test_parents_are_those_of_the_truth(name):
    """Each call lies below the tool that made it, the others below their turn."""
    found = Counter()
    for turn in outer(name):
        spans = {span.span_id: span for span in turn.spans}
        for span in turn.spans:
            if span.phase not in COUNTED:
                continue
            above = spans.get(span.parent_id)
            while above is not None and (above.phase != "tool_execution" or above.tool == span.tool):
                above = spans.get(above.parent_id)
            what = "generation" if span.phase == "generation" else f"tool:{span.tool}"
            found[what, f"tool:{above.tool}" if above else "turn"] += 1
    expected = {(what, under): count for what, under, count in truth(name)["facts"]["tree"]}
    if "tools" in unsaid(name):
        expected = {("generation", "turn"): truth(name)["facts"]["logical_generations"]}
    assert found == expected


@each("times")
def test_every_request_lies_in_a_model_call(name):
    """What went over the wire happened while a span says that a model was called."""
    calls = [span for turn in outer(name) for span in turn.spans if span.phase == "generation"]
    zero = truth(name)["t0_unix_ns"]
    slack = 15 * MS  # two clocks, and a server that notices the end of a request after its client
    for exchange in truth(name)["wire"]:
        began, ended = (zero + int(exchange[key] * MS) for key in ("received_ms", "done_ms"))
        around = [call for call in calls if call.start_ns <= began + slack and call.end_ns + slack >= ended]
        assert len(around) == 1, exchange


@each("coverage")
def test_without_model_and_tool_spans_nothing_is_covered(name, tmp_path):
    """Wrappers alone explain nothing: with what they wrap deleted from the file, coverage is at most 0.05."""
    spans = RawSpans()
    with (TRACES / f"{name}.json").open("rb") as lines:
        read_json(lines, spans)
    gone = {
        one.span_id
        for one in spans.spans
        if classify(one.scope, one.name, one.kind, one.attributes).phase in COUNTED
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


@each("size")
def test_a_trace_is_small_and_tells_nothing_of_the_machine(name):
    """Fixtures stay readable and can be made by anybody."""
    text = (TRACES / f"{name}.json").read_text()
    assert len(text) < 300_000
    assert not re.search(r"site-packages|/(root|home|Users)/", text)
