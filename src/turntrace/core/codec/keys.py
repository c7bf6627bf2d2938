"""Event keys: what agenteval asks a trace for, by type and name.

Source: ``ParseTraceEventKeys`` and ``MissingTraceEvents`` of Gitlawb/zero 0.8, measured.
"""

from collections.abc import Iterable
from math import isinf
from typing import Any

import orjson

from turntrace.core.codec.json_text import SPACE, JsonTextError, decoded, first_value, number

__all__ = ["event_keys", "missing_keys"]


def event_keys(lines: Iterable[bytes]) -> list[str]:
    r"""The sorted unique keys of raw ``lines``; noise, a missing header and the order do not matter.

    >>> event_keys([b'{"type":"span","name":" generation "}\n', b"noise\n", b'{"event":"verify"}\n'])
    ['span:generation', 'verify']
    """
    keys = {key for raw in lines if (key := _key(_object(raw)))}
    return sorted(keys)


def missing_keys(required: Iterable[str], lines: Iterable[bytes]) -> list[str]:
    """The sorted unique ones of ``required``, trimmed, that ``lines`` do not have; blank ones do not count."""
    wanted = {key.strip(SPACE) for key in required} - {""}
    return sorted(wanted.difference(event_keys(lines)))


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _whole_value(decoded(raw)[0].strip(SPACE))
    return value if isinstance(value, dict) else {}


def _whole_value(text: str) -> object:
    """The value of a text that holds one and nothing more, None for any other."""
    try:
        found = first_value(text, _float)
    except JsonTextError:
        return None
    return None if text[found.end :].strip(SPACE) else found.value


def _float(text: str) -> int | float:
    value = number(text)
    if isinf(value):  # decoding into a float64 fails, and the line with it
        raise JsonTextError
    return value


def _key(fields: dict[str, Any]) -> str:
    kind = _trimmed(fields.get("type")) or _trimmed(fields.get("event"))
    name = _trimmed(fields.get("name"))
    return f"{kind}:{name}" if kind and name else kind


def _trimmed(value: object) -> str:
    return value.strip(SPACE) if isinstance(value, str) else ""
