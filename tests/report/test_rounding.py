"""Rounding: columns that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.report.rounding import (
    MILLISECONDS,
    SECONDS,
    apportion,
    count_text,
    percent_text,
    percents,
    quotient,
    size_text,
    unit_for,
)

times = st.lists(st.integers(0, 10**13), max_size=30)


@given(times)
def test_rounded_figures_add_up_to_the_rounded_sum(values):
    """Largest remainder: the sum of the ticks is the sum rounded half up, each figure off by less than one."""
    ticks = apportion(values, 1, SECONDS.tick_ns)
    assert sum(ticks) == SECONDS.ticks(sum(values))
    for value, tick in zip(values, ticks, strict=True):
        assert abs(tick * SECONDS.tick_ns - value) < SECONDS.tick_ns
        assert tick == 0 or value > 0


@given(st.lists(times, min_size=1, max_size=8))
def test_parts_of_a_rounded_figure_add_up_to_it(groups):
    """Children apportioned to their parent's figure add up to it, zeros stay zero."""
    parents = apportion([sum(group) for group in groups], 1, SECONDS.tick_ns)
    for parent, group in zip(parents, groups, strict=True):
        parts = apportion(group, 1, SECONDS.tick_ns, parent)
        assert sum(parts) == parent
        assert all(part == 0 for part, value in zip(parts, group, strict=True) if value == 0)


@given(times)
def test_percents_add_up_to_a_hundred(values):
    """The tenths of a percent add up to 1000 whenever there is a whole."""
    whole = sum(values)
    assert sum(percents(values, whole)) == (1000 if whole else 0)


def test_a_larger_remainder_wins_and_ties_go_to_the_first():
    """The last digit goes where most was cut."""
    assert apportion([4, 6], 1, 10) == [0, 1]
    assert apportion([5, 5], 1, 10) == [1, 0]


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.000"),
        (499_999, "0.000"),
        (500_000, "0.001"),
        (8_420_000_000, "8.420"),
        (-1_500_000_000, "-1.500"),
    ],
)
def test_seconds_have_three_decimals(ns, text):
    """Half a millisecond rounds up; an offset before the start has its sign."""
    assert SECONDS.of(ns) == text


def test_short_turns_are_shown_in_milliseconds():
    """Below 50 ms seconds would print as zeros; unknown walls are seconds."""
    assert unit_for(49_999_999) is MILLISECONDS
    assert unit_for(50_000_000) is SECONDS
    assert unit_for(None) is SECONDS
    assert MILLISECONDS.with_name(1_234_567) == "1.235 ms"


def test_small_texts():
    """Counts have separators, percents one decimal, sizes powers of 1000, halves round up."""
    assert count_text(1_234_567) == "1,234,567"
    assert percent_text(5) == "0.5"
    assert percent_text(1000) == "100.0"
    assert [size_text(n) for n in (0, 999, 1_000, 999_499, 999_500, 3_210_000_000)] == [
        "0 bytes",
        "999 bytes",
        "1 kB",
        "999 kB",
        "1 MB",
        "3 GB",
    ]
    assert [quotient(n, 4) for n in (1, 2, 3)] == [0, 1, 1]
