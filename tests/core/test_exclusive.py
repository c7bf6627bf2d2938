"""Exclusive time over columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.forests import forests
from turntrace.core.exclusive import exclusive_by_id, exclusive_ns


def counted(parents, starts, ends):
    """Exclusive time instant by instant."""
    result = []
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        children = [other for other, parent in enumerate(parents) if parent == row]
        result.append(
            sum(
                not any(starts[child] <= moment < ends[child] for child in children)
                for moment in range(start, end)
            )
        )
    return result


@given(st.data())
def test_equals_a_count(data):
    """Each row has the instants in which it is active and none of its children is."""
    size = data.draw(st.integers(0, 9))
    moments = st.lists(st.integers(-4, 14), min_size=size, max_size=size)
    parents = [data.draw(st.integers(-1, size - 1)) for _ in range(size)]
    starts, ends = data.draw(moments), data.draw(moments)
    assert exclusive_ns(parents, starts, ends) == counted(parents, starts, ends)


@given(forests())
def test_ids_are_looked_up(spans):
    """From ids the result is that of the rows they stand for; unknown parents are none."""
    ids = [span.span_id for span in spans]
    rows = [ids.index(span.parent_id) if span.parent_id in ids else -1 for span in spans]
    starts, ends = [span.start_ns for span in spans], [span.end_ns for span in spans]
    by_id = exclusive_by_id(ids, [span.parent_id for span in spans], starts, ends)
    assert by_id == exclusive_ns(rows, starts, ends)


@pytest.mark.parametrize("ids", [[1, 2], [2**63, 2**64 - 1], ["a", "b"]])
def test_any_hashable_is_an_id(ids):
    """Ids may be 64-bit integers or text."""
    assert exclusive_by_id(ids, [0, ids[0]], [0, 2], [10, 5]) == [7, 3]


def test_columns_must_agree():
    """Columns of different lengths are a mistake of the caller."""
    with pytest.raises(ValueError, match=r"shorter|longer"):
        exclusive_by_id([1], [0], [0, 1], [1])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        exclusive_by_id([1, 2], [0, 0], [0], [1])


def test_touching_children_leave_nothing():
    """Children that abut cover their parent as one does."""
    assert exclusive_ns([-1, 0, 0], [0, 0, 4], [10, 4, 10]) == [0, 4, 6]
