"""A function over sliding windows that forgets the last one."""

import random
from collections.abc import Callable
from typing import Any, Final

from turntrace.bench.variants import Attempt, Variant

__all__ = ["FACTS", "ORACLE", "TASK_CLASS", "calls", "reference", "variant"]

TASK_CLASS: Final = "fix"
FACTS: dict[str, Any] = {}
_MODULES: Final = ("series", "signal_data", "readings", "samples")
_NAMES: Final = ("windows", "runs", "spans", "stretches")
_BEST: Final = ("best", "highest", "peak")


def variant(seed: int) -> Variant:
    """The task of ``seed``."""
    draw = random.Random(f"fix-windows {seed}")  # noqa: S311 - a fixture, no secret
    module, name, best = draw.choice(_MODULES), draw.choice(_NAMES), draw.choice(_BEST)
    offset = draw.randrange(3, 90)
    path = f"{module}.py"

    def code(stop: str, start: str = "0") -> str:
        return f'''"""Sums over {name} of numbers."""

OFFSET = {offset}


def {name}_of(values, size):
    """Every run of ``size`` neighbours in ``values``, in order."""
    if size < 1:
        raise ValueError("size is too small")
    return [values[at : at + size] for at in range({start}, {stop})]


def {best}_sum(values, size):
    """The largest sum of a run, raised by OFFSET; None where no run fits."""
    sums = [sum(run) + OFFSET for run in {name}_of(values, size)]
    return max(sums) if sums else None
'''

    return Variant(
        prompt=(
            f"`{name}_of` in {path} leaves out a run that it should return, so `{best}_sum` is wrong for some "
            "lists as well. Mend it. Signatures, errors and everything else stay as they are."
        ),
        files={path: code("len(values) - size")},
        solution=Attempt(files={path: code("len(values) - size + 1")}),
        wrong={
            "runs-past-the-end": Attempt(files={path: code("len(values)")}),
            "skips-the-first": Attempt(files={path: code("len(values) - size + 1", "1")}),
        },
        facts={"module": module, "name": f"{name}_of", "best": f"{best}_sum", "offset": offset},
    )


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


ORACLE: Final[tuple[Callable[..., Any], ...]] = (calls, reference)
