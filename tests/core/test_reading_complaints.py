"""Complaints about other tools' numbers, as inputs to reading: each has the outcome it should have had."""

import json
from itertools import permutations

import pytest

from core.raws import agent, chat, raw, tool
from turntrace.core.attribution import attribute
from turntrace.core.codec.decode import read_blocks
from turntrace.core.codec.encode import encode_block
from turntrace.core.turns import assemble
from turntrace.core.usage import total

MS = 1_000_000


def one(spans):
    """The only turn that is not nested."""
    (turn,) = [turn for turn in assemble(spans) if turn.parent_run_id is None]
    return turn


def tokens(turn):
    """Input and output of all calls; None is unknown."""
    found = total(turn.usage, turn.counters["model_requests"])
    return found.input_tokens, found.output_tokens


def warned(turn):
    """The spans that each warning names, by code."""
    return {warning.code: set(warning.span_ids) for warning in turn.warnings}


def genai(**usage):
    """Attributes of the GenAI conventions."""
    return {f"gen_ai.usage.{name}": value for name, value in usage.items()}


def test_complaint_06_r17_an_agent_that_repeats_the_sum_of_its_calls_adds_nothing():
    """29,899 over its parts is 29,899, and the span that repeats it is named."""
    parts = (3031, 4421, 10709, 11738)
    spans = [
        agent("r", 0, 1000, attributes=genai(input_tokens=sum(parts), output_tokens=0)),
        *(
            chat(f"c{n}", 10 + 100 * n, 90 + 100 * n, parent="r", tokens=(part, 0))
            for n, part in enumerate(parts)
        ),
    ]
    turn = one(spans)
    assert tokens(turn) == (29_899, 0)
    assert warned(turn)["double_count"] == {"r"}


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_complaint_06_sums_on_every_level_are_counted_once(depth):
    """Deeper nesting of agents that all repeat the sum changes no total."""
    sums = genai(input_tokens=113, output_tokens=11)
    above = [
        agent(f"r{n}", n, 1000 - n, parent=f"r{n - 1}" if n else None, attributes=sums) for n in range(depth)
    ]
    last = f"r{depth - 1}"
    spans = [
        *above,
        chat("a", 100, 200, parent=last, tokens=(56, 5)),
        chat("b", 300, 400, parent=last, tokens=(57, 6)),
    ]
    assert tokens(one(spans)) == (113, 11)


def test_r25_sums_under_a_name_of_their_own_are_no_repeat():
    """The aggregated name says what it is."""
    sums = {"gen_ai.aggregated_usage.input_tokens": 113, "gen_ai.aggregated_usage.output_tokens": 11}
    calls = [chat("a", 1, 2, parent="r", tokens=(56, 5)), chat("b", 3, 4, parent="r", tokens=(57, 6))]
    turn = one([agent("r", 0, 10, attributes=sums), *calls])
    assert (tokens(turn), warned(turn)) == ((113, 11), {})


def test_r26_sub_agents_that_report_each_others_tokens_change_no_total():
    """A usage object that is shared makes every delegate's span wrong; the calls are right."""
    spans = [
        agent("r", 0, 100, attributes=genai(input_tokens=50, output_tokens=0)),
        chat("c", 1, 9, parent="r", tokens=(20, 0)),
    ]
    for number in range(3):
        shared = genai(input_tokens=20 + 10 * (number + 1), output_tokens=0)
        spans += [
            tool(f"t{number}", 10, 90, parent="r"),
            agent(f"d{number}", 11, 89, parent=f"t{number}", agent=f"d{number}", attributes=shared),
            chat(f"c{number}", 12, 80, parent=f"d{number}", tokens=(10, 0)),
        ]
    turns = assemble(spans)
    assert tokens(turns[0]) == (50, 0)
    assert sorted(tokens(turn)[0] for turn in turns[1:]) == [10, 10, 10]


def test_complaint_07_r21_two_instrumentations_of_one_request_are_one_call():
    """Side by side, 98 % of the time together, the same model: counted once, with a warning."""
    spans = [
        agent("r", 0, 1000),
        raw("f", 5, 995, parent="r", name="step"),
        chat("a", 100, 500, parent="f", tokens=(500, 80), scope="framework"),
        chat("b", 104, 500, parent="r", tokens=(500, 80), scope="client"),
    ]
    turn = one(spans)
    assert tokens(turn) == (500, 80)
    assert turn.counters["model_requests"] == 1
    assert warned(turn)["folded"] == {"b"}


