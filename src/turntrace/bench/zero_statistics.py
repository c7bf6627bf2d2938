"""Numbers as the turn benchmark of Gitlawb/zero 0.8 computes them, its rounding before sorting included.

Kept so that a result of ours can stand beside one of zero's. Nothing of ours is computed with this.
Source: the harness of Gitlawb/zero 0.8, measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, trunc

__all__ = ["ZeroSummary", "round_2", "zero_summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroSummary:
    """Milliseconds. ``samples`` are rounded and sorted, None of none; then every figure is 0."""

    samples: tuple[float, ...] | None = None
    min: float = 0.0
    median: float = 0.0
    average: float = 0.0
    p95: float = 0.0
    max: float = 0.0


def round_2(value: float) -> float:
    """Two decimals, half away from zero on the product with 100, as Go's math.Round does.

    >>> round_2(1.005), round_2(2.675), round_2(-0.005)
    (1.0, 2.68, -0.01)
    """
    scaled = value * 100
    whole = trunc(scaled)
    if abs(scaled - whole) >= 0.5:  # noqa: PLR2004 - one half is what rounding is about
        whole += int(copysign(1, scaled))
    return whole / 100


def zero_summary(values: Sequence[float]) -> ZeroSummary:
    """The samples of one class or span, in milliseconds.

    >>> zero_summary([0.005, 0.015, 0.025]).median
    0.02
    """
    if not values:
        return ZeroSummary()
    samples = tuple(sorted(map(round_2, values)))
    count = len(samples)
    middle = count // 2
    even = round_2((samples[middle - 1] + samples[middle]) / 2)
    return ZeroSummary(
        samples=samples,
        min=samples[0],
        median=samples[middle] if count % 2 else even,
        average=round_2(sum(samples) / count),
        p95=samples[-(-95 * count // 100) - 1],
        max=samples[-1],
    )
