"""Totals over the tokens that model calls reported. Unknown stays unknown; a partial sum says so."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from turntrace.core.model import Usage

__all__ = ["TOKEN_FIELDS", "UsageTotals", "contradiction", "inclusive_input", "richer", "total"]

TOKEN_FIELDS: Final = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
)
"""The fields of Usage that hold tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotals:
    """What the model calls of a turn consumed together.

    A total is None unless every model call reported it. ``known`` has the sums over the calls that did,
    None where none did. ``complete``: every call reported input and output; None when no call is known
    one by one. ``reports`` and ``missing`` count answered calls with and without usage.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    complete: bool | None = None
    reports: int = 0
    missing: int = 0
    known: Mapping[str, int | None]


def total(usages: Sequence[Usage], model_requests: int | None = None) -> UsageTotals:
    """Add up ``usages``, one for each answered model call out of ``model_requests``.

    >>> found = total([Usage(span_id="a", input_tokens=3), Usage(span_id="b", provenance="missing")], 2)
    >>> found.input_tokens, found.known["input_tokens"]
    (None, 3)
    """
    reported = [usage for usage in usages if usage.provenance == "reported"]
    calls = max(len(usages), model_requests or 0)
    known: dict[str, int | None] = {}
    totals: dict[str, int | None] = {}
    for field in TOKEN_FIELDS:
        values = [value for usage in reported if (value := getattr(usage, field)) is not None]
        known[field] = sum(values) if values else None
        totals[field] = known[field] if len(values) == calls else None
    known["total_tokens"] = _sum(known["input_tokens"], known["output_tokens"])
    totals["total_tokens"] = _sum(totals["input_tokens"], totals["output_tokens"])
    return UsageTotals(
        **totals,
        complete=totals["total_tokens"] is not None if usages else None,
        reports=len(reported),
        missing=sum(usage.provenance == "missing" for usage in usages),
        known=known,
    )


def _sum(tokens_in: int | None, tokens_out: int | None) -> int | None:
    return None if tokens_in is None or tokens_out is None else tokens_in + tokens_out


def inclusive_input(uncached: int | None, cached: int | None, cache_write: int | None) -> int | None:
    """Input as the conventions count it, from a provider that counts cache reads and writes apart.

    >>> inclusive_input(7, 100, 10), inclusive_input(None, 100, 10)
    (117, None)
    """
    return None if uncached is None else uncached + (cached or 0) + (cache_write or 0)


def richer(usages: Iterable[Usage]) -> Usage | None:
    """Of several reports of one model call the one that says most; of equals the first."""
    return max(usages, key=_richness, default=None)


def _richness(usage: Usage) -> tuple[bool, int]:
    known = sum(getattr(usage, field) is not None for field in TOKEN_FIELDS)
    return usage.provenance == "reported", known


def contradiction(usage: Usage) -> str | None:
    """Say how the counts of one call contradict each other, None when they agree.

    >>> contradiction(Usage(span_id="a", input_tokens=1, cached_input_tokens=2))
    'more cached tokens than input tokens'
    """
    tokens_in, tokens_out = usage.input_tokens or 0, usage.output_tokens or 0
    cached = (usage.cached_input_tokens or 0) + (usage.cache_write_tokens or 0)
    if usage.input_tokens is not None and cached > tokens_in:
        return "more cached tokens than input tokens"
    if usage.output_tokens is not None and (usage.reasoning_tokens or 0) > tokens_out:
        return "more reasoning tokens than output tokens"
    stated = [count for name, count in usage.raw.items() if "total" in name]
    if stated and _sum(usage.input_tokens, usage.output_tokens) not in {None, *stated}:
        return "input and output do not add up to the stated total"
    return None
