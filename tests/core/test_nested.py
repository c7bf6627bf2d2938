"""Sub-agents of a turn as turns of their own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.core.model import Mark, Span, Turn, Usage, Warn
from turntrace.core.nested import nested_turns


def span(span_id, parent="root", *, start=0, end=10, **fields):
    """A span; with a run id it is a sub-agent."""
    defaults = {"name": span_id, "phase": None, **fields}
    return Span(span_id=span_id, parent_id=parent, start_ns=start, end_ns=end, **defaults)


def sub(span_id, parent="root", **fields):
    """A sub-agent whose run id is ``run-`` and its id."""
    return span(span_id, parent, run_id=f"run-{span_id}", agent=span_id, **fields)


def turn(*spans, **fields):
    """An outer turn."""
    return Turn(run_id="outer", span_id="root", spans=spans, started_ns=0, completed_ns=100, **fields)


def test_a_turn_without_sub_agents_holds_no_turn():
    """Spans alone make no nested turn."""
    assert list(nested_turns(turn(span("a"), span("b", "a")))) == []


def test_a_sub_agent_has_the_spans_below_it_and_a_window_of_its_own():
    """Its own spans, window, name, model, rounds, usage and marks; none of its siblings'."""
    outer = turn(
        sub("s", start=5, end=50),
        span("g", "s", phase="generation", model="m1", round=2, start=6),
        span("g2", "s", phase="generation", model="m2", start=7),
        span("t", "g", phase="tool_execution", tool="bash"),
        span("batch", "s", phase="tool_execution"),
        span("elsewhere", phase="generation", model="m9"),
        usage=(Usage(span_id="g"), Usage(span_id="elsewhere")),
        marks=(
            Mark(name="first_token", at_ns=7, span_id="g"),
            Mark(name="first_token", at_ns=1, span_id="elsewhere"),
        ),
        warnings=(Warn(code="w", message=""),),
        first_token_ns=1,
        model="m9",
        counters={"tool_calls": 9, "prefix_drift": 1},
    )
    [inner] = nested_turns(outer)
    assert [one.span_id for one in inner.spans] == ["g", "g2", "t", "batch"]
    assert (inner.run_id, inner.parent_run_id, inner.span_id) == ("run-s", "outer", "s")
    assert (inner.started_ns, inner.completed_ns, inner.status) == (5, 50, "ok")
    assert (inner.agent, inner.root_name, inner.model, inner.rounds) == ("s", "s", "m1", 2)
    assert inner.counters == {"model_requests": 2, "tool_calls": 1}
    assert [report.span_id for report in inner.usage] == ["g"]
    assert [mark.at_ns for mark in inner.marks] == [7]
    assert (inner.first_token_ns, inner.warnings, inner.events) == (None, (), ())


def test_a_call_that_reported_nothing_counts_below_the_sub_agent_itself():
    """A generation right under the sub-agent is a request even without usage; one inside a span is not."""
    [inner] = nested_turns(
        turn(sub("s"), span("a", "s", phase="generation"), span("b", "a", phase="generation"))
    )
    assert inner.counters["model_requests"] == 1


def test_turns_come_outer_before_inner_with_the_nearest_as_parent():
    """A sub-agent of a sub-agent belongs to both; its parent is the nearest."""
    outer = turn(
        sub("a", start=1), span("x", "a", start=2), sub("b", "x", start=3), span("y", "b"), sub("c", start=9)
    )
    found = {inner.run_id: inner for inner in nested_turns(outer)}
    assert list(found) == ["run-a", "run-b", "run-c"]
    assert {run: inner.parent_run_id for run, inner in found.items()} == {
        "run-a": "outer",
        "run-b": "run-a",
        "run-c": "outer",
    }
    assert [one.span_id for one in found["run-a"].spans] == ["x", "b", "y"]
    assert [one.span_id for one in found["run-b"].spans] == ["y"]
    assert found["run-c"].spans == ()
    assert found["run-c"].model is None
    assert found["run-c"].rounds == 0


@pytest.mark.parametrize(
    ("outcome", "status", "completed_ns"),
    [
        ("ok", "ok", 10),
        ("error", "error", 10),
        ("incomplete", "interrupted", None),
        ("cancelled", "cancelled", 10),
    ],
)
def test_the_outcome_of_the_sub_agent_is_the_status_of_its_turn(outcome, status, completed_ns):
    """One that never ended is interrupted and has no end."""
    [inner] = nested_turns(turn(sub("s", outcome=outcome)))
    assert (inner.status, inner.completed_ns) == (status, completed_ns)


def naive(spans, owner):
    """The ids below ``owner``, each chain walked by hand."""
    parents = {one.span_id: one.parent_id for one in spans}
    below = set()
    for start, parent in parents.items():
        at, seen = parent, {start}
        while at is not None and at not in seen and at != owner:
            seen.add(at)
            at = parents.get(at)
        if at == owner and start != owner:
            below.add(start)
    return below


@given(
    st.lists(
        st.tuples(st.sampled_from([None, "gone", *map(str, range(9))]), st.booleans()), min_size=0, max_size=9
    )
)
def test_each_sub_agent_has_exactly_what_lies_below_it(shape):
    """In any forest the spans of a nested turn are those whose chain of parents leads to its root."""
    spans = [
        sub(str(row), parent) if is_agent else span(str(row), parent)
        for row, (parent, is_agent) in enumerate(shape)
        if parent is None or not parent.isdigit() or int(parent) < row
    ]
    for inner in nested_turns(turn(*spans)):
        assert {one.span_id for one in inner.spans} == naive(spans, inner.span_id)


def test_a_cycle_of_parents_ends():
    """Spans and sub-agents that are each other's parents neither hang the reader nor lose the others."""
    looped = turn(span("a", "b"), span("b", "a"), sub("s"), span("x", "s"), span("y", "a"))
    [inner] = nested_turns(looped)
    assert [one.span_id for one in inner.spans] == ["x"]
