"""Tokens of a case that exist only if every model call that owes a count gave one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["USAGE_INCOMPLETE", "OwedUsage", "UsageCall", "owed_usage"]

USAGE_INCOMPLETE: Final = "usage_incomplete"
"""The semantic failure of a case whose tokens are not known."""

_ANSWERED: Final = range(200, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCall:
    """One attempt at a model call.

    ``status`` is the HTTP status its server began to answer with, 0 when none was reached (the connection
    failed), None when that is unknown. Tokens are None where the call reported none; 0 is a report.
    """

    name: str
    status: int | None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None

    @property
    def owes(self) -> bool:
        """A server that began to answer has counted; one that is unknown may have."""
        return self.status is None or self.status in _ANSWERED

    @property
    def reported(self) -> bool:
        """Whether both counts came."""
        return self.input_tokens is not None and self.output_tokens is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwedUsage:
    """Totals, None when they are not known. ``missing`` names the calls that owe and did not report.

    ``attempts_refused`` counts attempts that owe nothing. ``cached_share_first`` is the share of the first
    answered call's input that came from a cache.
    """

    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    owed: int
    reported: int
    attempts: int
    attempts_refused: int
    missing: tuple[str, ...]
    cached_share_first: float | None

    @property
    def failures(self) -> tuple[str, ...]:
        """The semantic failures of the case."""
        return (USAGE_INCOMPLETE,) if self.missing else ()


def owed_usage(calls: Sequence[UsageCall]) -> OwedUsage:
    """Add up what is owed; a partial sum is never a total, no call at all is a known 0.

    >>> calls = [
    ...     UsageCall(name="1", status=200, input_tokens=3, output_tokens=1),
    ...     UsageCall(name="2", status=200),
    ... ]
    >>> found = owed_usage(calls)
    >>> found.input_tokens, found.missing, f"{found.reported}/{found.owed}"
    (None, ('2',), '1/2')
    """
    owing = [call for call in calls if call.owes]
    reported = [call for call in owing if call.reported]
    known = len(reported) == len(owing)
    tokens_in = sum(call.input_tokens or 0 for call in reported) if known else None
    tokens_out = sum(call.output_tokens or 0 for call in reported) if known else None
    return OwedUsage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        total_tokens=None if tokens_in is None or tokens_out is None else tokens_in + tokens_out,
        owed=len(owing),
        reported=len(reported),
        attempts=len(calls),
        attempts_refused=len(calls) - len(owing),
        missing=tuple(call.name for call in owing if not call.reported),
        cached_share_first=_cached_share(owing[0]) if owing else None,
    )


def _cached_share(call: UsageCall) -> float | None:
    if call.cached_input_tokens is None or not call.input_tokens:
        return None
    return call.cached_input_tokens / call.input_tokens
