"""Answers to requests: the response message, or google.rpc.Status with the reason in words."""

from dataclasses import dataclass
from typing import Final

import orjson

from turntrace.collect.limits import RefusedError
from turntrace.collect.sink import ContentKind

__all__ = ["CONTENT_TYPES", "Answer", "kind_of", "refusal"]

CONTENT_TYPES: Final[dict[str, ContentKind]] = {
    "application/x-protobuf": "protobuf",
    "application/json": "json",
}
_MEDIA_TYPES: Final = {kind: name for name, kind in CONTENT_TYPES.items()}
_CODES: Final = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 408: 4, 413: 8, 415: 3, 429: 8, 500: 13, 503: 14}
"""The google.rpc.Code of each HTTP status that is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP status, the body and its headers."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]


def kind_of(content_type: bytes) -> ContentKind:
    """What a Content-Type names.

    Raises:
        RefusedError: with status 415, for any other; what a web page may send is among those.
    """
    kind = CONTENT_TYPES.get(content_type.decode("latin-1").partition(";")[0].strip().lower())
    if kind is None:
        raise RefusedError("content_type", 415, f"Content-Type must be one of {', '.join(CONTENT_TYPES)}")
    return kind


def success(body: bytes, kind: ContentKind) -> Answer:
    """The answer to a request that was stored."""
    return Answer(status=200, body=body, headers=_headers(kind, body))


def refusal(error: RefusedError, kind: ContentKind) -> Answer:
    """The answer to a request that was not."""
    code = _CODES.get(error.status, 2)
    if kind == "json":
        body = orjson.dumps({"code": code, "message": error.message})
    else:
        from google.rpc.status_pb2 import (  # type: ignore[import-untyped]  # it has none  # noqa: PLC0415 - rarely
            Status,
        )

        body = Status(code=code, message=error.message).SerializeToString()
    extra = () if error.retry_after_s is None else ((b"retry-after", str(error.retry_after_s).encode()),)
    return Answer(status=error.status, body=body, headers=(*_headers(kind, body), *extra))


def _headers(kind: ContentKind, body: bytes) -> tuple[tuple[bytes, bytes], ...]:
    return (b"content-type", _MEDIA_TYPES[kind].encode()), (b"content-length", str(len(body)).encode())
