"""Two lots of turns beside each other: medians, counts, differences."""

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from report.random_turns import turns
from report.turns import MS, START_NS, example, span, turn
from turntrace.core.attribution import attributed
from turntrace.core.beside import beside
from turntrace.core.model import Usage


def pairs(*records):
    """Turns with their attribution."""
    return [(record, attributed(record)) for record in records]


def rows(found):
    """Medians in ms by name and tool."""
    return {(row.name, row.tool): (row.a.median, row.b.median) for row in found.phases}


def plans(*lengths, **more):
    """Turns of 100 ms, each with a plan of so many ms."""
    return pairs(*(turn([span("p", "plan", 0, length)], 100, **more) for length in lengths))


def test_medians_counts_and_differences():
    """The nearest-rank median of each side; b less a."""
    found = beside(plans(10, 20, 60), plans(40, 30))
    [plan] = found.phases
    assert (plan.a.median, plan.b.median, plan.difference) == (20 * MS, 30 * MS, 10 * MS)
    assert (plan.a.calls, plan.b.calls, plan.a.turns, plan.b.turns) == (3, 2, 3, 2)
    assert (found.a_turns, found.a_ended, found.b_turns, found.b_ended) == (3, 3, 2, 2)
    assert found.wall.difference == 0
    assert found.unattributed.a.median == 80 * MS


def test_a_phase_of_one_side_counts_with_zero_on_the_other():
    """A turn without a phase spent no time in it; a side without turns knows nothing."""
    compaction = pairs(turn([span("c", "compaction", 0, 10)], 100))
    found = beside(plans(10), compaction)
    assert rows(found) == {("plan", None): (10 * MS, 0), ("compaction", None): (0, 10 * MS)}
    [only] = beside([], plans(10)).phases
    assert (only.a.median, only.difference, only.a.turns) == (None, None, 0)


def test_tools_follow_their_phase_the_largest_first():
    """Tools are rows below tool_execution; calls without a name are in the phase alone."""
    found = beside(pairs(example()), pairs(example()))
    names = [(row.name, row.tool) for row in found.phases]
    at = names.index(("tool_execution", None))
    assert names[at + 1 : at + 4] == [("tool_execution", tool) for tool in ("search", "fetch", "edit")]
    assert names[0] == ("generation", None)


def test_turns_without_an_end_are_in_no_median():
    """They are counted, and their counters are."""
    torn = dataclasses.replace(example(), completed_ns=None)
    found = beside(pairs(torn, example()), pairs(torn))
    assert (found.a_turns, found.a_ended, found.b_ended) == (2, 1, 0)
    assert (found.wall.a.median, found.wall.b.median) == (8420 * MS, None)
    assert found.counts[0].b.median == 4


def test_unknown_is_left_out_and_never_zero():
    """Tokens and moments that no turn tells are None; where some do, the median is theirs."""
    told = turn(
        [span("g", "generation", 0, 5)],
        10,
        usage=(Usage(span_id="g", input_tokens=7, output_tokens=1),),
        counters={"model_requests": 1},
        first_token_ns=START_NS + 3,
    )
    found = beside(pairs(told, turn([], 10)), pairs(turn([], 10)))
    counts = {row.name: row for row in found.counts}
    assert (counts["input_tokens"].a.median, counts["input_tokens"].a.turns) == (7, 1)
    assert (counts["input_tokens"].b.median, counts["input_tokens"].difference) == (None, None)
    assert (found.first_token.a.median, found.first_token.b.median) == (3, None)


@settings(max_examples=60, deadline=None)
@given(st.lists(turns(), max_size=4), st.lists(turns(), max_size=4))
def test_swapping_the_sides_turns_the_signs(left, right):
    """What b has more than a, a has less than b; a side beside itself differs in nothing."""
    one, other = beside(pairs(*left), pairs(*right)), beside(pairs(*right), pairs(*left))
    assert {(row.name, row.tool): row.difference for row in one.phases} == {
        (row.name, row.tool): None if row.difference is None else -row.difference for row in other.phases
    }
    same = beside(pairs(*left), pairs(*left))
    assert all(row.difference in {0, None} for row in (*same.phases, *same.counts, same.wall, same.active))
