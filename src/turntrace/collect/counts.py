"""What a receiver took and what it refused: totals, safe from any thread."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from turntrace.collect.limits import Reason

__all__ = ["Counts", "Drop", "Totals"]

Drop = Literal["attributes", "nesting", "invalid"]
"""What was taken out of an accepted request: attributes past the bound, values too deep, items without ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Accepted requests and items (spans, data points, log records) by signal; the rest by reason.

    ``hook_failures`` counts errors of the pass-through hook.
    """

    requests: Mapping[str, int]
    items: Mapping[str, int]
    rejected: Mapping[str, int]
    dropped: Mapping[str, int]
    hook_failures: int


class Counts:
    """Running totals of one receiver."""

    __slots__ = ("_dropped", "_hook_failures", "_items", "_lock", "_rejected", "_requests")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._items: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._hook_failures = 0

    def accepted(self, signal: str, items: int, dropped: Mapping[Drop, int]) -> None:
        """Count a request that was stored."""
        with self._lock:
            self._requests[signal] += 1
            self._items[signal] += items
            self._dropped.update({what: amount for what, amount in dropped.items() if amount})

    def rejected(self, reason: Reason) -> None:
        """Count a request or a connection that was refused."""
        with self._lock:
            self._rejected[reason] += 1

    def hook_failed(self) -> None:
        """Count an error of the pass-through hook."""
        with self._lock:
            self._hook_failures += 1

    def totals(self) -> Totals:
        """The totals now."""
        with self._lock:
            return Totals(
                requests=dict(self._requests),
                items=dict(self._items),
                rejected=dict(self._rejected),
                dropped=dict(self._dropped),
                hook_failures=self._hook_failures,
            )
