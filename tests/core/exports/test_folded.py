"""Folded stacks: the grammar of flame graph tools, and weights that add up to busy time."""

import re

import pytest
from hypothesis import given, settings

from recorded_cases import PATHS, cases_of
from report.random_turns import turns
from report.turns import MS, example, hostile, span, turn
from turntrace.core.exports.folded import MAX_FRAMES, folded
from turntrace.core.model import Span, Turn
from turntrace.report.case import examine

LINE = re.compile(r"[^;\n]+(;[^;\n]+)* [1-9][0-9]*")
"""What flamegraph.pl and inferno read: frames joined by semicolons, a space, a count."""


def stacks(record):
    """The stacks of a turn."""
    case = examine(record)
    return dict(folded(case.turn, case.attribution))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_weights_add_up_to_busy_time(path):
    """To the nanosecond, for every recorded turn; each line is one that tools read."""
    for case in cases_of(path):
        lines = list(folded(case.turn, case.attribution))
        assert sum(weight for _, weight in lines) == case.attribution.busy_ns
        assert all(LINE.fullmatch(f"{stack} {weight}") for stack, weight in lines)


@settings(max_examples=200, deadline=None)
@given(turns())
def test_weights_of_any_turn_add_up_to_busy_time(record):
    """The same for random turns."""
    assert sum(stacks(record).values()) == examine(record).attribution.busy_ns


def test_the_example():
    """The agent at the root, a tool under its name, what runs inside below it."""
    found = stacks(example())
    assert found["demo-agent;generation"] == 3480 * MS
    assert found["demo-agent;generation;retry_wait"] == 1000 * MS
    assert found["demo-agent;edit;permission_wait"] == 1200 * MS
    assert next(iter(found)) == "demo-agent;generation"


def test_names_cannot_end_a_frame_or_a_line():
    """Semicolons, line ends and control characters of data are replaced; an empty name has a word."""
    assert all(LINE.fullmatch(f"{stack} {weight}") for stack, weight in stacks(hostile()).items())
    record = turn(
        [span("a", "tool_execution", 0, 1, tool="a;b\n"), span("b", "tool_execution", 1, 2, tool=";")], 2
    )
    assert set(stacks(record)) == {"demo-agent;a,b", "demo-agent;,"}
    blank = turn([span("a", "tool_execution", 0, 1, tool=" ")], 2)
    assert set(stacks(blank)) == {"demo-agent;unnamed"}


def test_a_deep_chain_is_cut_and_keeps_its_weight():
    """Depth costs no square: 3,000 levels, each stack of bounded length, the sum as it was."""
    spans = [
        Span(
            span_id=f"{n:016x}",
            parent_id=f"{n - 1:016x}" if n else "root",
            name="s",
            phase="plan",
            start_ns=n,
            end_ns=10_000 - n,
        )
        for n in range(3_000)
    ]
    record = Turn(run_id="r", spans=tuple(spans), span_id="root", started_ns=0, completed_ns=10_000)
    found = stacks(record)
    assert sum(found.values()) == examine(record).attribution.busy_ns
    assert max(stack.count(";") for stack in found) == MAX_FRAMES + 1
