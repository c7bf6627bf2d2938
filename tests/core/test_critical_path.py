"""The critical path on drawn cases; the rule itself is counted in test_attribution_count."""

import pytest

from core.forests import make
from turntrace.core.attribution import attribute


def path(spans, end, start=0):
    result = attribute(spans, started_ns=start, completed_ns=end, root_id="root")
    return [(part.span_id, part.start_ns, part.end_ns) for part in result.critical_path]


def test_phases_that_abut_are_all_on_the_path():
    """A child that ends where the next one starts is not lost."""
    assert path([make("a", 0, 40), make("b", 40, 100)], 100) == [("b", 40, 100), ("a", 0, 40)]


def test_the_root_has_what_lies_between():
    """Before, between and after its children the path is the root's own."""
    assert path([make("a", 10, 30), make("b", 50, 90)], 100) == [
        ("root", 90, 100),
        ("b", 50, 90),
        ("root", 30, 50),
        ("a", 10, 30),
        ("root", 0, 10),
    ]


def test_what_ran_beside_the_path_is_passed_over():
    """A child still running where a later-ending one started is not on the path."""
    spans = [make("a", 0, 20), make("fetch", 20, 70), make("search", 30, 90)]
    assert path(spans, 90) == [("search", 30, 90), ("root", 20, 30), ("a", 0, 20)]


def test_of_equal_ends_the_later_start_then_the_smaller_id_is_taken():
    """Ties are settled by start, then id."""
    assert path([make("a", 0, 10), make("b", 4, 10), make("c", 4, 10)], 10) == [
        ("b", 4, 10),
        ("root", 0, 4),
    ]


def test_structure_is_on_the_path():
    """The path runs over the full tree."""
    spans = [make("node", 0, 90, phase=None), make("tool", 10, 60, parent="node")]
    assert path(spans, 100) == [
        ("root", 90, 100),
        ("node", 60, 90),
        ("tool", 10, 60),
        ("node", 0, 10),
    ]


def test_a_child_is_cut_to_its_parent():
    """What a child did after its parent, or before it, is not on the parent's path."""
    spans = [make("a", 20, 50), make("late", 40, 80, parent="a"), make("early", 0, 10, parent="a")]
    assert path(spans, 60) == [
        ("root", 50, 60),
        ("late", 40, 50),
        ("a", 20, 40),
        ("root", 0, 20),
    ]


def test_a_child_outside_its_parent_takes_its_descendants_with_it():
    """Below an empty cut nothing is on the path, even if it overlaps the parent above."""
    spans = [
        make("a", 0, 50),
        make("late", 60, 80, parent="a"),
        make("below", 10, 30, parent="late"),
    ]
    assert path(spans, 100) == [("root", 50, 100), ("a", 0, 50)]


@pytest.mark.parametrize(("start", "end"), [(5, 5), (9, 5)])
def test_an_empty_window_has_no_path(start, end):
    """A window without length has no sections."""
    assert path([make("a", 0, 10)], end, start) == []
