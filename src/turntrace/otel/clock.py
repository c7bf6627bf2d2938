"""Two clocks and the one subtraction between them.

A turn's time is monotonic, anchored to the wall clock at its opening, so that a stepped clock never
yields a negative or huge span.
"""

import time
from typing import Final, Protocol

__all__ = ["SKEW_FLOOR_NS", "Clock", "SystemClock", "TurnClock"]

SKEW_FLOOR_NS: Final = 1_000_000
"""Differences below a millisecond are reading noise, not a stepped clock."""


class Clock(Protocol):
    """The process's clocks, in nanoseconds."""

    def wall_ns(self) -> int:
        """Time since the Unix epoch; may step."""
        ...

    def monotonic_ns(self) -> int:
        """Time since some start; never steps."""
        ...


class SystemClock:
    """The real clocks."""

    __slots__ = ()

    wall_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)


class TurnClock:
    """Monotonic time on the wall clock's scale as it was when the turn opened."""

    __slots__ = ("_clock", "anchor_ns")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.anchor_ns = clock.wall_ns() - clock.monotonic_ns()

    def now_ns(self) -> int:
        """Epoch nanoseconds that never step."""
        return self._clock.monotonic_ns() + self.anchor_ns

    def corrected(self, wall_ns: int) -> int:
        """A stamp just taken from the wall clock, moved onto this clock's scale."""
        skew_ns = self._clock.wall_ns() - self._clock.monotonic_ns() - self.anchor_ns
        return wall_ns - skew_ns if not -SKEW_FLOOR_NS < skew_ns < SKEW_FLOOR_NS else wall_ns
