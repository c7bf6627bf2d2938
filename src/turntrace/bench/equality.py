"""Whether two tagged values are the same. Values come from strangers: nothing here recurses on them."""

import math
from typing import Any, Final

__all__ = ["RELATIVE", "same"]

RELATIVE: Final = 1e-9
"""Floats may differ by this share: sums in another order are the same sum."""


def same(expected: Any, found: Any) -> bool:
    """Whether ``found`` is what was expected; both are JSON from a child.

    >>> same(["v", "int", "0x1"], ["v", "bool", True])
    False
    """
    pending = [(expected, found)]
    while pending:
        left, right = pending.pop()
        if not (isinstance(left, list) and isinstance(right, list)):
            if type(left) is not type(right) or left != right:
                return False
        elif len(left) != len(right):
            return False
        elif not (_is_float(left) and _is_float(right) and _close(left[-1], right[-1])):
            pending.extend(zip(left, right, strict=True))
    return True


def _is_float(value: list[Any]) -> bool:
    return len(value) >= 2 and value[-2] == "float" and isinstance(value[-1], str)  # noqa: PLR2004 - [type, content]


def _close(left: str, right: str) -> bool:
    if left == right:
        return True
    try:
        return math.isclose(float.fromhex(left), float.fromhex(right), rel_tol=RELATIVE)
    except (ValueError, OverflowError):
        return False
