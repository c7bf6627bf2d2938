"""Half-open intervals."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.core.intervals import clip, gaps, merge, union_ns

moments = st.integers(-5, 15)
intervals = st.lists(st.tuples(moments, moments), max_size=8)


def covered(spans):
    return {moment for start, end in spans for moment in range(start, end)}


@given(intervals)
def test_union_counts_every_instant_once(spans):
    """The union has as many instants as are covered."""
    assert union_ns(spans) == len(covered(spans))


@given(intervals)
def test_merged_intervals_do_not_touch(spans):
    """Merging gives the same instants in ascending stretches with room between them."""
    merged = list(merge(spans))
    assert covered(merged) == covered(spans)
    assert all(start < end for start, end in merged)
    assert all(left[1] < right[0] for left, right in pairwise(merged))


@given(intervals, moments, moments)
def test_gaps_are_the_rest_of_the_window(spans, low, high):
    """Gaps cover what the intervals leave of the window, in maximal stretches."""
    found = list(gaps((low, high), spans))
    assert covered(found) == set(range(low, high)) - covered(spans)
    assert all(left[1] < right[0] for left, right in pairwise(found))


@given(st.tuples(moments, moments), moments, moments)
def test_clip_is_the_intersection(interval, low, high):
    """A clipped interval holds the common instants and never runs backwards or leaves the window."""
    low, high = sorted((low, high))
    start, end = clip(interval, (low, high))
    assert low <= start <= end <= high
    assert covered([(start, end)]) == covered([interval]) & set(range(low, high))


@pytest.mark.parametrize(("interval", "expected"), [((3, 5), (3, 5)), ((5, 3), (5, 5))])
def test_clip_without_a_window(interval, expected):
    """Without a window only an end before its start is mended."""
    assert clip(interval, None) == expected
