"""What happens to a request once its bytes are here: hook, inflation, check, sink. http and grpc share it."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from turntrace.collect.counts import Counts
from turntrace.collect.inflation import inflated
from turntrace.collect.limits import Limits, RefusedError
from turntrace.collect.messages import checked
from turntrace.collect.sink import ContentKind, Signal, Sink
from turntrace.collect.wire_bounds import SMALL_BYTES, holds_more_than

__all__ = ["Acceptance", "Budget", "Hook", "RawRequest"]

_RETRY_S: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRequest:
    """A request as it came over the wire. ``headers`` have lower-case names; of grpc it is the metadata."""

    signal: Signal
    body: bytes
    kind: ContentKind
    headers: Mapping[bytes, bytes]
    encoding: str


Hook = Callable[[RawRequest], None]
"""Called with each admitted request before it is read; what it raises is counted."""


class Budget:
    """The bytes that are being read, and the requests of the current second. Safe from any thread."""

    __slots__ = ("_held_bytes", "_limits", "_lock", "_monotonic_s", "_seen_s", "_tokens")

    def __init__(self, limits: Limits, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._held_bytes = 0
        self._monotonic_s = monotonic_s
        self._seen_s = monotonic_s()
        self._tokens = float(limits.requests_per_s)

    def admit(self) -> None:
        """Take one request.

        Raises:
            RefusedError: with status 429, when there were too many.
        """
        with self._lock:
            now_s = self._monotonic_s()
            rate = self._limits.requests_per_s
            self._tokens = min(float(rate), self._tokens + (now_s - self._seen_s) * rate)
            self._seen_s = now_s
            if self._tokens < 1:
                raise RefusedError("rate", 429, f"more than {rate} requests a second", _RETRY_S)
            self._tokens -= 1

    def hold(self, size_bytes: int) -> None:
        """Take bytes, until ``free``.

        Raises:
            RefusedError: with status 429, when too many are held.
        """
        with self._lock:
            if self._held_bytes + size_bytes > self._limits.memory_bytes:
                raise RefusedError("memory", 429, "too many requests are being read at once", _RETRY_S)
            self._held_bytes += size_bytes

    def free(self, size_bytes: int) -> None:
        """Give bytes back."""
        with self._lock:
            self._held_bytes -= size_bytes


class Share:
    """``with Share(budget, limits) as share``: what one request holds, given back at the end."""

    __slots__ = ("_budget", "_held_bytes", "_max_bytes")

    def __init__(self, budget: Budget, limits: Limits) -> None:
        self._budget = budget
        self._max_bytes = limits.request_bytes
        self._held_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._budget.free(self._held_bytes)
        self._held_bytes = 0

    def meter(self, what: str) -> Callable[[int], None]:
        """What is told of each piece of a body and raises RefusedError (413, 429) when they are too much."""
        total_bytes = 0

        def charge(size_bytes: int) -> None:
            nonlocal total_bytes
            total_bytes += size_bytes
            if total_bytes > self._max_bytes:
                raise RefusedError("too_large", 413, f"the {what} is larger than {self._max_bytes} bytes")
            self._budget.hold(size_bytes)
            self._held_bytes += size_bytes

        return charge


class Acceptance:
    """Takes requests whose bytes are here; called from several threads at once."""

    __slots__ = ("_hook", "_limits", "_sink", "budget", "counts")

    def __init__(self, sink: Sink, limits: Limits, counts: Counts, hook: Hook | None) -> None:
        self._sink = sink
        self._limits = limits
        self._hook = hook
        self.counts = counts
        self.budget = Budget(limits)

    def share(self) -> Share:
        """What a new request may hold."""
        return Share(self.budget, self._limits)

    def take(self, request: RawRequest, share: Share) -> int:
        """Store a request; returns how many of its items were left out.

        Raises:
            RefusedError: when it cannot be read or stored.
        """
        self._pass_through(request)
        body = inflated(request.body, request.encoding, share.meter("inflated body"))
        self._check_size(request, body)
        found = checked(request.signal, body, request.kind, self._limits.attributes)
        try:
            self._sink.take(request.signal, found.body, request.kind)
        except OSError as error:
            raise RefusedError("storage", 503, "the request could not be stored", _RETRY_S) from error
        self.counts.accepted(request.signal, found.items, found.dropped)
        return found.rejected

    def _check_size(self, request: RawRequest, body: bytes) -> None:
        """Refuse what would be too much once it is parsed."""
        limits = self._limits
        if request.kind == "json" and len(body) > limits.json_bytes:
            raise RefusedError("too_large", 413, f"JSON larger than {limits.json_bytes} bytes")
        if (
            request.kind == "protobuf"
            and len(body) > SMALL_BYTES
            and holds_more_than(limits.messages, request.signal, body)
        ):
            what = f"more than {limits.messages} messages in one request: send smaller batches"
            raise RefusedError("too_large", 413, what)

    def _pass_through(self, request: RawRequest) -> None:
        if self._hook is None:
            return
        try:
            self._hook(request)
        except Exception:  # noqa: BLE001 - the caller's code; the sender is told nothing of it
            self.counts.hook_failed()
