"""The two clocks and the subtraction between them."""

import time

import pytest

from otel.fakes import MS, START_NS, FakeClock
from turntrace.otel.clock import SystemClock, TurnClock


def test_a_turns_clock_goes_on_when_the_wall_clock_steps():
    """Time of a turn is wall time at its opening plus what passed on the monotonic clock."""
    clock = FakeClock()
    turn = TurnClock(clock)
    clock.step(3_600_000)
    clock.wait(5)
    assert turn.now_ns() == START_NS + 5 * MS


@pytest.mark.parametrize("step_ms", [-5000, -1, 1, 5000])
def test_a_stamp_of_a_stepped_clock_is_moved_back(step_ms):
    """A difference of a millisecond or more is taken off a stamp that was just read."""
    clock = FakeClock()
    turn = TurnClock(clock)
    clock.step(step_ms)
    assert turn.corrected(clock.wall_ns()) == START_NS


@pytest.mark.parametrize("step_ms", [-0.999999, 0, 0.999999])
def test_a_difference_below_a_millisecond_is_noise(step_ms):
    """Reading two clocks takes time; that is no step."""
    clock = FakeClock()
    turn = TurnClock(clock)
    clock.step(step_ms)
    assert turn.corrected(clock.wall_ns()) == clock.wall_ns()


def test_the_system_clock_is_the_systems():
    """Wall and monotonic time in nanoseconds."""
    clock = SystemClock()
    before = time.time_ns(), time.monotonic_ns()
    now = clock.wall_ns(), clock.monotonic_ns()
    after = time.time_ns(), time.monotonic_ns()
    assert all(early <= read <= late for early, read, late in zip(before, now, after, strict=True))
