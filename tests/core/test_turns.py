"""Turns: which spans make one, its window, its sub-agents, rounds, counters, usage and warnings."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.raws import MS, TRACES, agent, chat, own, raw, tool, trace, truth
from turntrace.core.attribution import attribute
from turntrace.core.dialects import classify
from turntrace.core.model import Span
from turntrace.core.turn_roots import MAX_NESTED_DEPTH
from turntrace.core.turns import assemble, outcome_of, span_from_raw
from turntrace.core.usage import total

NAMES = sorted(path.name.removesuffix(".truth.json") for path in TRACES.glob("*.truth.json"))
E01 = "edge/e01-lines-in-end-order.jsonl"


def outer(turns):
    return [turn for turn in turns if turn.parent_run_id is None]


def one(spans, **fields):
    (turn,) = assemble(spans, **fields)
    return turn


def span(turn, span_id):
    return next(span for span in turn.spans if span.span_id == span_id)


def warned(turn):
    return {warn.code: warn.span_ids for warn in turn.warnings}


def totals(turns):
    usage = [usage for turn in outer(turns) for usage in turn.usage]
    return total(usage, sum(turn.counters["model_requests"] for turn in outer(turns)))


def shares(turn, spans=None):
    return attribute(
        turn.spans if spans is None else spans,
        started_ns=turn.started_ns,
        completed_ns=turn.completed_ns,
        root_id=turn.span_id,
    )


# -- recorded traces ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_recorded_traces_tell_the_truth(name):
    """Model requests, known tokens, unknown counts and tools are what really happened."""
    facts = truth(name)
    turns = assemble(trace(f"{name}.json")[0])
    found = totals(turns)
    tokens = facts.get("tokens_known", facts.get("tokens"))
    cached = tokens.get("cached", tokens.get("cached_read"))
    unknown = facts.get("tokens_unknown_requests", 0) + facts.get("tokens_partial_requests", 0)
    tools = facts.get("tools", facts.get("mcp_tool_calls"))
    assert facts["logical_generations"] == sum(turn.counters["model_requests"] for turn in outer(turns))
    assert (tokens["input"], tokens["output"]) == (found.known["input_tokens"], found.known["output_tokens"])
    assert cached in {None, found.known["cached_input_tokens"]}
    assert unknown == found.missing
    assert (found.input_tokens is None) == bool(unknown)
    assert tools in {None, sum(turn.counters["tool_calls"] for turn in outer(turns))}


ONE_RUN = {("generation", ""): 4, ("weather", ""): 1, ("tides", ""): 1}
TWO_TOOLS = {("generation", ""): 4, ("search", ""): 1, ("fetch", ""): 1}
HANDED_OVER = {
    ("generation", "triage"): 1,
    ("generation", "specialist"): 2,
    ("weather", "specialist"): 1,
    ("tides", "specialist"): 1,
    ("ask_researcher", "specialist"): 1,
    ("generation", "researcher"): 1,
    ("generation", "plain"): 3,
}
GRAPH = {
    ("generation", ""): 8,
    ("weather", ""): 1,
    ("tides", ""): 1,
    ("ask_sub", ""): 1,
    ("generation", "ask_sub"): 1,
}
TREES = {
    "02-openai-genai-agent": TWO_TOOLS,
    "02-openai-genai-streams": {("generation", ""): 8},
    "04-openai-openinference-agent": TWO_TOOLS,
    "05-openai-logfire-agent": TWO_TOOLS,
    "06-anthropic-genai": {("generation", ""): 9, ("search", ""): 1, ("fetch", ""): 1},
    "09-openai-agents-openinference": HANDED_OVER,
    "11-openai-agents-traceloop": HANDED_OVER,
    "13-pydantic-ai": {
        ("generation", ""): 7,
        ("weather", ""): 1,
        ("delegate", ""): 1,
        ("generation", "sub"): 1,
        ("flaky", ""): 2,
    },
    "14-langgraph-openinference": GRAPH,
    "17-langgraph-both": GRAPH,
    "18-litellm-openinference": {("generation", ""): 8},
    "22-mcp-native": {
        ("generation", ""): 2,
        ("lookup", ""): 2,
        ("lookup", "lookup"): 2,
        ("broken", ""): 1,
        ("broken", "broken"): 1,
    },
    "25-langfuse": ONE_RUN,
    "27-strands": ONE_RUN,
    "36-langsmith": ONE_RUN,
    "38-gemini-otel": {("generation", ""): 4},
}
"""By trace what its truth says in words: each call and tool, and the tool or sub-agent around it."""


@pytest.mark.parametrize("name", NAMES)
def test_parents_are_those_of_the_recorded_truth(name):
    """Calls and tools hang below the tool or sub-agent that made them."""
    found = Counter()
    for turn in outer(assemble(trace(f"{name}.json")[0])):
        spans = {one.span_id: one for one in turn.spans}
        for one in turn.spans:
            above = spans.get(one.parent_id)
            while above is not None and above.phase != "tool_execution" and above.agent is None:
                above = spans.get(above.parent_id)
            if one.phase in {"generation", "tool_execution"}:
                around = "" if above is None else above.tool or above.agent
                found[one.tool or one.phase, around] += 1
    assert found == TREES[name]


@pytest.mark.parametrize("name", NAMES)
def test_wrappers_alone_cover_nothing(name):
    """With all model and tool spans and what lies in them deleted, coverage is at most 0.05."""
    raws = trace(f"{name}.json")[0]
    gone = {
        one.span_id
        for one in raws
        if classify(one.scope, one.name, one.kind, one.attributes).phase in {"generation", "tool_execution"}
    }
    assert gone
    for _ in raws:
        gone |= {one.span_id for one in raws if one.parent_id in gone}
    for turn in assemble([one for one in raws if one.span_id not in gone]):
        assert (shares(turn).coverage or 0) <= 0.05


def test_mcp_spans_of_two_processes_are_one_turn():
    """The server's spans hang below the client's; a tool call that both show counts once."""
    turn = one(trace("22-mcp-native.json")[0])
    calls = [span for span in turn.spans if span.phase == "tool_execution"]
    assert {"lookup", "broken"} == {span.tool for span in calls}
    assert turn.counters["tool_calls"] == 3
    assert shares(turn).max_concurrency["tool_execution"] == 2
    assert len(turn.spans) == 14


def test_anthropic_native_spans_fold_into_the_official_ones():
    """Nine calls seen by two instrumentations count once, the native span tells the retry."""
    turns = assemble(trace("06-anthropic-genai.json")[0])
    main, side = turns
    assert (main.root_name, side.root_name) == ("agent run", "sub-agent C")
    assert (main.counters["model_requests"], side.counters["model_requests"]) == (8, 1)
    assert main.counters["retry_count"] == 1
    assert (len(warned(main)["folded"]), len(warned(side)["folded"])) == (8, 1)
    assert "anthropic.messages.create" not in {span.name for turn in turns for span in turn.spans}


def test_pydantic_ai_delegate():
    """A sub-agent in a tool is structure of the outer turn and a turn of its own."""
    turns = assemble(trace("13-pydantic-ai.json")[0])
    assert [turn.agent for turn in turns] == ["main", "sub", "plain", "plain", "plain"]
    main, sub = turns[:2]
    assert main.run_id == sub.parent_run_id
    place = span(main, sub.span_id)
    assert (None, "sub", sub.run_id) == (place.phase, place.agent, place.run_id)
    assert (main.counters["model_requests"], sub.counters["model_requests"], main.rounds) == (5, 1, 4)
    delegate = next(span for span in main.spans if span.tool == "delegate")
    assert {1} == {span.round for span in main.spans if span.parent_id in {delegate.span_id, sub.span_id}}


@pytest.mark.parametrize(
    "name",
    [
        E01,
        "edge/e05-batch-sent-twice.jsonl",
        "edge/e09-bom-crlf-nul.jsonl",
        "edge/e12-child-outlives-root-by-5s.json",
    ],
)
def test_harmless_damage(name):
    """Order, repeats, padding and late ends change no count: four runs, 7 calls, 3 tools, 1164/103."""
    turns = assemble(trace(name)[0])
    found = totals(turns)
    assert len(outer(turns)) == 4
    assert tuple(
        sum(turn.counters[name] for turn in outer(turns)) for name in ("model_requests", "tool_calls")
    ) == (7, 3)
    assert (found.input_tokens, found.output_tokens, found.complete) == (1164, 103, True)


def test_a_tool_that_outlives_the_root_keeps_its_end():
    """The overhang stays on the span; the turn's window does not grow."""
    turn = assemble(trace("edge/e12-child-outlives-root-by-5s.json")[0])[0]
    late = next(span for span in turn.spans if span.tool == "weather")
    assert late.end_ns - turn.completed_ns > 5_000 * MS
    found = shares(turn)
    assert found.attributed_ns <= found.wall_ns < 2_000 * MS


