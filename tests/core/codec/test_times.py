"""RFC 3339 text and contract milliseconds to integer nanoseconds and back."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turntrace.core.codec.times import (
    MAX_TIME_NS,
    MIN_TIME_NS,
    format_time,
    ms,
    ms_to_ns,
    parse_time,
    parse_time_compat,
    thousandths,
)

NOON_NS = 1_772_366_400_000_000_000


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (NOON_NS, "2026-03-01T12:00:00Z"),
        (NOON_NS + 420_000_000, "2026-03-01T12:00:00.42Z"),
        (NOON_NS + 1, "2026-03-01T12:00:00.000000001Z"),
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (MIN_TIME_NS, "1677-09-21T00:12:43.145224192Z"),
        (MAX_TIME_NS, "2554-07-21T23:34:33.709551615Z"),
        (None, ""),
    ],
)
def test_format_time(time_ns, text):
    """UTC with Z, up to nine digits, trailing zeros removed; the unknown time is empty."""
    assert text == format_time(time_ns)


def test_format_time_ends_with_the_year_9999():
    """A time that four digits of a year cannot hold is an error of the caller."""
    with pytest.raises(OverflowError):
        format_time(10**21)


@given(st.integers(MIN_TIME_NS, MAX_TIME_NS))
@example(MIN_TIME_NS)
@example(MAX_TIME_NS)
def test_every_time_survives(time_ns):
    """Text holds every nanosecond, for both readers."""
    assert time_ns == parse_time(format_time(time_ns)) == parse_time_compat(format_time(time_ns))


@given(st.datetimes(datetime(1700, 1, 1), datetime(2500, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - hypothesis wants naive bounds
def test_the_calendar_is_the_usual_one(moment):
    """Text is read as the standard library reads it."""
    elapsed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    expected = (elapsed.days * 86_400 + elapsed.seconds) * 10**9 + elapsed.microseconds * 1000
    assert expected == parse_time(moment.isoformat())


@pytest.mark.parametrize(
    ("text", "ours", "zero"),
    [
        ("2026-03-01T12:00:00Z", NOON_NS, NOON_NS),
        ("2026-03-01T13:30:00+01:30", NOON_NS, NOON_NS),
        ("2026-03-01T00:01:00-11:59", NOON_NS, NOON_NS),
        ("2026-03-01T12:00:00.1234567899Z", NOON_NS + 123_456_789, NOON_NS + 123_456_789),
        ("2026-03-01t12:00:00z", NOON_NS, None),
        ("2026-03-01T12:00:00,5Z", None, NOON_NS + 500_000_000),
        ("2026-03-01T2:00:00Z", None, NOON_NS - 36_000_000_000_000),
        ("2026-03-02T12:00:00+24:00", None, NOON_NS),
        ("2026-03-01T13:00:00+00:60", None, NOON_NS),
        ("2026-03-01T12:00:00+24:61", None, None),
        ("2026-03-01T12:00:00+25:00", None, None),
        ("2026-03-01T24:00:00Z", None, None),
        ("2026-03-01T12:60:00Z", None, None),
        ("2026-03-01T12:00:60Z", None, None),
        ("2026-02-29T12:00:00Z", None, None),
        ("2026-13-01T12:00:00Z", None, None),
        ("2026-03-01 12:00:00Z", None, None),
        ("2026-03-01T12:00:00", None, None),
        ("2026-03-01T12:00:00+0530", None, None),
        ("2026-03-01T12:00:00.Z", None, None),
        ("2026-03-01T12:00:00Z\n", None, None),
        ("٢٠٢٦-03-01T12:00:00Z", None, None),
        ("", None, None),
        ("0001-01-01T00:00:00Z", None, None),
        ("0000-02-29T00:00:00Z", None, -62_162_121_600_000_000_000),
        ("9999-12-31T23:59:59Z", None, 253_402_300_799_000_000_000),
    ],
)
def test_what_is_a_time(text, ours, zero):
    """RFC 3339 with small letters is a time for us; for zero what Go takes, whose zero time is unknown."""
    assert ours == parse_time(text)
    assert zero == parse_time_compat(text)


@pytest.mark.parametrize(
    ("duration_ns", "value"),
    [
        (0, 0),
        (999, 0),
        (1_000, 0.001),
        (1_001_999, 1.001),
        (100_000_000, 100),
        (-1_500, -0.001),
        (-999, 0),
        (10**18 + 1_000, 1e12 + 0.001),
    ],
)
def test_ms(duration_ns, value):
    """Milliseconds are cut to whole microseconds towards zero, and integers where they can be."""
    assert value == ms(duration_ns)
    assert isinstance(ms(duration_ns), int) == isinstance(value, int)


@given(st.decimals(-(10**12), 10**12, places=3))
@example(Decimal("1.001"))
@example(Decimal("50.003"))
def test_three_decimals_are_read_exactly(value):
    """The nearest nanosecond to what is written, however large: no microsecond is lost."""
    assert int(value * 1_000_000) == ms_to_ns(float(value))


def test_ms_to_ns_of_other_numbers():
    """Integers are exact; what is no finite number has no length."""
    assert ms_to_ns(9_007_199_254_740_993) == 9_007_199_254_740_993_000_000
    assert [ms_to_ns(float(text)) for text in ("nan", "inf", "-inf")] == [None, None, None]
    assert ms_to_ns(0.0000014) == 1


@pytest.mark.parametrize(
    ("part", "whole", "value"),
    [(1, 3, 0.333), (2, 3, 0.667), (1, 2000, 0.001), (999, 2_000_000, 0), (5, 5, 1), (0, 7, 0)],
)
def test_thousandths(part, whole, value):
    """Ratios have three decimals, rounded half up."""
    assert value == thousandths(part, whole)
    assert isinstance(thousandths(part, whole), int) == isinstance(value, int)
