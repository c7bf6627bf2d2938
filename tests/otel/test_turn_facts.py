"""What turntrace tells of the spans of finished turns, and the spans of the SDK that are made of them."""

from dataclasses import replace

import pytest
from opentelemetry.trace import StatusCode

from report.turns import example, span, turn
from turntrace.core.attribution import attribute
from turntrace.core.model import Turn
from turntrace.otel.turn_facts import facts_of_turns
from turntrace.otel.turn_spans import resource_of, spans_of_turn


def examined(one):
    """The turn with where its time went."""
    return one, attribute(
        one.spans, started_ns=one.started_ns, completed_ns=one.completed_ns, root_id=one.span_id
    )


def repeated(*spans):
    """The spans that are said to show a call again."""
    facts = facts_of_turns([examined(turn(spans, 100))])
    return {span_id for span_id, told in facts.items() if told.get("turntrace.repeated")}


def test_a_call_in_a_call_of_its_kind_is_that_call_again():
    """However deep; a tool in a model call is another call, and so is what a nested agent does."""
    assert repeated(
        span("g", "generation", 0, 50),
        span("h", None, 1, 40, "g"),
        span("again", "generation", 2, 30, "h"),
        span("t", "tool_execution", 3, 20, "again"),
        span("tt", "tool_execution", 3, 19, "t"),
        span("sub", None, 4, 18, "tt", agent="inner", run_id="run-2"),
        span("own", "generation", 5, 10, "sub"),
        span("own_tool", "tool_execution", 10, 15, "sub"),
        span("other", "generation", 60, 70),
    ) == {"again", "tt"}


def test_a_cycle_of_parents_ends():
    """Damaged traces have them: every span is looked at once."""
    assert repeated(
        span("a", "generation", 0, 50, "b"), span("b", "generation", 0, 50, "a"), span("c", None, 0, 5, "c")
    ) <= {"a", "b"}


def test_a_nested_turn_says_whose_part_it_is():
    """Its answer is its own; who sums up leaves it out. A turn without an agent's name says none."""
    outer = turn([span("n", None, 0, 50, agent="inner", run_id="run-2")], 100, agent=None)
    inner = replace(turn([], 50), span_id="n", run_id="run-2", parent_run_id="run-1")
    facts = facts_of_turns([examined(outer), examined(inner)])
    assert facts["n"]["turntrace.parent_run_id"] == "run-1"
    assert facts["n"]["turntrace.turn.status"] == "ok"
    assert "turntrace.parent_run_id" not in facts["root"]
    assert "turntrace.agent" not in facts["root"]
    assert facts["root"]["turntrace.metrics"] == "collector"


def test_a_wait_says_the_model_that_is_called_again():
    """That of the call it lies in, else the turn's; unknown is left out."""
    waits = (
        span("g", "generation", 0, 50, model="m-2"),
        span("inside", "retry_wait", 5, 20, "g"),
        span("outside", "retry_wait", 60, 70),
    )
    facts = facts_of_turns([examined(turn(waits, 100, model="m-1"))])
    assert {name: told["turntrace.model"] for name, told in facts.items() if "turntrace.model" in told} == {
        "inside": "m-2",
        "outside": "m-1",
    }
    unknown = facts_of_turns([examined(turn(waits[2:], 100, model=None))])
    assert "turntrace.model" not in unknown["outside"]


def made(one):
    """The spans of a turn by name."""
    return {found.name: found for found in spans_of_turn(*examined(one), resource_of("shop"))}


def numbered(one, root="000000000000000f", trace_id=f"{1:032x}"):
    """The turn with ids that OTLP takes."""
    ids = {one.span_id: root}
    for number, each in enumerate(one.spans, 16):
        ids[each.span_id] = f"{number:016x}"
    return replace(
        one,
        span_id=ids[one.span_id],
        trace_id=trace_id,
        spans=tuple(
            replace(each, span_id=ids[each.span_id], parent_id=ids[each.parent_id]) for each in one.spans
        ),
    )


def test_an_interrupted_turn_ends_with_its_last_span():
    """Its root has no end of its own; it is incomplete, and no error."""
    spans = [span("t", "tool_execution", 10, 70, tool="bash")]
    one = replace(numbered(turn(spans, 100)), completed_ns=None, status="interrupted", labels={"a": "b"})
    found = made(one)
    root, tool = found["invoke_agent"], found["tool_execution"]
    assert root.end_time == tool.end_time == one.spans[0].end_ns
    assert root.attributes["turntrace.outcome"] == "incomplete"
    assert root.attributes["turntrace.label.a"] == "b"
    assert root.status.status_code is StatusCode.UNSET
    assert tool.parent == root.get_span_context()
    assert tool.attributes["gen_ai.tool.name"] == "bash"
    assert made(replace(one, status="error"))["invoke_agent"].status.status_code is StatusCode.ERROR


@pytest.mark.parametrize(
    "broken",
    [
        replace(example(), trace_id="not an id"),
        replace(example(), trace_id=""),
        replace(example(), trace_id="z" * 32),
        Turn(run_id="r", trace_id=f"{1:032x}"),
    ],
)
def test_what_has_no_ids_of_otlp_gives_no_spans(broken):
    """None are invented."""
    assert made(broken) == {}


def test_a_root_that_is_among_the_spans_is_sent_once():
    """Foreign turns keep their root as a span."""
    one = numbered(turn([span("r", None, 0, 100)], 100))
    one = replace(one, span_id=one.spans[0].span_id, spans=(replace(one.spans[0], parent_id=None),))
    assert len(list(spans_of_turn(*examined(one), resource_of("shop")))) == 1
    assert len(list(spans_of_turn(*examined(replace(one, span_id=None)), resource_of("shop")))) == 1


def test_a_nested_agent_keeps_its_name():
    """Structure that is an agent says which."""
    one = numbered(turn([span("n", None, 0, 50, name="sub", agent="inner", run_id="run-2")], 100))
    assert made(one)["sub"].attributes["gen_ai.agent.name"] == "inner"
