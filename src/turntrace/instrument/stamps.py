"""Salted hashes: they tell that two things of one process are the same, and nothing else of them.

The salt is made anew in every process and is kept nowhere, so that nobody who has a trace can try what was
hashed.
"""

import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

__all__ = ["call_stamp", "stamp"]

_SALT: Final = secrets.token_bytes(32)
_LONGEST_ARGUMENT: Final = 1 << 16
"""Of a call with a longer text nothing is hashed: that would cost more than it tells."""
_KEPT_DIGITS: Final = 32


def stamp(data: bytes) -> str:
    """A SHA-256 in lower-case hex of the salt and ``data``."""
    return sha256(_SALT + data).hexdigest()


def call_stamp(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """The stamp of a call; None when its arguments are not values of JSON, or long.

    What is no value has a state that its hash would not tell, so calls with it are never called the same.
    """
    import orjson  # noqa: PLC0415 - recording without decorated tools never needs it

    values = (*args, *kwargs.values())
    if any(isinstance(value, str | bytes) and len(value) > _LONGEST_ARGUMENT for value in values):
        return None
    try:
        data = orjson.dumps([name, args, dict(kwargs)], option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return None
    return stamp(data)[:_KEPT_DIGITS]
