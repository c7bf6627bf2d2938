"""One JSON object to one line of the file: keys in alphabetical order, LF at the end."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

__all__ = ["json_bytes", "json_line"]

_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**64 - 1
_DEPTH: Final = 4  # the deepest line of the contract has two levels


def json_bytes(value: object) -> bytes:
    """The JSON of ``value``. What JSON cannot hold becomes null, a lone surrogate U+FFFD."""
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        encoded = orjson.dumps(_representable(value, 0), option=orjson.OPT_SORT_KEYS)
    if not encoded.isascii():  # as zero does, so that no reader takes a separator for a line's end
        encoded = encoded.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
    return encoded


def json_line(fields: Mapping[str, Any]) -> bytes:
    r"""The line of ``fields``.

    >>> json_line({"type": "counter", "name": "tool_calls", "value": 0})
    b'{"name":"tool_calls","type":"counter","value":0}\n'
    """
    return json_bytes(fields) + b"\n"


def _representable(value: object, depth: int) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping | list | tuple):
        return _representable_parts(value, depth + 1) if depth < _DEPTH else None
    fits = isinstance(value, float) or (isinstance(value, int) and _MIN_INT <= value <= _MAX_INT)
    return value if fits else None


def _representable_parts(value: Mapping[str, Any] | Sequence[Any], depth: int) -> object:
    if isinstance(value, Mapping):
        return {_representable(str(key), depth): _representable(item, depth) for key, item in value.items()}
    return [_representable(item, depth) for item in value]
