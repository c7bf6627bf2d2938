"""Calls of a recorded turn: each model call and each tool call once, whoever made the spans."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.core.counted import counted
from turntrace.core.model import Span, Turn, Usage, Warn

MS = 1_000_000


def span(span_id, phase, parent="root", *, at=(0, 10), **fields):
    """A span of a phase from ``at[0]`` to ``at[1]`` milliseconds."""
    start_ns, end_ns = (ms * MS for ms in at)
    return Span(
        span_id=span_id,
        parent_id=parent,
        name=phase or "work",
        phase=phase,
        start_ns=start_ns,
        end_ns=end_ns,
        **fields,
    )


def chat(span_id, parent="root", **fields):
    """A model call."""
    return span(span_id, "generation", parent, model=fields.pop("model", "m"), **fields)


def tool(span_id, parent="root", name="bash", **fields):
    """A tool call."""
    return span(span_id, "tool_execution", parent, tool=name, **fields)


def turn(*spans, **fields):
    """A turn of spans."""
    return Turn(run_id="r", span_id="root", spans=spans, **fields)


def used(span_id, tokens=10, **fields):
    """What a call consumed."""
    return Usage(span_id=span_id, input_tokens=tokens, output_tokens=1, **fields)


def requests(turn):
    """The two counters that spans tell."""
    return turn.counters["model_requests"], turn.counters["tool_calls"]


def test_a_turn_without_calls_made_none():
    """Zero is zero: no call, no usage, no model, and no retry counter."""
    bare = counted(turn(span("a", "prompt_build")))
    assert bare.counters == {"model_requests": 0, "tool_calls": 0}
    assert (bare.usage, bare.model, bare.warnings) == ((), None, ())


def test_calls_side_by_side_are_calls_of_their_own():
    """Two generations and two tools are two requests and two calls; the first names the model."""
    both = counted(
        turn(
            chat("b", model="second", at=(20, 30)),
            chat("a", model="first", at=(0, 9)),
            tool("c", at=(40, 50)),
            tool("d", at=(40, 50)),
            usage=(used("a", 1), used("b", 2)),
        )
    )
    assert requests(both) == (2, 2)
    assert both.model == "first"
    assert {report.span_id: report.input_tokens for report in both.usage} == {"a": 1, "b": 2}


def test_the_model_that_the_turn_named_stays():
    """What the turn itself says of its model wins over its first call."""
    assert counted(turn(chat("a", model="m"), model="chosen")).model == "chosen"


def test_a_generation_in_a_generation_is_the_same_call():
    """The outer span stands for it, with the inner one's usage; what hung on the inner one hangs on it."""
    folded = counted(
        turn(
            chat("outer", at=(0, 10)),
            chat("inner", "outer", at=(1, 9)),
            span("http", "provider_connect", "inner", at=(2, 8)),
            usage=(Usage(span_id="outer", provenance="missing"), used("inner")),
            warnings=(Warn(code="before", message=""),),
        )
    )
    assert requests(folded) == (1, 0)
    assert [(one.span_id, one.parent_id) for one in folded.spans] == [("outer", "root"), ("http", "outer")]
    [report] = folded.usage
    assert (report.span_id, report.input_tokens) == ("outer", 10)
    assert [(warn.code, warn.span_ids) for warn in folded.warnings] == [
        ("before", ()),
        ("folded", ("inner",)),
    ]


def test_a_generation_around_several_calls_is_none_itself():
    """A framework's span around two calls that reported tokens counts as two requests."""
    around = counted(
        turn(
            chat("outer", at=(0, 30)),
            chat("a", "outer", at=(1, 9)),
            chat("b", "outer", at=(10, 29)),
            usage=(used("a"), used("b")),
        )
    )
    assert requests(around) == (2, 0)
    assert len(around.spans) == 3


@pytest.mark.parametrize(
    "between", [tool("between", "outer", at=(1, 9)), span("between", None, "outer", at=(1, 9), agent="sub")]
)
def test_a_call_behind_a_tool_or_an_agent_is_another_call(between):
    """A model called by a tool, or by a sub-agent, inside a generation is a request of its own."""
    apart = counted(turn(chat("outer", at=(0, 10)), between, chat("inner", "between", at=(2, 8))))
    assert apart.counters["model_requests"] == 2
    assert len(apart.spans) == 3


def test_a_tool_in_the_same_tool_is_one_call():
    """Two instrumentations of one tool call make one; another tool inside is another call."""
    assert requests(counted(turn(tool("a"), tool("b", "a"))))[1] == 1
    assert requests(counted(turn(tool("a"), tool("b", "a", name="grep"))))[1] == 2
    assert requests(counted(turn(tool("a"), span("s", None, "a", agent="sub"), tool("b", "s"))))[1] == 2


