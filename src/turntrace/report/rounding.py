"""The only place that rounds: nanoseconds to printed figures whose columns add up.

A column is rounded by largest remainder: every figure is cut, and the last digits still missing from
the rounded sum go to the figures that lost most. So what is printed adds up to what is printed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = [
    "MILLISECONDS",
    "PERCENT",
    "SECONDS",
    "Unit",
    "apportion",
    "count_text",
    "percent_text",
    "percents",
    "quotient",
    "size_text",
    "unit_for",
]

PERCENT: Final = 1000
"""A whole, in the tenths of a percent that are printed."""

_SMALL_NS: Final = 50_000_000
_KILO: Final = 1000


def quotient(numerator: int, denominator: int) -> int:
    """The quotient of two integers, the second positive, rounded half up.

    >>> quotient(5, 2), quotient(4, 3)
    (3, 1)
    """
    return (2 * numerator + denominator) // (2 * denominator)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of time with three decimals; ``tick_ns`` is its last printed digit."""

    name: str
    tick_ns: int

    def ticks(self, ns: int) -> int:
        """``ns`` in last digits, rounded half up."""
        return quotient(ns, self.tick_ns)

    def text(self, ticks: int) -> str:
        """A figure from its last digits.

        >>> SECONDS.text(8420)
        '8.420'
        """
        whole, decimals = divmod(abs(ticks), _KILO)
        return f"{'-' if ticks < 0 else ''}{whole}.{decimals:03d}"

    def of(self, ns: int) -> str:
        """``ns`` as a figure that stands alone."""
        return self.text(self.ticks(ns))

    def with_name(self, ns: int) -> str:
        """``ns`` as a figure with its unit.

        >>> SECONDS.with_name(470_000_000)
        '0.470 s'
        """
        return f"{self.of(ns)} {self.name}"


SECONDS: Final = Unit("s", 1_000_000)
MILLISECONDS: Final = Unit("ms", 1_000)


def unit_for(wall_ns: int | None) -> Unit:
    """Seconds; milliseconds for a turn so short that seconds would print as zeros."""
    return MILLISECONDS if wall_ns is not None and wall_ns < _SMALL_NS else SECONDS


def apportion(values: Sequence[int], numerator: int, denominator: int, whole: int | None = None) -> list[int]:
    """The values times numerator / denominator as integers that add up to ``whole``.

    ``whole`` is the rounded sum unless given. A value of 0 stays 0.

    >>> apportion([5, 5, 5], 1, 10)
    [1, 1, 0]
    """
    scaled = [divmod(value * numerator, denominator) for value in values]
    if whole is None:
        whole = quotient(sum(values) * numerator, denominator)
    floors = [floor for floor, _ in scaled]
    missing = whole - sum(floors)
    largest_first = sorted(range(len(values)), key=lambda at: (-scaled[at][1], at))
    for at in largest_first[: max(missing, 0)]:
        floors[at] += 1
    return floors


def percents(values: Sequence[int], wall: int) -> list[int]:
    """The values, which add up to ``wall``, in tenths of a percent that add up to a whole."""
    return apportion(values, PERCENT, wall, PERCENT) if wall else [0] * len(values)


def percent_text(tenths: int) -> str:
    """A percentage without its sign.

    >>> percent_text(413)
    '41.3'
    """
    return f"{tenths // 10}.{tenths % 10}"


def count_text(count: int) -> str:
    """An integer with thousands separated.

    >>> count_text(18240)
    '18,240'
    """
    return f"{count:,}"


def size_text(size_bytes: int) -> str:
    """A size in bytes, kB, MB or GB (powers of 1000).

    >>> size_text(17_123), size_text(999_999)
    ('17 kB', '1 MB')
    """
    for name, power in (("bytes", 0), ("kB", 1), ("MB", 2)):
        amount = quotient(size_bytes, _KILO**power)
        if amount < _KILO:
            return f"{amount} {name}"
    return f"{quotient(size_bytes, _KILO**3)} GB"
