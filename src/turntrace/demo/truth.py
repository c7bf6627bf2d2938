"""The truth log: what the model server did and when, to hold a trace against."""

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from turntrace.demo.script import TokenUsage

__all__ = ["Exchange", "Served", "TruthLog", "anchored_clock"]

_MAX_RECORDS: Final = 100_000

ServedOutcome = Literal["complete", "dropped", "client_closed", "stopped", "failed"]
"""``stopped``: the server was closed meanwhile; ``failed``: the script or the server raised."""


def anchored_clock() -> Callable[[], int]:
    """Return a clock in nanoseconds since the Unix epoch that never steps: monotonic from now on."""
    offset_ns = time.time_ns() - time.perf_counter_ns()
    return lambda: time.perf_counter_ns() + offset_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One request and its answer, in nanoseconds since the Unix epoch.

    ``received_ns`` is taken when the request has been read in full, every ``*_sent_ns`` just before the bytes
    are handed to the socket: nobody can have seen them earlier. The first token is the first content of any
    kind, the last chunk the last event of the stream; an answer in one piece has one time for all three.
    """

    index: int
    path: str
    status: int
    outcome: ServedOutcome
    received_ns: int
    headers_sent_ns: int | None
    first_token_sent_ns: int | None
    last_chunk_sent_ns: int | None
    chunks_sent: int
    usage_sent: TokenUsage | None
    request_sha256: str
    request: bytes | None


@dataclass(slots=True, kw_only=True)
class Exchange:
    """The record of a request while it is being answered."""

    index: int
    path: str
    received_ns: int = 0
    request: bytes = b""
    status: int = 0
    headers_sent_ns: int | None = None
    first_token_sent_ns: int | None = None
    last_chunk_sent_ns: int | None = None
    chunks_sent: int = 0
    usage_sent: TokenUsage | None = None


class TruthLog:
    """Finished exchanges, the newest 100,000 of them; safe to use from any thread."""

    def __init__(self, *, keep_requests: bool) -> None:
        self._keep_requests = keep_requests
        self._records: deque[Served] = deque(maxlen=_MAX_RECORDS)
        self._finished = 0
        self._changed = threading.Condition()

    def append(self, exchange: Exchange, outcome: ServedOutcome) -> None:
        """Add a finished exchange."""
        record = Served(
            index=exchange.index,
            path=exchange.path,
            status=exchange.status,
            outcome=outcome,
            received_ns=exchange.received_ns,
            headers_sent_ns=exchange.headers_sent_ns,
            first_token_sent_ns=exchange.first_token_sent_ns,
            last_chunk_sent_ns=exchange.last_chunk_sent_ns,
            chunks_sent=exchange.chunks_sent,
            usage_sent=exchange.usage_sent,
            request_sha256=hashlib.sha256(exchange.request).hexdigest(),
            request=exchange.request if self._keep_requests else None,
        )
        with self._changed:
            self._records.append(record)
            self._finished += 1
            self._changed.notify_all()

    def records(self) -> tuple[Served, ...]:
        """Return the finished exchanges in order of arrival."""
        with self._changed:
            return tuple(sorted(self._records, key=lambda record: record.index))

    def wait(self, count: int, timeout_s: float = 10.0) -> tuple[Served, ...]:
        """Return the records once ``count`` exchanges have finished.

        A client can have read the last byte before the server has written its record.

        Raises:
            TimeoutError: Fewer had finished after ``timeout_s`` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._finished >= count, timeout_s):
                message = f"{self._finished} of {count} requests were finished after {timeout_s} s"
                raise TimeoutError(message)
        return self.records()
