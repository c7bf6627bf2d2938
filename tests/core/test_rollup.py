"""Roll-ups by phase, tool and model."""

import pytest

from core.forests import make
from turntrace.core.attribution import attribute
from turntrace.core.rollup import nearest_rank


def turn(*spans, end=100):
    return attribute(spans, started_ns=0, completed_ns=end, root_id="root")


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([7], 50, 7), ([7], 95, 7), ([1, 2], 50, 1), ([1, 2, 3], 50, 2), (list(range(1, 21)), 95, 19)],
)
def test_nearest_rank_is_always_a_value(values, percent, expected):
    """The smallest value that at least so many percent do not exceed."""
    assert nearest_rank(values, percent) == expected


def test_tools_are_listed_inside_tool_execution():
    """By tool with the largest wall share first; a tool without a name is in the phase's sum only."""
    result = turn(
        make("a", 0, 10, phase="tool_execution", tool="fetch"),
        make("b", 10, 40, phase="tool_execution", tool="search"),
        make("c", 40, 45, phase="tool_execution", tool="fetch"),
        make("d", 45, 50, phase="tool_execution"),
    )
    (phase,) = result.phases
    assert phase.count == 4
    assert phase.wall_share_ns == 50
    assert [(part.name, part.count, part.wall_share_ns, part.exclusive_p50_ns) for part in phase.by] == [
        ("search", 1, 30, 30),
        ("fetch", 2, 15, 5),
    ]


def test_models_are_listed_inside_generation_only():
    """By model inside generation; other phases have no parts."""
    result = turn(
        make("a", 0, 10, model="m-2", tool="no"),
        make("b", 10, 20, model="m-1"),
        make("c", 20, 30, phase="embedding", model="m-1"),
    )
    assert {phase.name: [part.name for part in phase.by] for phase in result.phases} == {
        "generation": ["m-1", "m-2"],
        "embedding": [],
    }


def test_equal_shares_are_in_order_of_the_vocabulary():
    """Ties follow the vocabulary; names it lacks come last."""
    result = turn(
        make("a", 0, 10, phase="zebra"),
        make("b", 10, 20, phase="other"),
        make("c", 20, 30, phase="generation"),
        make("d", 30, 40, phase="prompt_build"),
        make("e", 40, 60, phase="memory"),
    )
    names = [phase.name for phase in result.phases]
    assert names == ["memory", "prompt_build", "generation", "other", "zebra"]
    assert list(result.max_concurrency) == ["prompt_build", "generation", "memory", "other", "zebra"]


def test_inclusive_time_counts_an_instant_once_busy_time_each_span():
    """Two tools at once: their union is inclusive, their sum is busy."""
    result = turn(make("a", 0, 60, phase="tool_execution"), make("b", 40, 100, phase="tool_execution"))
    (phase,) = result.phases
    assert (phase.inclusive_ns, phase.busy_ns, phase.wall_share_ns) == (100, 120, 100)
    assert result.parallelism == 1.2


def test_a_batch_and_its_call_are_not_two():
    """A span with a descendant of its own phase does not count as concurrent."""
    batch = make("a", 0, 100, phase="tool_execution")
    wrapper = make("w", 0, 90, parent="a", phase=None)
    first = make("b", 10, 50, parent="w", phase="tool_execution")
    second = make("c", 40, 80, parent="w", phase="tool_execution")
    assert turn(batch, wrapper, first).max_concurrency == {"tool_execution": 1}
    assert turn(batch, wrapper, first, second).max_concurrency == {"tool_execution": 2}


def test_spans_that_abut_are_not_concurrent():
    """Where one ends another may start."""
    assert turn(make("a", 0, 50), make("b", 50, 100)).max_concurrency == {"generation": 1}


def test_a_phase_outside_the_window_counts_but_takes_no_time():
    """Count is of spans; a span outside the window adds no time and was never active."""
    result = turn(make("a", -20, -10))
    (phase,) = result.phases
    assert (phase.count, phase.inclusive_ns, phase.busy_ns, phase.wall_share_ns) == (1, 0, 0, 0)
    assert result.max_concurrency == {"generation": 0}
