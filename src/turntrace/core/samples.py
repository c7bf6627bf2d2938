"""What a few samples say: the median and its interval, the 95th percentile, a share and its interval.

Every figure here is exact or refuses: an interval that so few samples cannot carry is None, never a guess.
"""

from collections.abc import Sequence
from math import ceil, comb, sqrt
from typing import Final, NamedTuple

__all__ = ["Z_95", "Interval", "median", "median_interval", "nearest_rank", "wilson"]

Z_95: Final = 1.959963984540054
"""The normal quantile of 97.5 %: an interval of 95 % leaves 2.5 % on either side."""


class Interval(NamedTuple):
    """Both ends belong to it."""

    low: float
    high: float


def median(values: Sequence[float]) -> float | None:
    """The middle value, the mean of the two middle ones where their number is even, None of none.

    >>> median([3, 1, 2]), median([4, 1, 2, 3]), median([])
    (2, 2.5, None)
    """
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(values: Sequence[float], *, confidence: float = 0.95) -> Interval | None:
    """The narrowest pair of samples, alike far from both ends, that holds the true median so surely.

    None where even the smallest and the largest do not: under 6 samples for 95 %. Nothing is assumed of
    the distribution but that samples are independent.

    Source: order-statistic interval of the median (sign test), David and Nagaraja, Order Statistics, 7.1.

    >>> median_interval([1, 2, 3, 4, 5, 6]), median_interval([1, 2, 3, 4, 5])
    (Interval(low=1, high=6), None)
    """
    count = len(values)
    ordered = sorted(values)
    outside = 0  # of the 2**count ways samples fall beside the median, those that put it beyond either end
    found = None
    for rank in range((count + 1) // 2):
        outside += 2 * comb(count, rank)
        if 1 - outside / 2**count < confidence:
            break
        found = Interval(ordered[rank], ordered[count - 1 - rank])
    return found


def nearest_rank(values: Sequence[float], percent: int) -> float | None:
    """The smallest sample that at least ``percent`` of 100 samples do not exceed, None of none.

    >>> nearest_rank(range(1, 21), 95), nearest_rank(range(1, 20), 95)
    (19, 19)
    """
    if not values:
        return None
    return sorted(values)[max(ceil(percent * len(values) / 100), 1) - 1]


def wilson(passes: int, count: int, *, z: float = Z_95) -> Interval | None:
    """The shares a binomial with ``passes`` of ``count`` is compatible with, None of no trials.

    Source: Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).

    >>> interval = wilson(3, 3)
    >>> round(interval.low, 3), interval.high
    (0.439, 1.0)

    Raises:
        ValueError: ``passes`` is below 0 or above ``count``.
    """
    if not 0 <= passes <= count:
        raise ValueError(f"{passes} of {count} is no count of passes")
    if count == 0:
        return None
    share = passes / count
    spread = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    center = share + z * z / (2 * count)
    scale = 1 + z * z / count
    low = 0.0 if passes == 0 else (center - spread) / scale
    high = 1.0 if passes == count else (center + spread) / scale
    return Interval(low, high)