@pytest.mark.parametrize("name", ["edge/e06-root-never-ended.jsonl", "edge/e07-last-line-cut.jsonl"])
def test_a_root_that_never_ended(name):
    """What hangs on a root that is not there is one interrupted turn; its time is unknown, the rest stands."""
    turns = assemble(trace(name)[0])
    (turn,) = outer(turns)
    assert (turn.status, turn.span_id, turn.completed_ns) == ("interrupted", "68463620931ca4c5", None)
    assert (turn.counters["model_requests"], turn.counters["tool_calls"], len(turn.spans)) == (7, 3, 20)
    assert (totals(turns).input_tokens, totals(turns).output_tokens) == (1164, 103)
    found = shares(turn)
    assert (found.wall_ns, found.coverage) == (None, None)
    assert sum(span.parent_id == turn.span_id for span in turn.spans) == 4


def test_a_clock_that_stepped_back():
    """Spans that end before they start are empty and named; a turn whose root did has no time."""
    turns = assemble(trace("edge/e10-clock-stepped-back-2s.json")[0])
    assert (totals(turns).input_tokens, totals(turns).output_tokens) == (1164, 103)
    assert all(span.end_ns >= span.start_ns for turn in turns for span in turn.spans)
    bad = [turn for turn in outer(turns) if turn.completed_ns is None]
    assert [len(warned(turn)["span_end_before_start"]) for turn in bad] == [5]
    assert [turn.status for turn in bad] == ["ok"]


