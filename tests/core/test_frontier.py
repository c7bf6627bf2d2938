"""How rounding is settled in the wall shares; the rule itself is counted in test_attribution_count."""

from core.forests import make
from turntrace.core.attribution import attribute


def shares(*spans, end=100):
    result = attribute(spans, started_ns=0, completed_ns=end, root_id="root")
    return {times.span.span_id: times.wall_share_ns for times in result.spans}


def test_what_rounding_takes_is_handed_out_in_order():
    """One nanosecond each, by start, then id."""
    spans = [make("c", 0, 11), make("b", 0, 11), make("a", 1, 11)]
    assert shares(*spans) == {"b": 4, "c": 4, "a": 3}


def test_a_boundary_of_structure_is_none_for_phases():
    """Structure that starts or ends inside a shared stretch does not change who gets what."""
    spans = [make("a", 0, 5), make("b", 5, 8), make("c", 5, 8), make("d", 5, 8)]
    expected = {"a": 5, "b": 1, "c": 1, "d": 1}
    assert shares(*spans) == expected
    assert shares(*spans, make("z", 6, 7, phase=None)) == {**expected, "z": 0}


def test_a_span_that_was_never_in_the_frontier_gets_nothing():
    """A parent that is covered from its first instant on has no part in the rounding either."""
    covered = make("a", 0, 4)
    children = [make(name, 0, 4, parent="a") for name in "bcd"]
    assert shares(covered, *children) == {"a": 0, "b": 2, "c": 1, "d": 1}


def test_neighbours_are_found_across_a_large_turn():
    """Spans far apart in the order of visit still hide their ancestors, and nothing else."""
    many = [make(f"b{number:05d}", 90, 90, parent="a") for number in range(3_000)]
    far = make("c", 20, 80, parent="a")
    assert {key: ns for key, ns in shares(make("a", 0, 100), *many, far).items() if ns} == {"a": 40, "c": 60}
