"""Server-sent events, both ways: the few lines of the format that model providers use.

Source: WHATWG HTML, section 9.2 (event streams).
"""

from typing import Final

__all__ = ["KEEP_ALIVE", "EventDecoder", "encode"]

KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment: readers skip it."""


def encode(payload: bytes) -> bytes:
    r"""Return one event with ``payload``, which holds no line break, as its data.

    >>> encode(b"[DONE]")
    b'data: [DONE]\n\n'
    """
    return b"data: " + payload + b"\n\n"


class EventDecoder:
    r"""Puts events together line by line; comments and fields other than data are skipped.

    >>> decoder = EventDecoder()
    >>> [decoder.feed(line) for line in (b": ping\n", b"data: 1\r\n", b"data: 2\n", b"\n", b"\n")]
    [None, None, None, b'1\n2', None]
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, raw: bytes) -> bytes | None:
        """Return the data of the event that this line ends, None when it ends none."""
        line = raw.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            self._parts.append(line[5:].removeprefix(b" "))
        elif not line and self._parts:
            event = b"\n".join(self._parts)
            self._parts.clear()
            return event
        return None