def test_a_cycle_of_parents():
    """Spans that are each other's parents are top level in the turn around them, and reported."""
    turns = assemble(trace("edge/e15-parent-cycle.json")[0])
    turn = turns[0]
    cyclic = {"4701df12be92b6b4", "16140505df8f7f02"}
    assert cyclic == set(warned(turn)["cycle"]) == set(warned(turn)["parent_inferred"])
    assert {turn.span_id} == {span(turn, span_id).parent_id for span_id in cyclic}
    assert {"inferred"} == {span(turn, span_id).parent_source for span_id in cyclic}
    assert (len(outer(turns)), sum(turn.counters["model_requests"] for turn in outer(turns))) == (4, 7)


@given(st.randoms())
def test_the_order_of_arrival_does_not_matter(order):
    """Spans in any order make the same turns."""
    spans = trace(E01)[0]
    expected = assemble(spans)
    order.shuffle(spans)
    assert expected == assemble(spans)


# -- what is a turn ----------------------------------------------------------------------------------


def test_api_turn():
    """A span of turn() is a turn, with its run id, agent, labels, session and status."""
    root = own(
        "r",
        0,
        100,
        "turn",
        attributes={
            "turntrace.run_id": "run_1",
            "turntrace.label.prompt": "v7",
            "gen_ai.agent.name": "demo",
            "gen_ai.conversation.id": "s1",
            "turntrace.turn.status": "cancelled",
        },
    )
    turn = one([root, own("g", 10, 40, "generation", parent="r", attributes={"gen_ai.request.model": "m"})])
    assert (turn.run_id, turn.turn_source, turn.source, turn.agent) == ("run_1", "api", "native", "demo")
    assert (
        turn.labels,
        turn.session_id,
        turn.status,
        turn.model,
    ) == ({"prompt": "v7"}, "s1", "cancelled", "m")
    assert (turn.started_ns, turn.completed_ns, turn.trace_id, turn.span_id) == (0, 100 * MS, "t1", "r")
    assert [span.span_id for span in turn.spans] == ["g"]


def test_a_server_span_lies_outside():
    """What is above an agent is outside its turn."""
    spans = [raw("s", 0, 100, kind="server"), agent("a", 10, 90, parent="s"), chat("g", 20, 30, parent="a")]
    turn = one(spans)
    assert (
        turn.span_id,
        turn.turn_source,
        turn.started_ns,
        turn.completed_ns,
    ) == ("a", "dialect", 10 * MS, 90 * MS)


def test_a_local_root():
    """Without an agent a local root with a phase in it is the turn; a root with none is no turn."""
    turn = one([raw("r", 0, 100, name="job"), chat("g", 20, 30, parent="r"), raw("o", 40, 41, parent="r")])
    assert (
        turn.turn_source,
        turn.root_name,
        turn.agent,
        turn.completed_ns,
    ) == ("local_root", "job", None, 100 * MS)
    assert assemble([raw("r", 0, 100), raw("o", 40, 41, parent="r")]) == []
    assert assemble([]) == []


def test_a_local_root_that_is_a_call():
    """A lone model call is a turn without a root: the call is one of its spans."""
    turn = one([chat("g", 20, 30)])
    assert (turn.span_id, turn.root_name, [span.span_id for span in turn.spans]) == (None, "", ["g"])
    assert (turn.started_ns, turn.completed_ns, turn.run_id) == (20 * MS, 30 * MS, "g")
    assert None is span(turn, "g").parent_id


