"""The spans of a request, as every reader of turntrace has them, each with the message it came as."""

import base64
import binascii
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from turntrace.collect.messages import request_class
from turntrace.collect.sink import ContentKind
from turntrace.core.model import RawSpan
from turntrace.files.documents import Document
from turntrace.files.otlp_json import OtlpReader
from turntrace.files.otlp_proto import raw_span, read_message, scalars
from turntrace.files.raw_spans import RawSpans

__all__ = ["Arrived", "Origin", "arrived", "told"]


class Origin(NamedTuple):
    """The messages of a span: ResourceSpans and ScopeSpans that it lay in, and itself."""

    resource_spans: Any
    scope_spans: Any
    span: Any


class Arrived(NamedTuple):
    """A span, and what it came as if it is to be sent on."""

    raw: RawSpan
    origin: Origin | None


def arrived(body: bytes, kind: ContentKind, *, with_origin: bool) -> Iterator[Arrived]:
    """The spans of a request that was accepted.

    Raises:
        ValueError: when it cannot be read after all.
    """
    if kind == "json":
        yield from _of_json(body, with_origin=with_origin)
        return
    for resource_spans in request_class("traces").FromString(body).resource_spans:
        resource = scalars(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope.name
            for span in scope_spans.spans:
                raw = raw_span(span, scope, resource)
                if isinstance(raw, RawSpan):
                    yield Arrived(raw, Origin(resource_spans, scope_spans, span) if with_origin else None)


def told(body: bytes, kind: ContentKind) -> RawSpans:
    """The events and counters of coding agents in a request of logs or metrics; other agents' say nothing.

    Raises:
        ValueError: when it cannot be read after all.
    """
    found = RawSpans()
    if kind == "json":
        OtlpReader(found).add(Document(orjson.loads(body), 1, 0))
    else:
        read_message(body, 0, found)
    return found


def _of_json(body: bytes, *, with_origin: bool) -> Iterator[Arrived]:
    document = orjson.loads(body)
    spans = RawSpans()
    OtlpReader(spans).add(Document(document, 1, 0))
    origins = _origins(document) if with_origin else {}
    for raw in spans.spans:
        yield Arrived(raw, origins.get((raw.trace_id, raw.span_id)))


def _origins(document: dict[str, Any]) -> dict[tuple[str, str], Origin]:
    """The messages of the spans of a JSON request; none of a request that protobuf's reader does not take."""
    from google.protobuf.json_format import (  # type: ignore[import-untyped]  # it has none  # noqa: PLC0415 - for JSON
        ParseDict,
        ParseError,
    )

    request = request_class("traces")()
    try:
        ParseDict(_with_ids(document), request, ignore_unknown_fields=True)
    except (ParseError, ValueError, TypeError, AttributeError):
        return {}
    return {
        (span.trace_id.hex(), span.span_id.hex()): Origin(resource_spans, scope_spans, span)
        for resource_spans in request.resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    }


_IDS = frozenset({"traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id"})


def _with_ids(document: dict[str, Any]) -> dict[str, Any]:
    """``document`` with its ids in base64, as protobuf's JSON has bytes; in place."""
    below: list[Any] = [document]
    while below:
        value = below.pop()
        if isinstance(value, dict):
            for name, inner in value.items():
                if name in _IDS and isinstance(inner, str):
                    value[name] = _base64(inner)
                else:
                    below.append(inner)
        elif isinstance(value, list):
            below += value
    return document


def _base64(text: str) -> str:
    try:
        return base64.b64encode(binascii.unhexlify(text)).decode()
    except (ValueError, binascii.Error):
        return text
