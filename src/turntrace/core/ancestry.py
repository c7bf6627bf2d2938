"""What a span has from the nearest span above it; each chain of parents is walked once."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from turntrace.core.model import RawSpan

__all__ = ["Key", "inherited", "key_of"]

Key = tuple[str, str]
"""Trace id and span id."""

_Found = TypeVar("_Found")


def key_of(span: RawSpan) -> Key:
    """Names a span among those of several traces."""
    return span.trace_id, span.span_id


def inherited(spans: Iterable[RawSpan], told: Callable[[RawSpan], _Found | None]) -> dict[Key, _Found]:
    """By span, what ``told`` says of it or of the nearest span above of which it says something.

    Spans of which nothing is said, nor of any above them, are left out. Parents that form a ring end a walk.
    """
    by_key = {key_of(span): span for span in spans}
    found: dict[Key, _Found | None] = {}
    for span in by_key.values():
        key, chain = key_of(span), list[Key]()
        while key in by_key and key not in found:
            above = by_key[key]
            found[key] = own = told(above)
            chain.append(key)
            if own is not None:
                break
            key = above.trace_id, above.parent_id or ""
        found.update(dict.fromkeys(chain, found.get(key)))
    return {key: value for key, value in found.items() if value is not None}