def test_calls_beside_an_agent():
    """Calls beside an agent are a turn of their own, from the first to the last of them."""
    spans = [
        raw("r", 0, 1000),
        agent("a", 100, 400, parent="r"),
        chat("in", 150, 200, parent="a"),
        chat("g1", 500, 550, parent="r"),
        raw("w", 600, 900, parent="r"),
        chat("g2", 610, 650, parent="w"),
        chat("g3", 700, 750, parent="w"),
    ]
    first, second = assemble(spans)
    assert (first.span_id, second.span_id) == ("a", "r")
    assert (first.parent_run_id, second.parent_run_id) == (None, None)
    assert (
        second.started_ns,
        second.completed_ns,
        second.counters["model_requests"],
    ) == (500 * MS, 750 * MS, 3)
    assert {"g1", "w", "g2", "g3"} == {span.span_id for span in second.spans}


def test_a_turn_below_a_turn_is_nested():
    """A root below a root is structure and a nested turn, turn() and agents alike."""
    spans = [
        own("r", 0, 100, "turn", attributes={"gen_ai.agent.name": "demo"}),
        agent("a", 10, 90, parent="r", agent="sub"),
        own("n", 20, 80, "turn", parent="a", attributes={"turntrace.run_id": "inner"}),
        chat("g", 30, 40, parent="n"),
    ]
    top, sub, inner = assemble(spans)
    assert [turn.parent_run_id for turn in (top, sub, inner)] == [None, "r", "a"]
    assert [turn.turn_source for turn in (top, sub, inner)] == ["api", "dialect", "api"]
    assert [turn.counters["model_requests"] for turn in (top, sub, inner)] == [1, 1, 1]
    assert (span(top, "n").run_id, inner.run_id) == ("inner", "inner")
    assert (span(top, "n").agent, inner.agent) == ("turn", None)


def test_siblings_are_nested_in_the_same_turn():
    """Two agents side by side, also one that time alone puts there, have the same turn above them."""
    spans = [
        agent("r", 0, 100),
        agent("a", 10, 40, parent="r"),
        chat("ga", 20, 30, parent="a"),
        agent("b", 50, 90, parent="r"),
        agent("lost", 5, 8, parent="gone"),
        chat("gl", 6, 7, parent="lost"),
    ]
    turns = assemble(spans)
    assert {t.span_id: t.parent_run_id for t in turns if t.parent_run_id} == {"a": "r", "b": "r", "lost": "r"}
    assert turns[0].counters["model_requests"] == 2


def test_a_rule_overrules():
    """A rule names the turns: nothing else is one, what lies below is nested, SERVER spans can be roots."""
    spans = [
        raw("s", 0, 100, kind="server", name="POST /chat"),
        agent("a", 10, 90, parent="s"),
        chat("g", 20, 30, parent="a"),
        chat("else", 200, 210),
        chat("lost", 300, 310, parent="gone", trace_id="t2"),
    ]
    turns = assemble(spans, rule=lambda span: span.name == "POST /chat")
    assert [(turn.span_id, turn.turn_source, turn.parent_run_id) for turn in turns] == [
        ("s", "rule", None),
        ("a", "dialect", "s"),
    ]
    assert None is turns[0].agent


def test_a_remote_parent():
    """A parent in another process makes a local root; when its span is here too, it is one tree."""
    far = chat("g", 20, 30, parent="gone", remote_parent=True)
    assert (one([far]).turn_source, one([far]).status) == ("local_root", "ok")
    near = chat("g", 20, 30, parent="r", remote_parent=True)
    assert one([agent("r", 0, 100), near]).span_id == "r"


def test_several_absent_parents():
    """Spans on several absent parents of one trace are one interrupted turn without a root id."""
    spans = [chat("g1", 20, 30, parent="x"), chat("g2", 40, 50, parent="y"), raw("o", 1, 2, parent="x")]
    turn = one(spans)
    assert (
        turn.status,
        turn.span_id,
        turn.run_id,
        turn.started_ns,
        turn.completed_ns,
    ) == ("interrupted", None, "t1", 1 * MS, None)
    assert {"x", "y"} == {span.parent_id for span in turn.spans}
    assert assemble([raw("o", 1, 2, parent="x")]) == []


