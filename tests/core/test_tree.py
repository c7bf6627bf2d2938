"""From ids to rows: parents, cycles, duplicates, order and the structure rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.forests import forests, make
from turntrace.core.tree import grow, lasts, on_cycles, preorder

parent_rows = st.integers(1, 9).flatmap(
    lambda size: st.lists(st.integers(-1, size - 1), min_size=size, max_size=size)
)


def ancestors(parents, row):
    found = []
    while (row := parents[row]) >= 0 and row not in found:
        found.append(row)
    return found


@given(parent_rows)
def test_cycles_are_rows_above_themselves(parents):
    """Exactly the rows that are their own ancestors are on a cycle."""
    expected = [row for row in range(len(parents)) if row in ancestors(parents, row)]
    assert on_cycles(parents) == expected


@given(parent_rows)
def test_preorder_reaches_what_hangs_on_no_cycle(parents):
    """A visit has every row that leads to the top level once, parents first, subtrees in one stretch."""
    order = preorder(parents)
    on_cycle = set(on_cycles(parents))
    reachable = [row for row in range(len(parents)) if not on_cycle & {row, *ancestors(parents, row)}]
    assert sorted(order) == reachable
    if len(order) == len(parents):
        positions = [order.index(row) for row in range(len(parents))]
        last = lasts(order, parents, positions)
        for row in order:
            below = {other for other in order if other == row or row in ancestors(parents, other)}
            assert set(order[positions[row] : last[row] + 1]) == below


@given(forests())
def test_rows_are_in_order_of_start_and_id(spans):
    """Rows are sorted by start, then id, and parents and phases follow them there."""
    forest = grow(spans)
    assert forest.spans == sorted(spans, key=lambda span: (span.start_ns, span.span_id))
    ids = [span.span_id for span in forest.spans]
    for span, parent in zip(forest.spans, forest.parents, strict=True):
        assert parent == (ids.index(span.parent_id) if span.parent_id in ids else -1)
    assert [forest.order[position] for position in forest.positions] == list(range(len(forest)))


def test_a_cycle_becomes_top_level():
    """Spans on a cycle hang on the root and are named; what is below them stays below them."""
    forest = grow(
        [
            make("a", 0, 9, parent="b"),
            make("b", 1, 9, parent="a"),
            make("c", 2, 9, parent="b"),
            make("d", 3, 9, parent="d"),
        ]
    )
    assert forest.parents == [-1, -1, 1, -1]
    assert forest.cyclic_ids == ["a", "b", "d"]
    assert sorted(forest.order) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("spans", "kept"),
    [
        ([make("a", 0, 5), make("a", 2, 9)], (2, 9)),
        ([make("a", 2, 9), make("a", 0, 9), make("a", 1, 9)], (0, 9)),
        ([make("a", 3, 1), make("a", 2, 2)], (3, 1)),
    ],
)
def test_of_two_spans_with_one_id_the_latest_end_counts(spans, kept):
    """The latest end, then the earliest start is kept, in whatever order they came."""
    for order in (spans, spans[::-1]):
        forest = grow(order)
        assert [(span.start_ns, span.end_ns) for span in forest.spans] == [kept]
        assert forest.duplicate_ids == ["a"]


def test_equal_twins_are_settled_without_regard_to_order():
    """Spans with one id and equal times give one result in both orders."""
    twins = [make("a", 0, 5, phase="plan"), make("a", 0, 5, phase="memory")]
    assert grow(twins).spans == grow(twins[::-1]).spans


def test_the_same_span_object_twice_is_one_span():
    """An identical span that came twice changes nothing."""
    span = make("a", 0, 5)
    assert grow([span, span]).spans == [span]


def test_other_with_children_is_structure():
    """A span that maps to no phase is `other` only as a leaf."""
    forest = grow(
        [
            make("a", 0, 9, phase="other"),
            make("b", 1, 9, parent="a", phase="other"),
            make("c", 2, 9, parent="b", phase=None),
            make("d", 3, 9, phase="other"),
        ]
    )
    assert forest.phases == [None, None, None, "other"]


def test_the_phase_above_is_seen_through_structure():
    """The phase parent is the nearest phase, however much structure lies between."""
    forest = grow(
        [
            make("a", 0, 9),
            make("b", 1, 9, parent="a", phase=None),
            make("c", 2, 9, parent="b", phase=None),
            make("d", 3, 9, parent="c"),
            make("e", 4, 9, phase=None),
            make("f", 5, 9, parent="e"),
        ]
    )
    assert forest.phase_parents == [-1, 0, 0, 0, -1, -1]


def test_no_spans_no_rows():
    """An empty turn has an empty forest."""
    assert len(grow([])) == 0
