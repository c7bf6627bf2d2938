"""Files that can be read at once, each with one fact; the answer needs every one of them."""

import random
import re
from collections.abc import Callable
from typing import Any, Final

from turntrace.bench.tasks import ParallelProbe
from turntrace.bench.variants import Attempt, Variant

__all__ = ["FACTS", "ORACLE", "TASK_CLASS", "answer", "variant"]

TASK_CLASS: Final = "parallel"
FACTS: dict[str, Any] = {}
_PLACES: Final = ("aarhus", "bergen", "cadiz", "delft", "evora", "fulda", "ghent", "hilo", "izmir", "jena")
_FILES: Final = 6


def variant(seed: int) -> Variant:
    """The task of ``seed``."""
    draw = random.Random(f"parallel-ledgers {seed}")  # noqa: S311 - a fixture, no secret
    places = sorted(draw.sample(_PLACES, _FILES))
    totals = [draw.randrange(1000, 9000) for _ in places]
    marks = ["".join(draw.choices("bcdfghjkmnpqrstvwxz", k=5)) for _ in places]
    files = {
        f"ledgers/{place}.txt": _ledger(draw, total, mark)
        for place, total, mark in zip(places, totals, marks, strict=True)
    }
    right = {"sum": sum(totals), "marks": "-".join(marks)}
    return Variant(
        prompt=(
            "Each file in ledgers/ has one line that begins with `settled` and one that begins with `mark`. The files "
            "do not depend on each other: read them at the same time. End with two lines: `sum:` with the sum of all "
            "settled numbers, `marks:` with the marks joined by dashes in the order of the file names."
        ),
        files=files,
        solution=Attempt(answer=_words(right)),
        wrong={
            "left-one-out": Attempt(answer=_words({"sum": sum(totals[:-1]), "marks": "-".join(marks[:-1])})),
            "in-another-order": Attempt(answer=_words({**right, "marks": "-".join(reversed(marks))})),
        },
        facts=right,
        probe=ParallelProbe(),
    )


def _words(found: dict[str, Any]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in found.items()) + "\n"


def _ledger(draw: random.Random, total: int, mark: str) -> str:
    """Rows before and after the facts, so that neither the first nor the last lines are enough."""
    rows = [
        f"row {number} unsettled {draw.randrange(1000, 9000)}" for number in range(draw.randrange(60, 120))
    ]
    rows.insert(draw.randrange(15, 45), f"settled {total}")
    rows.insert(draw.randrange(15, 45), f"mark {mark}")
    return "\n".join(rows) + "\n"


def answer(text: str) -> list[str]:
    """What is wrong with the last two lines of the answer."""
    faults = []
    for key, right in FACTS.items():
        said = re.findall(
            rf"^[ \t*`>]*{key}[`*]*[ \t]*:[ \t`*]*([^\s`*]+)", text, re.MULTILINE | re.IGNORECASE
        )
        if not said:
            faults.append(f"no line says {key}")
        elif said[-1] != str(right) or len(set(said)) > 1:
            faults.append(f"{key} is another")
    return faults


ORACLE: Final[tuple[Callable[..., Any], ...]] = (answer,)