def test_a_whole_turn_below_an_absent_parent():
    """A span of turn() is a whole turn, whatever became of the spans above it."""
    turns = assemble([own("r", 0, 100, "turn", parent="gone"), chat("g", 20, 30, parent="r")])
    assert [(turn.span_id, turn.status, turn.turn_source) for turn in turns] == [("r", "ok", "api")]
    below = [
        raw("w", 0, 100, parent="gone"),
        own("r", 10, 90, "turn", parent="w"),
        chat("g", 20, 30, parent="r"),
        chat("stray", 95, 99, parent="w"),
    ]
    stray, whole = assemble(below)
    assert (stray.status, len(stray.spans), whole.status, len(whole.spans)) == ("interrupted", 2, "ok", 1)


def test_a_trace_that_is_one_cycle():
    """A trace without any root is one interrupted turn; its spans are top level."""
    turn = one([chat("a", 0, 10, parent="b"), chat("b", 20, 30, parent="a")])
    assert ("interrupted", None, {None}) == (
        turn.status,
        turn.span_id,
        {span.parent_id for span in turn.spans},
    )
    assert warned(turn)["cycle"] == ("a", "b")


def test_a_span_whose_parent_was_lost():
    """A span of the trace without its parent joins the turn around it; with two around it joins none."""
    lost = chat("g", 20, 30, parent="gone")
    turn = one([agent("r", 0, 100), lost])
    assert (
        warned(turn)["parent_inferred"],
        span(turn, "g").parent_id,
        span(turn, "g").parent_source,
    ) == (("g",), "r", "inferred")
    two = assemble([agent("r", 0, 100), agent("q", 10, 90), lost])
    assert [turn.turn_source for turn in two] == ["dialect", "dialect", "local_root"]
    late = assemble([agent("r", 0, 100), chat("g", 90, 101, parent="gone")])
    assert [turn.turn_source for turn in late] == ["dialect", "local_root"]
    early = assemble([agent("r", 50, 100), chat("g", 20, 30, parent="gone")])
    assert [turn.turn_source for turn in early] == ["local_root", "dialect"]


def test_tools_made_in_threads():
    """A tool that a thread made a root joins the one turn of its process around it; a call does not."""
    here, there = {"service.name": "app"}, {"service.name": "other"}
    root = agent("r", 0, 100, resource=here)
    turn = one([root, tool("t", 20, 30, trace_id="t2", resource=here)])
    assert (
        span(turn, "t").parent_id,
        span(turn, "t").parent_source,
        turn.counters["tool_calls"],
    ) == ("r", "inferred", 1)
    assert len(assemble([root, tool("t", 20, 30, trace_id="t2", resource=there)])) == 2
    assert len(assemble([root, chat("g", 20, 30, trace_id="t2", resource=here)])) == 2
    assert len(assemble([tool("t", 20, 30)])) == 1


def test_dropped_spans():
    """A pending span is left out; one that others hang on stays, as structure."""
    pending = {"logfire.span_type": "pending_span"}
    spans = [agent("r", 0, 100), raw("p", 0, 0, parent="r", attributes=pending), chat("g", 1, 2, parent="r")]
    assert {"g"} == {span.span_id for span in one(spans).spans}
    turn = one([*spans, chat("h", 3, 4, parent="p")])
    assert (span(turn, "p").phase, span(turn, "h").parent_id) == (None, "p")


def test_one_span_an_id():
    """Of two spans with one id the one that ends last counts, then the one that starts first."""
    spans = [
        agent("r", 0, 100),
        chat("g", 20, 30, parent="r"),
        chat("g", 25, 50, parent="r"),
        chat("g", 22, 50, parent="r"),
    ]
    turn = one(spans)
    assert (span(turn, "g").start_ns, span(turn, "g").end_ns) == (22 * MS, 50 * MS)
    assert warned(turn)["duplicate_span"] == ("g",)
    assert turn.counters["model_requests"] == 1


def test_ids_are_those_of_a_trace():
    """Equal span ids in two traces are two spans."""
    turns = assemble([agent("r", 0, 100), agent("r", 0, 100, trace_id="t2")])
    assert sorted(turn.trace_id for turn in turns) == ["t1", "t2"]


# -- phases, rounds, counters ------------------------------------------------------------------------


def test_a_leaf_is_other_until_it_has_children():
    """A span that maps to nothing is `other` when it is a leaf and structure when it is none."""
    turn = one(
        [
            agent("r", 0, 100),
            raw("w", 10, 50, parent="r"),
            raw("o", 20, 30, parent="w"),
            chat("g", 60, 70, parent="r"),
        ]
    )
    assert (span(turn, "w").phase, span(turn, "o").phase) == (None, "other")


