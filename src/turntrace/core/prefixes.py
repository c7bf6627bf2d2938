"""The parts of a prompt that a provider's cache goes by, and which of them changed from request to request."""

from collections.abc import Mapping
from typing import Final

__all__ = ["PREFIX_PARTS", "invalidation_reason"]

PREFIX_PARTS: Final = ("system_prompt", "tools", "schema")
"""In the order in which a provider reads them; each is told by a hash, never by its text."""


def invalidation_reason(before: Mapping[str, str] | None, now: Mapping[str, str]) -> str:
    """What changed, by the hashes of the last request of a turn and of this one.

    >>> invalidation_reason(None, {"tools": "a"}), invalidation_reason({"tools": "a"}, {"tools": "b"})
    ('initial', 'tools')
    """
    if before is None:
        return "initial"
    changed = [part for part in PREFIX_PARTS if before.get(part) != now.get(part)]
    return ",".join(changed) or "unchanged"
