"""A minimal client for streamed chat completions on the standard library; it knows nothing of tracing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPResponse
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from turntrace.demo.script import RETRY_COUNT_HEADER
from turntrace.demo.sse import EventDecoder

__all__ = [
    "DONE",
    "MAX_RETRIES",
    "PATH",
    "RETRYABLE",
    "ChatResponse",
    "ModelUnavailableError",
    "StreamBrokenError",
    "connect",
    "request_body",
    "request_headers",
    "retry_after_ms",
]

PATH: Final = "/v1/chat/completions"
DONE: Final = b"[DONE]"
MAX_RETRIES: Final = 3
RETRYABLE: Final = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed."""

_TIMEOUT_S: Final = 60.0


class ModelUnavailableError(RuntimeError):
    """The model server refused the request for good."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"the model server answered with status {status}")


class StreamBrokenError(ConnectionError):
    """The connection ended before the answer did."""

    def __init__(self) -> None:
        super().__init__(f"the stream ended before {DONE.decode()}")


def request_body(model: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[str]) -> bytes:
    """Return the JSON of a streaming request that asks for usage; equal arguments give equal bytes."""
    request = {
        "model": model,
        "messages": messages,
        "tools": [{"type": "function", "function": {"name": name}} for name in tools],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return json.dumps(request, separators=(",", ":")).encode()


def request_headers(retries: int) -> dict[str, str]:
    """Return the headers of a request that was refused ``retries`` times before."""
    return {"Content-Type": "application/json", RETRY_COUNT_HEADER: str(retries)}


def retry_after_ms(headers: Message) -> float:
    """Return how long the server asks to wait, in milliseconds; 0 when it does not say."""
    exact = headers.get("retry-after-ms")
    return float(exact) if exact is not None else 1000 * float(headers.get("Retry-After", 0))


class ChatResponse:
    """A response whose headers are there: a status, and chunks to iterate over once."""

    def __init__(self, connection: HTTPConnection, response: HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self.status = response.status
        self.retry_after_ms = retry_after_ms(response.headers)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the chunks as they arrive.

        Raises:
            StreamBrokenError: The connection ended before ``[DONE]``.
        """
        decoder = EventDecoder()
        try:
            for line in iter(self._response.readline, b""):
                event = decoder.feed(line)
                if event == DONE:
                    return
                if event is not None:
                    yield json.loads(event)
        except HTTPException as error:
            raise StreamBrokenError from error
        raise StreamBrokenError

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def connect(base_url: str, body: bytes, *, retries: int) -> ChatResponse:
    """Open a connection, send the request and wait for the response headers.

    Raises:
        OSError: The server cannot be reached or broke the connection.
    """
    connection = HTTPConnection(urlsplit(base_url).netloc, timeout=_TIMEOUT_S)
    try:
        connection.request("POST", PATH, body, request_headers(retries))
        return ChatResponse(connection, connection.getresponse())
    except BaseException:
        connection.close()
        raise
