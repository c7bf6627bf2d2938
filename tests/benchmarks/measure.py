"""How the figures are taken: one process a variant, shuffled order, a calibration loop beside each chunk.

A figure is the median over rounds of (thread CPU of the variant / CPU of the loop beside it), so that the
speed of a shared machine cancels. Ratios carry over to other machines; nanoseconds do not.
"""

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

__all__ = ["calibrated_ns", "interleaved", "loop_ns"]

_LOOP = 20_000


def loop_ns() -> int:
    """Thread CPU of a fixed pure-Python loop, in ns."""
    start_ns = time.thread_time_ns()
    total = 0
    for number in range(_LOOP):
        total += number & 7
    return time.thread_time_ns() - start_ns


def calibrated_ns(work: Callable[[], None], per: int, chunks: int = 15) -> float:
    """Median over chunks of work's thread CPU per item, in units of the loop beside it."""
    ratios = []
    for _ in range(chunks):
        before = loop_ns()
        start_ns = time.thread_time_ns()
        work()
        spent_ns = time.thread_time_ns() - start_ns
        ratios.append(spent_ns / per / ((before + loop_ns()) / 2))
    return statistics.median(ratios)


def interleaved(script: Path, variants: Sequence[str], rounds: int) -> Mapping[str, float]:
    """Each variant's median figure in ns: ``script VARIANT`` prints its calibrated figure as JSON."""
    figures: dict[str, list[float]] = {variant: [] for variant in variants}
    loops = []
    for _ in range(rounds):
        for variant in random.sample(list(variants), len(variants)):
            loops.append(loop_ns())
            done = subprocess.run(
                [sys.executable, str(script), variant], check=True, capture_output=True, text=True
            )
            figures[variant].append(json.loads(done.stdout.splitlines()[-1]))
    loop = statistics.median(loops)
    return {variant: statistics.median(found) * loop for variant, found in figures.items()}