def test_http_spans_below_a_call():
    """An HTTP client span is an attempt of the call it lies in, elsewhere a leaf; more than one is a retry."""
    post = {"http.request.method": "POST"}
    spans = [
        agent("r", 0, 100),
        chat("g", 10, 50, parent="r"),
        raw("h1", 11, 20, parent="g", kind="client", attributes=post),
        raw("h2", 30, 40, parent="g", kind="client", attributes=post),
        tool("t", 60, 90, parent="r"),
        raw("h3", 61, 70, parent="t", kind="client", attributes=post),
    ]
    turn = one(spans)
    assert [span(turn, name).phase for name in ("h1", "h2", "h3")] == [
        "provider_connect",
        "provider_connect",
        "other",
    ]
    assert turn.counters["retry_count"] == 1
    assert "retry_count" not in one([agent("r", 0, 9), chat("g", 1, 2, parent="r")]).counters


def test_rounds_are_counted():
    """Each own call starts a round; tools belong to the call before them, and what is inside to them."""
    spans = [
        agent("r", 0, 100),
        tool("t0", 1, 2, parent="r"),
        chat("g1", 5, 10, parent="r"),
        tool("t1", 11, 30, parent="r"),
        agent("sub", 12, 29, parent="t1"),
        chat("inner", 13, 20, parent="sub"),
        raw("o", 14, 15, parent="inner"),
        chat("g2", 40, 50, parent="r"),
        tool("t2", 51, 60, parent="r"),
    ]
    turn, sub = assemble(spans)
    assert [span(turn, name).round for name in ("t0", "g1", "t1", "sub", "inner", "o", "g2", "t2")] == [
        None,
        1,
        1,
        1,
        1,
        1,
        2,
        2,
    ]
    assert (turn.rounds, sub.rounds, span(sub, "inner").round) == (2, 1, 1)


def test_rounds_that_are_stated():
    """A round that a span states counts."""
    spans = [
        own("r", 0, 100, "turn"),
        own("p", 1, 4, "prompt_build", parent="r", attributes={"turntrace.round": 3}),
        own("g", 5, 9, "generation", parent="r", attributes={"turntrace.round": 3}),
    ]
    turn = one(spans)
    assert (turn.rounds, span(turn, "p").round, span(turn, "g").round) == (3, 3, 3)
    assert one([agent("r", 0, 9)]).rounds == 0


def test_rounds_of_a_turn_that_hands_over():
    """A turn that makes no call itself has the rounds of the agents it hands over to."""
    spans = [
        agent("r", 0, 100),
        agent("a", 1, 40, parent="r"),
        chat("g1", 2, 10, parent="a"),
        agent("b", 50, 90, parent="r"),
        chat("g2", 51, 60, parent="b"),
    ]
    assert [turn.rounds for turn in assemble(spans)] == [2, 1, 1]


def test_tries_share_a_round():
    """A refused try is part of the call that took its place: one request, one round, a retry."""
    sent = {"openinference.span.kind": "LLM", "input.value": "hello"}
    spans = [
        agent("r", 0, 100),
        raw("g1", 5, 9, parent="r", scope="oi", status="error", attributes=sent),
        raw("g2", 20, 30, parent="r", scope="oi", attributes={**sent, "llm.token_count.prompt": 5}),
    ]
    turn = one(spans)
    assert turn.counters == {"model_requests": 1, "tool_calls": 0, "retry_count": 1}
    assert (turn.rounds, span(turn, "g1").round, span(turn, "g2").round) == (1, 1, 1)


# -- usage and moments -------------------------------------------------------------------------------


def test_folded_calls():
    """A call seen twice stands under its outer span; what hung on the inner one hangs on the outer."""
    spans = [
        agent("r", 0, 100),
        chat("g", 10, 50, parent="r", tokens=None),
        chat("n", 11, 49, parent="g", scope="native", tokens=(10, 2)),
        raw("h", 12, 20, parent="n", kind="client", attributes={"http.method": "POST"}),
    ]
    turn = one(spans)
    assert {"g", "h"} == {span.span_id for span in turn.spans}
    assert (span(turn, "h").parent_id, span(turn, "h").phase) == ("g", "provider_connect")
    assert [(usage.span_id, usage.input_tokens, usage.output_tokens) for usage in turn.usage] == [
        ("g", 10, 2)
    ]
    assert warned(turn)["folded"] == ("n",)


