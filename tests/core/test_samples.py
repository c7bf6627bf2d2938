"""Medians, percentiles and intervals, each against a count made by brute force."""

from fractions import Fraction
from itertools import product
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.core.samples import Z_95, median, median_interval, nearest_rank, wilson

values = st.lists(st.integers(-1000, 1000), min_size=1, max_size=60)


@given(values)
def test_as_many_samples_lie_above_the_median_as_below(found):
    """Half of the samples at most lie on either side of it."""
    middle = median(found)
    assert sum(value < middle for value in found) <= len(found) / 2
    assert sum(value > middle for value in found) <= len(found) / 2


@pytest.mark.parametrize("count", range(1, 13))
def test_the_interval_of_the_median_is_the_narrowest_that_all_ways_of_falling_allow(count):
    """Every way that samples can fall beside the true median is counted."""
    interval = median_interval(range(count))
    below = [sum(fall) for fall in product((0, 1), repeat=count)]

    def surely(rank):
        return Fraction(sum(rank < found < count - rank for found in below), len(below))

    possible = [rank for rank in range((count + 1) // 2) if surely(rank) >= Fraction(95, 100)]
    if not possible:
        assert interval is None
        assert count < 6
    else:
        assert interval == (max(possible), count - 1 - max(possible))


@given(values, st.integers(1, 100))
def test_a_percentile_is_the_smallest_sample_that_enough_do_not_exceed(found, percent):
    """Counted sample by sample."""
    enough = [
        value for value in found if 100 * sum(other <= value for other in found) >= percent * len(found)
    ]
    assert nearest_rank(found, percent) == min(enough)


@given(st.integers(1, 200).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_wilson_holds_exactly_the_shares_that_the_score_test_does_not_reject(trial):
    """A grid of shares is tested one by one."""
    passes, count = trial
    low, high = wilson(passes, count)
    for step in range(1, 400):
        share = step / 400
        distance = abs(passes / count - share)
        bound = Z_95 * sqrt(share * (1 - share) / count)
        if abs(distance - bound) > 1e-9:
            assert (distance < bound) == (low < share < high)


def test_nothing_says_nothing():
    """No sample has no median, and no trial no share."""
    assert median([]) is None
    assert median_interval([]) is None
    assert nearest_rank([], 95) is None
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("passes", "count"), [(-1, 3), (4, 3)])
def test_more_passes_than_trials_are_refused(passes, count):
    """A caller that counts wrongly hears of it."""
    with pytest.raises(ValueError, match=f"{passes} of {count}"):
        wilson(passes, count)
