"""What a receiver takes at most: sizes in bytes, times in seconds, and why something was refused."""

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["MAX_ANY_VALUE_DEPTH", "Limits", "Reason", "RefusedError"]

MAX_ANY_VALUE_DEPTH: Final = 64
"""AnyValues inside one another. protobuf's own parser stops at a message depth of 100, which is earlier."""

Reason = Literal[
    "origin",
    "host",
    "token",
    "path",
    "method",
    "content_type",
    "encoding",
    "too_large",
    "rate",
    "memory",
    "timeout",
    "malformed",
    "storage",
    "stopping",
    "connections",
    "disconnected",
    "error",
]
"""Why a request, or a connection, was refused: the whole list, so that it can be a metric's label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one receiver.

    ``request_bytes`` bounds a request as it comes and inflated, ``memory_bytes`` all requests that are being
    read together, each counted as it comes and inflated. ``requests_per_s`` is the sustained rate, and a
    burst of as many is taken at once. ``json_bytes`` bounds requests in JSON, ``messages`` the messages inside
    one of protobuf: what bytes become when they are parsed.
    """

    request_bytes: int = 64 << 20
    json_bytes: int = 16 << 20
    messages: int = 2_000_000
    memory_bytes: int = 256 << 20
    requests_per_s: int = 2_000
    head_s: float = 10.0
    request_s: float = 30.0
    idle_s: float = 90.0
    connections: int = 512
    streams: int = 64
    attributes: int = 1_000


class RefusedError(Exception):
    """A request is not accepted.

    ``status`` is the HTTP status. ``retry_after_s`` is set where the same request may succeed later.
    """

    def __init__(self, reason: Reason, status: int, message: str, retry_after_s: int | None = None) -> None:
        self.reason = reason
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s
        super().__init__(message)