def test_a_wrapper_of_calls_is_structure():
    """A generation around several calls is structure; its repeated tokens are reported, not added."""
    spans = [
        agent("r", 0, 100),
        chat("w", 5, 90, parent="r", tokens=(113, 11)),
        chat("g1", 10, 40, parent="w", tokens=(56, 5)),
        chat("g2", 50, 80, parent="w", tokens=(57, 6)),
    ]
    turn = one(spans)
    assert (span(turn, "w").phase, span(turn, "g1").phase) == (None, "generation")
    assert (
        totals([turn]).input_tokens,
        turn.counters["model_requests"],
        warned(turn)["double_count"],
    ) == (113, 2, ("w",))


def test_sums_on_parents_are_not_added():
    """An agent that repeats the tokens of its calls is named; the aggregated name is no repeat."""
    sums = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    turn = one([agent("r", 0, 100, attributes=sums), chat("g", 1, 9, parent="r")])
    assert (totals([turn]).input_tokens, warned(turn)["double_count"]) == (10, ("r",))
    kind = {f"gen_ai.aggregated_usage.{name}": 3 for name in ("input_tokens", "output_tokens")}
    assert warned(one([agent("r", 0, 100, attributes=kind), chat("g", 1, 9, parent="r")])) == {}
    alone = one([agent("r", 0, 100, attributes=sums), chat("g", 1, 9, parent="r", tokens=None)])
    assert warned(alone) == {}


def test_contradicting_counts_are_told():
    """Counts that cannot all be true are a warning that names the call."""
    odd = {"gen_ai.usage.total_tokens": 414}
    turn = one([agent("r", 0, 100), chat("g", 1, 9, parent="r", tokens=("361", "414"), attributes=odd)])
    assert warned(turn)["usage_contradiction"] == ("g",)


def test_moments():
    """The first chunk, token and visible text of any call, and the first tool, as times and as marks."""
    chunk = {"gen_ai.response.time_to_first_chunk": 0.005}
    told = {"turntrace.first_token_ms": 6, "turntrace.first_visible_ms": 7}
    spans = [
        own("r", 0, 100, "turn"),
        own("g", 10, 40, "generation", parent="r", attributes=told),
        chat("n", 11, 39, parent="g", attributes=chunk),
        tool("t2", 55, 60, parent="r"),
        tool("t1", 50, 60, parent="r"),
        chat("late", 70, 90, parent="r", attributes=chunk),
    ]
    turn = one(spans)
    assert [
        at_ns // MS
        for at_ns in (turn.first_chunk_ns, turn.first_token_ns, turn.first_visible_ns, turn.first_useful_ns)
    ] == [16, 16, 17, 50]
    assert [(mark.name, mark.span_id) for mark in turn.marks] == [
        ("first_token", "g"),
        ("first_chunk", "n"),
        ("first_visible", "g"),
        ("first_useful", "t1"),
    ]
    assert None is one([agent("r", 0, 9)]).first_useful_ns


def test_the_outermost_span_of_a_call_tells_its_moments():
    """Of two spans of one call the outer one's first chunk counts, also when the inner one's is earlier."""
    spans = [
        agent("r", 0, 100),
        chat("g", 10, 50, parent="r", attributes={"gen_ai.response.time_to_first_chunk": 0.02}),
        chat("n", 11, 49, parent="g", attributes={"gen_ai.response.time_to_first_chunk": 0.005}),
    ]
    assert one(spans).first_chunk_ns == 30 * MS


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "ok"),
        ({"status": "error"}, "error"),
        ({"status": "error", "attributes": {"error.type": "asyncio.exceptions.CancelledError"}}, "cancelled"),
        ({"attributes": {"turntrace.outcome": "incomplete"}}, "interrupted"),
        ({"attributes": {"turntrace.outcome": "abandoned"}}, "ok"),
        ({"status": "error", "attributes": {"turntrace.turn.status": "nonsense"}}, "error"),
    ],
)
def test_status_of_a_turn(fields, status):
    """The status of a turn is what its root says or how its root ended."""
    assert status == one([agent("r", 0, 9, **fields)]).status


# -- one span ----------------------------------------------------------------------------------------


def converted(span):
    return span_from_raw(span, classify(span.scope, span.name, span.kind, span.attributes))


def test_span_from_raw():
    """A span keeps ids, name, times, status and content-free attributes; its dialect adds the rest."""
    secret = {"gen_ai.input.messages": "secret", "turntrace.round": 2}
    found = converted(chat("g", 1, 2, parent="r", attributes=secret))
    assert isinstance(found, Span)
    assert (found.span_id, found.parent_id, found.name, found.phase) == ("g", "r", "chat m", "generation")
    assert (found.model, found.round, found.agent, found.outcome) == ("m", 2, None, "ok")
    assert "secret" not in found.attributes.values()
    assert (converted(agent("a", 0, 1)).agent, converted(agent("a", 0, 1)).phase) == ("main", None)


