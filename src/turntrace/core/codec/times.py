"""Times and durations as the contract spells them: RFC 3339 text and milliseconds with three decimals.

Nanoseconds are integers since the Unix epoch. Text holds every one of them; milliseconds are cut to
whole microseconds when written and read back to the nearest nanosecond.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Final

__all__ = [
    "MAX_TIME_NS",
    "MIN_TIME_NS",
    "ZERO_TIME_NS",
    "format_time",
    "ms",
    "ms_to_ns",
    "parse_time",
    "parse_time_compat",
    "thousandths",
]

MIN_TIME_NS: Final = -(2**63)
MAX_TIME_NS: Final = 2**64 - 1
"""What an integer of a line can hold: the years 1677 to 2554."""

ZERO_TIME_NS: Final = -62_135_596_800_000_000_000
"""Go's zero time, 0001-01-01T00:00:00Z, which its writer prints as an empty string."""

_SECOND_NS: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAYS: Final = 719_163
_DAY_S: Final = 86_400
_DAYS_400_YEARS: Final = 146_097
_EXACT_MS: Final = 1e8  # below it a float product with 1e6 is off by far less than half a nanosecond

_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_GO: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)


def format_time(time_ns: int | None) -> str:
    """The RFC 3339 text of a time in ns, UTC, trailing zeros removed; empty for None.

    >>> format_time(1_772_366_400_420_000_000)
    '2026-03-01T12:00:00.42Z'

    Raises:
        OverflowError: for a time outside the years 1 to 9999.
    """
    if time_ns is None:
        return ""
    seconds, fraction_ns = divmod(time_ns, _SECOND_NS)
    if not fraction_ns:
        return _second(seconds) + "Z"
    return f"{_second(seconds)}.{fraction_ns:09d}".rstrip("0") + "Z"


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]


def parse_time(text: str) -> int | None:
    """The time in ns of an RFC 3339 text, lower-case ``t`` and ``z`` included; None for anything else.

    >>> parse_time("1970-01-01t00:00:01.5z")
    1500000000

    Source: RFC 3339, section 5.6. Digits below a nanosecond are cut.
    """
    match = _RFC3339.fullmatch(text)
    time_ns = None if match is None else _match_ns(match, offset_fits=_rfc3339_offset)
    return time_ns if time_ns is not None and MIN_TIME_NS <= time_ns <= MAX_TIME_NS else None


def parse_time_compat(text: str) -> int | None:
    """The time in ns that Go's ``time.Parse(time.RFC3339Nano, text)`` returns, None where it fails.

    It also takes a one-digit hour, a decimal comma and offsets up to 24:60; its zero time is None here.

    Source: Go's package time, functions parse and parseNanoseconds.
    """
    match = _GO.fullmatch(text)
    time_ns = None if match is None else _match_ns(match, offset_fits=_go_offset)
    return None if time_ns == ZERO_TIME_NS else time_ns


def _rfc3339_offset(hours: int, minutes: int) -> bool:
    return hours <= 23 and minutes <= 59  # noqa: PLR2004 - the clock's own numbers


def _go_offset(hours: int, minutes: int) -> bool:
    return hours <= 24 and minutes <= 60  # noqa: PLR2004 - Go's range test is one too wide


def _match_ns(match: re.Match[str], offset_fits: Callable[[int, int], bool]) -> int | None:
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    days = _days(year, month, day)
    sign, hours, minutes = match.group(8) or "+", int(match.group(9) or 0), int(match.group(10) or 0)
    if days is None or hour > 23 or minute > 59 or second > 59 or not offset_fits(hours, minutes):  # noqa: PLR2004 - the clock's own numbers
        return None
    offset_s = (hours * 60 + minutes) * 60
    clock_s = (hour * 60 + minute) * 60 + second - (offset_s if sign == "+" else -offset_s)
    fraction_ns = int((match.group(7) or "")[:9].ljust(9, "0"))
    return (days * _DAY_S + clock_s) * _SECOND_NS + fraction_ns


def _days(year: int, month: int, day: int) -> int | None:
    shift = 0 if year else 400  # the calendar repeats after 400 years; Python's has no year 0
    try:
        ordinal = date(year + shift, month, day).toordinal()
    except ValueError:
        return None
    return ordinal - _EPOCH_DAYS - (_DAYS_400_YEARS if shift else 0)


def ms(duration_ns: int) -> int | float:
    """Milliseconds of ``duration_ns``, cut to whole microseconds; an int where there is no fraction.

    >>> ms(1_001_999), ms(100_000_000)
    (1.001, 100)
    """
    us = duration_ns // 1000 if duration_ns >= 0 else -(-duration_ns // 1000)
    whole, rest = divmod(us, 1000)
    return us / 1000 if rest else whole


def ms_to_ns(value_ms: float) -> int | None:
    """The nearest nanosecond to ``value_ms`` as it is written in decimal; None when it is not finite.

    >>> ms_to_ns(1.001)
    1001000
    """
    if isinstance(value_ms, int):
        return value_ms * 1_000_000
    if not isfinite(value_ms):
        return None
    if -_EXACT_MS < value_ms < _EXACT_MS:
        return round(value_ms * 1e6)
    return round(Decimal(repr(value_ms)).scaleb(6))


def thousandths(part: int, whole: int) -> int | float:
    """``part / whole`` rounded half up to three decimals; an int where there is no fraction.

    >>> thousandths(1, 3), thousandths(5, 5)
    (0.333, 1)
    """
    count = (2000 * part + whole) // (2 * whole)
    return count / 1000 if count % 1000 else count // 1000