def test_complaint_08_what_was_not_reported_is_unknown_in_every_total():
    """A cancelled stream is not free, a part is no total, and a zero that was reported is zero."""
    known = chat("a", 1, 2, parent="r", tokens=(56, 5))
    lost = chat("b", 3, 4, parent="r", tokens=None, attributes={"gen_ai.response.id": "x"})
    turn = one([agent("r", 0, 10), known, lost])
    assert tokens(turn) == (None, None)
    assert {usage.span_id: usage.provenance for usage in turn.usage} == {"a": "reported", "b": "missing"}
    assert tokens(one([agent("r", 0, 10), chat("z", 1, 2, parent="r", tokens=(0, 0))])) == (0, 0)


def test_complaint_09_a_stream_without_usage_is_missing_and_never_guessed():
    """The chunk count is known; no number of tokens follows from it."""
    attributes = {
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": ("stop",),
        "turntrace.stream.chunks": 50,
    }
    turn = one([agent("r", 0, 10), chat("a", 1, 9, parent="r", tokens=None, attributes=attributes)])
    (usage,) = turn.usage
    assert (usage.provenance, usage.input_tokens, usage.output_tokens) == ("missing", None, None)


@pytest.mark.parametrize(
    ("scope", "provider", "usage", "expected"),
    [
        (
            "opentelemetry.instrumentation.openai_v2",
            "openai",
            {"input_tokens": 100, "cache_read.input_tokens": 60},
            100,
        ),
        (
            "opentelemetry.instrumentation.google_genai",
            "gcp.gemini",
            {"input_tokens": 100, "cache_read.input_tokens": 60},
            100,
        ),
        (
            "pydantic-ai",
            "anthropic",
            {"input_tokens": 100, "cache_read.input_tokens": 60, "cache_creation.input_tokens": 10},
            100,
        ),
    ],
)
def test_complaint_10_input_holds_what_was_read_from_and_written_to_the_cache(
    scope, provider, usage, expected
):
    """For every provider: input is the whole prompt, and the cached part of it never exceeds it."""
    attributes = {"gen_ai.provider.name": provider, **genai(**usage, output_tokens=5)}
    turn = one(
        [agent("r", 0, 10), chat("a", 1, 9, parent="r", tokens=None, scope=scope, attributes=attributes)]
    )
    (found,) = turn.usage
    assert found.input_tokens == expected
    assert found.cached_input_tokens == 60


def test_r29_a_total_that_is_written_as_output_is_told():
    """Numbers as text are numbers; what cannot be true is a warning, not a larger sum."""
    odd = {**genai(input_tokens="361", output_tokens="414"), "gen_ai.usage.total_tokens": "414"}
    turn = one([agent("r", 0, 10), chat("a", 1, 9, parent="r", tokens=None, attributes=odd)])
    assert tokens(turn) == (361, 414)
    assert warned(turn)["usage_contradiction"] == {"a"}


def test_r40_the_order_of_lines_changes_no_total():
    """Summary first, last or between, and every line twice: nine stays nine."""
    ids, trace_id = ("a" * 16, "b" * 16, "c" * 16), "d" * 32
    spans = [
        agent(ids[0], 0, 10, trace_id=trace_id),
        chat(ids[1], 1, 2, parent=ids[0], tokens=(4, 0), trace_id=trace_id),
        chat(ids[2], 3, 4, parent=ids[0], tokens=(5, 0), trace_id=trace_id),
    ]
    turn = one(spans)
    found = attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )
    header, *lines = list(encode_block(turn, found))
    usage = [line for line in lines if json.loads(line)["type"] == "usage"]
    rest = [line for line in lines if json.loads(line)["type"] != "usage"]
    assert len(usage) == 2
    for order in permutations([usage[0], usage[1], rest[0]]):
        (block,) = read_blocks([header, *order, *rest[1:], *lines], strict=False)
        assert tokens(block.turn) == (9, 0)


def test_r56_parallel_branches_are_counted_by_interval():
    """Three children that cover their parent: no negative self time, each instant shared among those active."""
    spans = [
        raw("m", 0, 500, name="invoke_agent main", attributes={"gen_ai.operation.name": "invoke_agent"}),
        tool("f1", 0, 100, parent="m", tool="foo1"),
        tool("f2", 0, 200, parent="m", tool="foo2"),
        tool("f3", 200, 500, parent="m", tool="foo3"),
    ]
    turn = one(spans)
    found = attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )
    assert found.unattributed_ns == 0
    shares = {times.span.tool: times.wall_share_ns // MS for times in found.spans}
    assert shares == {"foo1": 50, "foo2": 150, "foo3": 300}


def test_r59_several_roots_of_one_trace_are_told():
    """Three spans without a parent: nothing is lost, and nobody claims that one lies in another."""
    spans = [chat("a", 0, 10), chat("b", 20, 30), chat("c", 5, 40)]
    turns = assemble(spans)
    assert sum(turn.counters["model_requests"] for turn in turns) == 3
    assert sorted(span.span_id for turn in turns for span in turn.spans) == ["a", "b", "c"]
