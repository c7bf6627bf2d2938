"""Runs in a child: values as tagged JSON. The text of this module is sent to children that know no turntrace.

A value is ``["v", type, content]``, an exception ``["e", type]``, something out of bounds ``["x", why]``.
"""

import math
from typing import Any, Final

__all__ = ["MAX_DEPTH", "MAX_ITEMS", "MAX_TEXT", "Bounds", "encoded", "tagged"]

MAX_DEPTH: Final = 24
MAX_ITEMS: Final = 20_000
MAX_TEXT: Final = 65_536


class Bounds(Exception):  # noqa: N818 - no error of anybody, it ends the encoding
    """The value is too deep, too long or too large to be compared."""


def tagged(value: Any) -> list[Any]:
    """``value`` as ``["v", type, content]``, or ``["x", why]`` where it is out of bounds.

    >>> tagged([True, 1])
    ['v', 'list', [['bool', True], ['int', '0x1']]]
    """
    try:
        return ["v", *encoded(value, 0, [MAX_ITEMS])]
    except Bounds as error:
        return ["x", str(error)]


def encoded(value: Any, depth: int, left: list[int]) -> list[Any]:
    """``[type, content]``. Types are exact: True is no 1, a tuple no list, a subclass of str no str.

    Raises:
        Bounds: below ``MAX_DEPTH``, or when ``left[0]`` more items have been met.
    """
    left[0] -= 1
    if depth > MAX_DEPTH or left[0] < 0:
        raise Bounds("too deep" if depth > MAX_DEPTH else "too many items")
    kind = type(value)
    if kind in {list, tuple}:
        return [kind.__name__, [encoded(item, depth + 1, left) for item in value]]
    if kind in {set, frozenset}:
        return [kind.__name__, sorted((encoded(item, depth + 1, left) for item in value), key=repr)]
    if kind is dict:
        pairs = [
            [encoded(key, depth + 1, left), encoded(item, depth + 1, left)] for key, item in value.items()
        ]
        return ["dict", sorted(pairs, key=repr)]
    return [kind.__name__, _scalar(value)]


def _scalar(value: Any) -> Any:
    kind = type(value)
    found = value
    if kind is int:
        found = hex(value) if value.bit_length() <= MAX_TEXT else None
    elif kind is float:
        found = value.hex() if math.isfinite(value) else repr(value)
    elif kind in {str, bytes}:
        text = value.hex() if kind is bytes else value.encode("utf-8", "backslashreplace").decode()
        found = text if len(value) <= MAX_TEXT else None
    elif value is not None and kind is not bool:
        raise Bounds("no plain value")  # an object of the agent's decides itself what it equals
    if found is None and value is not None:
        raise Bounds("too large")
    return found
