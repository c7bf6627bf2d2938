"""Written by turntrace from the template fix-windows, seed 1; change the template instead."""

import ast
import random
import re
from typing import Any

FACTS = {'module': 'signal_data', 'name': 'runs_of', 'best': 'peak_sum', 'offset': 66}


def calls(seed: int) -> list[tuple[str, list[Any]]]:
    """Edges first, then lists and sizes drawn from the run's seed."""
    draw = random.Random(seed)  # noqa: S311 - inputs, no secret
    inputs: list[tuple[list[int], int]] = [
        ([], 1),
        ([5], 1),
        ([1, 2], 3),
        ([3, 1], 0),
        ([3, 1], -1),
        ([2, 9], 2),
    ]
    for _ in range(14):
        values = [draw.randrange(-50, 50) for _ in range(draw.randrange(1, 9))]
        inputs.append((values, draw.randrange(1, len(values) + 1)))
    names = (FACTS["name"], FACTS["best"])
    return [(f"{FACTS['module']}:{name}", [values, size]) for values, size in inputs for name in names]


def reference(name: str, values: list[int], size: int) -> Any:
    """What the mended functions return."""
    if size < 1:
        raise ValueError
    runs = []
    for at, _ in enumerate(values):
        if at + size <= len(values):
            runs.append(values[at : at + size])
    if name == FACTS["name"]:
        return runs
    return max(map(sum, runs)) + FACTS["offset"] if runs else None
