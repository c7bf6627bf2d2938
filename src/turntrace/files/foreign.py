"""Spans that other tools wrote: OTLP as JSON or protobuf, and Jaeger's JSON."""

import re
from collections.abc import Iterable
from io import BytesIO
from typing import BinaryIO, Final

import orjson

from turntrace.files.documents import MAX_DOCUMENT_BYTES, Documents
from turntrace.files.inflate import ZSTD, inflated
from turntrace.files.jaeger_json import JaegerReader, is_jaeger
from turntrace.files.otlp_json import OtlpReader
from turntrace.files.otlp_proto import frames, is_framed, read_message
from turntrace.files.raw_spans import RawSpans

__all__ = ["is_foreign", "is_own", "is_record", "is_text", "read_binary", "read_json"]

_WORDS: Final = re.compile(
    rb'"(?:resource_?spans|scope_?spans|resource_?metrics|resource_?logs|instrumentationLibrarySpans|operationName)"\s*:',
    re.IGNORECASE,
)
_JAEGER: Final = re.compile(rb'"traceID"\s*:.*"spans"\s*:|"spans"\s*:.*"traceID"\s*:', re.DOTALL)
_LOOKED_AT_BYTES: Final = 4096
_RECORDS: Final = (b'{"resource', b'{"batches', b'{"data', b'{"traceID')
_NO_TEXT: Final = re.compile(rb"[\x01-\x08\x0b\x0c\x0e-\x1f]")


def is_foreign(head: bytes) -> bool:
    """Whether the start of an input, or of a line, is OTLP/JSON or Jaeger's JSON."""
    return _WORDS.search(head) is not None or _JAEGER.search(head) is not None


def is_own(line: bytes) -> bool:
    """Whether a line is one of a trace file of ours."""
    if b'"type"' not in line or is_foreign(line[:_LOOKED_AT_BYTES]):
        return False
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(fields, dict) and isinstance(fields.get("type"), str)


def is_record(line: bytes) -> bool:
    """Whether a line among ours is a record of another tool."""
    return line.startswith(_RECORDS) and is_foreign(line[:_LOOKED_AT_BYTES])


def is_text(head: bytes) -> bool:
    """Whether an input that starts so is text; a message of protobuf has control characters early on."""
    return _NO_TEXT.search(head[:_LOOKED_AT_BYTES]) is None or is_foreign(head)


def read_json(lines: Iterable[bytes], spans: RawSpans) -> None:
    """Add the spans of OTLP/JSON or Jaeger's JSON to ``spans``.

    Never raises on its content. Input whose first line is no JSON value is read as one document.

    Args:
        lines: the lines with their ends, as a file open in binary mode gives them; read one by one.
        spans: takes the spans and hears what is wrong.
    """
    otlp, jaeger = OtlpReader(spans), JaegerReader(spans)
    for document in Documents(lines, spans.log):
        if is_jaeger(document.value):
            jaeger.add(document)
        else:
            otlp.add(document)


def read_binary(file: BinaryIO, head: bytes, spans: RawSpans) -> None:
    """Add the spans of OTLP/protobuf to ``spans``: one message, or many with their lengths before them.

    ``head`` is what was looked at and is still to be read from ``file``.

    Raises:
        MissingExtraError: where a message is compressed with zstd and the extra of that name is missing.
    """
    if not is_framed(head, ZSTD):
        read_message(file.read(MAX_DOCUMENT_BYTES), 0, spans)
        return
    for packed, offset in frames(file, spans):
        message = _unpacked(packed, offset, spans)
        if is_text(message):
            read_json(message.splitlines(keepends=True), spans)
        else:
            read_message(message, offset, spans)


def _unpacked(message: bytes, offset: int, spans: RawSpans) -> bytes:
    if not message.startswith(ZSTD):
        return message

    def damaged(what: str) -> None:
        spans.issue("truncated_tail", what, None, offset)

    return inflated(BytesIO(), message, damaged).read(MAX_DOCUMENT_BYTES)
