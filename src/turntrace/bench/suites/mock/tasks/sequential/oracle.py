"""What total(values) of ledger.py has to return."""

import random
from typing import Any


def calls(seed: int) -> list[tuple[str, list[Any]]]:
    """The edges, then lists drawn from the run's seed."""
    draw = random.Random(seed)  # noqa: S311 - inputs, no secret
    inputs: list[list[int]] = [[], [0], [7], [-3, 3]]
    inputs += [[draw.randrange(-99, 99) for _ in range(draw.randrange(1, 9))] for _ in range(20)]
    return [("ledger:total", [values]) for values in inputs]


def reference(name: str, values: list[int]) -> Any:
    """The sum."""
    del name
    return sum(values)
