"""Goal G12: exclusive time in pure Python, as a multiple of numpy's lexsort of the same rows.

Spans are turns of about a hundred, six deep, with parallel and detached children, in order of end, as a
processor writes them. Variants run interleaved in one process on thread CPU; a fixed loop timed beside
each of them cancels changes of the machine's speed; the figure is the median over rounds.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from turntrace.core.exclusive import exclusive_by_id

SIZES = {"1e5": 100_000, "1e6": 1_000_000}
SPANS_A_TURN = 100
MAX_DEPTH = 6
GOAL = 45.0


def turns(size: int, seed: int = 1) -> tuple[list[int], list[int], list[int]]:
    """Parent rows, starts and ends of ``size`` spans in order of end."""
    rng = random.Random(seed)
    parents: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    while len(starts) < size:
        first = len(starts)
        begun = first * 1_000_000
        rows = [(-1, begun, begun + 10_000_000, 1)]
        while len(rows) < min(SPANS_A_TURN, size - first):
            above = rng.randrange(len(rows))
            _, low, high, depth = rows[above]
            if depth < MAX_DEPTH and high - low > SPANS_A_TURN:
                start = rng.randrange(low, high)
                rows.append((above, start, start + rng.randrange(1, (high - low) // 2), depth + 1))
        written = sorted(range(len(rows)), key=lambda row: rows[row][2])
        place = {row: first + index for index, row in enumerate(written)}
        parents.extend(place.get(rows[row][0], -1) for row in written)
        starts.extend(rows[row][1] for row in written)
        ends.extend(rows[row][2] for row in written)
    return parents, starts, ends


def calibrated(call: Callable[[], object]) -> float:
    """Thread CPU of ``call`` in units of a fixed loop timed before and after it."""
    before = _loop_ns()
    started_ns = time.thread_time_ns()
    call()
    spent_ns = time.thread_time_ns() - started_ns
    return spent_ns / (before + _loop_ns())


def _loop_ns() -> int:
    started_ns = time.thread_time_ns()
    total = 0
    for number in range(100_000):
        total += number & 7
    return time.thread_time_ns() - started_ns


def ratio(size: int, rounds: int) -> float:
    """Exclusive time from 64-bit ids as a multiple of lexsort(start, parent) at ``size`` rows."""
    parents, starts, ends = turns(size)
    rng = random.Random(2)
    ids = [rng.getrandbits(64) for _ in range(size)]
    # Equal but not identical integers, as a reader of a file has them.
    parent_ids = [int(str(ids[parent])) if parent >= 0 else 0 for parent in parents]
    pure = partial(exclusive_by_id, ids, parent_ids, starts, ends)
    limit = partial(np.lexsort, (np.array(starts), np.array(parents)))
    times: dict[Callable[[], object], list[float]] = {pure: [], limit: []}
    for _ in range(rounds):
        for variant in rng.sample([pure, limit], 2):
            times[variant].append(calibrated(variant))
    return statistics.median(times[pure]) / statistics.median(times[limit])


def run(rounds: int) -> list[tuple[str, str, float, float]]:
    """Measure each size: (goal id, what, figure, goal)."""
    return [
        ("G12", f"pure-python from ids, {name} rows", ratio(size, rounds), GOAL)
        for name, size in SIZES.items()
    ]


if __name__ == "__main__":
    for goal_id, what, figure, goal in run(int(sys.argv[1]) if len(sys.argv) > 1 else 9):
        print(f"{goal_id} {what}: {figure:.1f}x of lexsort (goal {goal:g}x)")
