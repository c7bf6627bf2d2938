"""``--fail-on``: what makes a finished benchmark a failed one. Unknown figures never satisfy a bound."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from turntrace.bench.results import Summary
from turntrace.errors import ConfigurationError

__all__ = ["FIGURES", "Gate", "gate_of"]

_UNITS: Final = {"": 1.0, "%": 0.01, "ms": 1e6, "s": 1e9}
_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_GATE: Final = re.compile(r"\s*([a-z_0-9]+)\s*(<=|>=|==|!=|<|>)\s*([0-9.]+)\s*(%|ms|s)?\s*")


def _rate(tier: str) -> Callable[[Summary], float | None]:
    def rate(found: Summary) -> float | None:
        one = next((one for one in found.tiers if one.tier == tier), None)
        return None if one is None or one.passes is None or not one.attempted else one.passes / one.attempted

    return rate


FIGURES: Final[Mapping[str, Callable[[Summary], float | None]]] = {
    "correctness": _rate("correctness"),
    "build": _rate("build"),
    "errored": lambda found: found.errored,
    "usage_incomplete": lambda found: found.usage_incomplete,
    "throttled": lambda found: found.throttled,
    "disturbed": lambda found: len(found.disturbed),
    "input_tokens": lambda found: found.input_tokens,
    "output_tokens": lambda found: found.output_tokens,
    "wall_p50": lambda found: found.wall.median_ns,
    "wall_max": lambda found: found.wall.max_ns,
}
"""What a gate may ask for. Rates are passes of runs, of one tier each; walls take ms or s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One bound, as it was written."""

    text: str
    figure: str
    operator: str
    bound: float

    def holds(self, found: Summary) -> str | None:
        """One line that says why the benchmark fails, None where it does not."""
        value = FIGURES[self.figure](found)
        if value is None:
            return f"{self.text}: {self.figure} is not known, so it cannot be held to a bound"
        return f"{self.text}: it is {value:g}" if _OPERATORS[self.operator](value, self.bound) else None


def gate_of(text: str) -> Gate:
    """Read an expression.

    >>> gate_of("wall_p50 > 1.5s").bound
    1500000000.0

    Raises:
        ConfigurationError: it is none.
    """
    match = _GATE.fullmatch(text)
    if match is None or match[1] not in FIGURES:
        raise ConfigurationError(
            f"--fail-on {text}: write FIGURE OPERATOR NUMBER, as correctness<90%; figures: {', '.join(FIGURES)}"
        )
    try:
        bound = float(match[3]) * _UNITS[match[4] or ""]
    except ValueError as error:
        raise ConfigurationError(f"--fail-on {text}: {match[3]} is no number") from error
    return Gate(text=text.strip(), figure=match[1], operator=match[2], bound=bound)