def test_outcomes():
    """A span ends as it says, else by its status and the class of its error, wherever that stands."""

    def ended(span):
        return outcome_of(span, classify(span.scope, span.name, span.kind, span.attributes))

    assert ended(raw("s", 0, 1, attributes={"turntrace.outcome": "abandoned"})) == "abandoned"
    assert ended(raw("s", 0, 1)) == "ok"
    assert ended(raw("s", 0, 1, status="error")) == "error"
    first, last = (
        (at, "exception", {"exception.type": kind}) for at, kind in ((1, "OSError"), (3, "KeyboardInterrupt"))
    )
    events = (first, (2, "log", {}), last)
    assert ended(raw("s", 0, 1, status="error", events=events)) == "cancelled"
    assert ended(raw("s", 0, 1, status="error", attributes={"error.type": 500})) == "error"
    handled = raw("s", 0, 1, status="ok", events=(first,))
    assert ended(handled) == "ok"
    assert ended(replace(handled, attributes={"langsmith.span.kind": "tool"})) == "error"


# -- scale and damage --------------------------------------------------------------------------------


def test_deep_nesting_is_bounded():
    """Agents nested beyond the bound are structure only; the outer turn still has every span."""
    size = 2_000
    spans = [
        agent(f"a{depth}", depth, 2 * size, parent=f"a{depth - 1}" if depth else None)
        for depth in range(size)
    ]
    spans.append(chat("g", size, size + 1, parent=f"a{size - 1}"))
    turns = assemble(spans)
    assert len(turns) == MAX_NESTED_DEPTH + 1
    assert (size, 1) == (len(turns[0].spans), turns[0].counters["model_requests"])


@pytest.mark.slow
def test_many_spans():
    """A chain 50,000 deep and 50,000 short turns are read without recursion in linear time."""
    size = 50_000
    chain = [
        raw(f"c{depth}", depth, size, parent=f"c{depth - 1}" if depth else None) for depth in range(size)
    ]
    assert size == len(one([*chain, chat("g", 1, 2, parent=f"c{size - 1}")]).spans)
    assert size == len(
        assemble([chat(f"g{number}", number, number + 1, trace_id=str(number)) for number in range(size)])
    )


@st.composite
def any_spans(draw):
    ids = [f"{number:02d}" for number in range(draw(st.integers(1, 8)))]
    make = st.sampled_from([raw, chat, tool, agent])
    spans = []
    for span_id in ids:
        start, end = draw(st.integers(-3, 12)), draw(st.integers(-3, 12))
        parent = draw(st.sampled_from([None, "gone", *ids]))
        scope = draw(st.sampled_from(["a", "b"]))
        trace_id = draw(st.sampled_from(["t1", "t1", "t2"]))
        remote = draw(st.booleans())
        spans.append(
            draw(make)(
                span_id, start, end, parent=parent, trace_id=trace_id, scope=scope, remote_parent=remote
            )
        )
    return spans


@given(any_spans())
def test_any_forest(spans):
    """However broken: each span is in at most one outermost turn, no parent leads in a circle, nothing raises."""
    turns = assemble(spans)
    placed = [span.span_id for turn in outer(turns) for span in turn.spans]
    assert len(placed) == len(set(placed))
    runs = {turn.run_id for turn in turns}
    for turn in turns:
        assert turn.parent_run_id is None or turn.parent_run_id in runs
        found = shares(turn)
        assert {"cycle", "duplicate_span"}.isdisjoint(warn.code for warn in found.warnings)
        assert turn.counters["model_requests"] <= sum(span.phase == "generation" for span in turn.spans)
        assert {usage.span_id for usage in turn.usage} <= {span.span_id for span in turn.spans}


def test_warnings_name_a_bounded_number_of_spans():
    """A warning tells how many spans it is about and names the first hundred."""
    spans = [agent("r", 0, 1000), *(raw(f"s{number:03d}", 20, 10, parent="r") for number in range(200))]
    (warn,) = one(spans).warnings
    assert (len(warn.span_ids), warn.message.endswith(": 200")) == (100, True)


def test_random_shuffles_of_duplicates():
    """Spans sent twice, in any order, make the same turns as sent once, and a warning."""
    spans = trace(E01)[0]
    twice = spans * 2
    random.Random(7).shuffle(twice)
    for once, again in zip(assemble(spans), assemble(twice), strict=True):
        assert (once.spans, once.usage, once.counters) == (again.spans, again.usage, again.counters)
        assert "duplicate_span" in warned(again)