@pytest.mark.parametrize(("given_count", "expected"), [({}, 2), ({"retry_count": 5}, 5)])
def test_attempts_below_a_call_are_retries_unless_the_agent_counts_them(given_count, expected):
    """Three connections are two retries; a counter of the agent's own is left as it is."""
    tries = [span(f"c{at}", "provider_connect", "a", at=(at, at + 1)) for at in range(3)]
    stray = span("stray", "provider_connect", at=(20, 21))
    assert counted(turn(chat("a"), *tries, stray, counters=given_count)).counters["retry_count"] == expected


@pytest.mark.parametrize(("resends", "expected"), [(3, 3), ("3", None)])
def test_resends_count_where_they_are_a_number(resends, expected):
    """What the HTTP instrumentation says of resends is taken as a number or not at all."""
    said = counted(turn(chat("a", attributes={"http.request.resend_count": resends})))
    assert said.counters.get("retry_count") == expected


def test_what_the_agent_counted_itself_is_added():
    """Requests that no span shows come on top."""
    both = counted(
        turn(chat("a"), tool("b"), counters={"model_requests": 2, "tool_calls": 3, "prefix_drift": 4})
    )
    assert both.counters == {"model_requests": 3, "tool_calls": 4, "prefix_drift": 4}


def test_a_tool_that_never_ended_is_named_by_its_span():
    """A span that was open at a kill has its tool in its name only; any other name stays unnamed."""
    cut = span("a", "tool_execution")
    named = counted(turn(replace(cut, name="execute_tool bash"), replace(cut, span_id="b", name="batch")))
    assert [one.tool for one in named.spans] == ["bash", None]


def test_equal_response_ids_make_one_usage():
    """A response id is read as text, and a call that carries one keeps its report."""
    report = counted(turn(chat("a", attributes={"gen_ai.response.id": "resp"}), usage=(used("a"),))).usage
    assert [one.span_id for one in report] == ["a"]


def test_a_cycle_of_parents_loses_nothing():
    """Spans that are each other's parents are counted like any."""
    looped = counted(turn(chat("a", "b"), tool("b", "a"), tool("c", name="grep")))
    assert len(looped.spans) == 3
    assert requests(looped) == (1, 2)


_PHASES = ("generation", "tool_execution", "provider_connect", None)


@st.composite
def forests(draw):
    """Spans with any parents: known, unknown, none, themselves, in cycles."""
    size = draw(st.integers(0, 12))
    parents = draw(
        st.lists(st.sampled_from([None, "gone", *map(str, range(12))]), min_size=size, max_size=size)
    )
    return [
        span(
            str(row),
            phase := draw(st.sampled_from(_PHASES)),
            parent,
            at=(row, row + draw(st.integers(0, 9))),
            tool=draw(st.sampled_from([None, "bash", "grep"])) if phase == "tool_execution" else None,
            agent=draw(st.sampled_from([None, None, "sub"])) if phase is None else None,
        )
        for row, parent in enumerate(parents)
    ]


@given(forests(), st.sets(st.integers(0, 11)), st.randoms(use_true_random=False))
def test_any_forest_is_counted_whatever_its_order(spans, reported, shuffle: random.Random):
    """No span is lost but those that a warning names, none counted twice, and order decides nothing."""
    usage = tuple(used(str(row)) for row in sorted(reported))
    mixed = list(spans)
    shuffle.shuffle(mixed)
    one, other = counted(turn(*spans, usage=usage)), counted(turn(*mixed, usage=usage))
    left_out = {span_id for warn in one.warnings for span_id in warn.span_ids}
    kept = {span.span_id for span in one.spans}
    assert kept | left_out == {span.span_id for span in spans}
    assert not kept & left_out
    assert not {span.parent_id for span in one.spans} & left_out
    assert one.counters == other.counters
    assert set(one.usage) == set(other.usage) if not one.usage else len(one.usage) == len(other.usage)
    generations = sum(span.phase == "generation" for span in spans)
    assert one.counters["model_requests"] <= generations
    assert bool(one.counters["model_requests"]) == bool(generations)
    assert {report.span_id for report in one.usage} <= kept


def test_r50_usage_told_for_each_block_of_an_answer():
    """180 reports over 89 calls, each with the whole of it: 89 calls, and each call's tokens once."""
    calls = [chat(f"c{number:02}", at=(number, number + 1)) for number in range(89)]
    told = [used(f"c{number % 89:02}", tokens=10 + number % 89) for number in range(180)]
    found = counted(turn(*calls, usage=tuple(told)))
    assert requests(found) == (89, 0)
    assert sum(one.input_tokens for one in found.usage) == sum(10 + number for number in range(89))
