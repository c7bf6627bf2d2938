"""The parts of a request that a provider's prompt cache goes by, as salted hashes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from turntrace.core.prefixes import PREFIX_PARTS
from turntrace.instrument.stamps import stamp

__all__ = ["prefix_hashes"]

_SYSTEM_ROLES: Final = frozenset({"system", "developer"})
_LEFT_OUT: Final = frozenset({"NotGiven", "Omit"})
_MESSAGE_LISTS: Final = ("messages", "input")
_SCHEMAS: Final = ("response_format", "text", "output_format")


def prefix_hashes(body: Mapping[str, Any]) -> dict[str, str]:
    """A hash for each part and one for all, of a request to OpenAI's or Anthropic's API.

    Raises:
        TypeError: when a part is no value of JSON.
    """
    parts = {
        "system_prompt": [body.get("instructions"), body.get("system"), *_leading_system(body)],
        "tools": body.get("tools"),
        "schema": [body.get(name) for name in _SCHEMAS],
    }
    hashes = {name: stamp(orjson.dumps(parts[name], default=_left_out)) for name in PREFIX_PARTS}
    return {**hashes, "complete_prefix": stamp("|".join(hashes.values()).encode())}


def _left_out(value: Any) -> None:
    """What the SDKs put where nothing was given is nothing."""
    if type(value).__name__ not in _LEFT_OUT:
        raise TypeError(type(value).__name__)


def _leading_system(body: Mapping[str, Any]) -> Iterator[Any]:
    """The messages for the system before any other; those that come later are no prefix."""
    for name in _MESSAGE_LISTS:
        messages = body.get(name)
        for message in messages if isinstance(messages, list) else ():
            if not isinstance(message, dict) or message.get("role") not in _SYSTEM_ROLES:
                break
            yield message
