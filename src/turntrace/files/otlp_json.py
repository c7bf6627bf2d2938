"""Reads OTLP/JSON: one document, or lines as the file exporter and the collector write them.

Damage costs what it hits and nothing more: a bad line, a span with a bad id. Each loss is an issue.
Source: OpenTelemetry protocol, JSON encoding; opentelemetry/proto/trace/v1/trace.proto.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from turntrace.core.model import Issue, RawSpan, SpanStatus

__all__ = ["read_otlp"]

_BOM: Final = b"\xef\xbb\xbf"
_PADDING: Final = b"\0 \t\r\n"
_KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")
_STATUSES: Final[tuple[SpanStatus, ...]] = ("unset", "ok", "error")
_REMOTE: Final = 0x300
"""The flag bits that say: the parent is known, and it is in another process."""

_SPAN_ID_BYTES: Final = 8
_TRACE_ID_BYTES: Final = 16
_MAX_NS: Final = 2**63 - 1
_OTHER_SIGNALS: Final = frozenset({"resourceMetrics", "resource_metrics", "resourceLogs", "resource_logs"})


def read_otlp(source: bytes | Iterable[bytes]) -> tuple[list[RawSpan], list[Issue]]:
    """Read the spans of OTLP/JSON.

    Args:
        source: The whole input, or its lines with their line ends (a file open in binary mode), which
            are read one by one. Input whose first line is no JSON value is read as one document.

    Returns:
        The spans in order, each id once (a batch that was sent twice is one batch), and what is wrong
        with the input. Never raises on its content.
    """
    reader = _Reader()
    lines = enumerate(source.splitlines(keepends=True) if isinstance(source, bytes) else source, 1)
    for number, line in lines:
        text = reader.without_mark(line, number).strip(_PADDING)
        document = _parsed(text) if text else None
        if document is not None:
            reader.add(document, number)
        elif text.startswith(b"{") and not reader.documents:
            reader.whole([line, *(rest for _, rest in lines)], number)
        elif text:
            reader.bad(line, number)
    return list(reader.spans.values()), reader.issues


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


@dataclass(slots=True)
class _Reader:
    """What was read so far."""

    spans: dict[tuple[str, str], RawSpan] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    documents: int = 0

    def issue(self, code: str, message: str, line: int) -> None:
        self.issues.append(Issue(code=code, message=message, line=line))

    def without_mark(self, line: bytes, number: int) -> bytes:
        if number > 1 or not line.startswith(_BOM):
            return line
        self.issue("bom", "the input starts with a byte order mark", number)
        return line.removeprefix(_BOM)

    def bad(self, line: bytes, number: int) -> None:
        if line.endswith(b"\n"):
            self.issue("bad_json_line", "the line is no JSON object", number)
        else:
            self.issue("truncated_tail", "the last line is cut", number)

    def whole(self, lines: list[bytes], first: int) -> None:
        """Read one document that runs over many lines, or else what lines after a bad one hold."""
        document = _parsed(b"".join(lines).removeprefix(_BOM).strip(_PADDING))
        if document is not None:
            self.add(document, first)
            return
        for number, line in enumerate(lines, first):
            text = line.strip(_PADDING)
            document = _parsed(text) if text else None
            if document is not None:
                self.add(document, number)
            elif text:
                self.bad(line, number)

    def add(self, document: Mapping[str, Any], line: int) -> None:
        """Add the spans of one request or one file record."""
        self.documents += 1
        for resource_spans in self._list(document, line, "resourceSpans", "resource_spans", "batches"):
            resource = _attributes(_get(resource_spans, "resource"))
            scopes = self._list(
                resource_spans, line, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"
            )
            for scope_spans in scopes:
                scope = _get(scope_spans, "scope", "instrumentationLibrary")
                name = scope.get("name") if isinstance(scope, dict) else ""
                for span in self._list(scope_spans, line, "spans"):
                    self._add_span(span, resource, name if isinstance(name, str) else "", line)
        if not document.keys() & {"resourceSpans", "resource_spans", "batches"}:
            known = "no traces" if document.keys() & _OTHER_SIGNALS else "nothing known"
            self.issue("unknown_type", f"the record holds {known}", line)

    def _list(self, holder: Mapping[str, Any], line: int, *keys: str) -> Iterator[dict[str, Any]]:
        value = _get(holder, *keys)
        if value is None:
            return
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, dict):
                yield item
            else:
                self.issue("field_type", f"{keys[0]} holds something that is no object", line)

    def _add_span(self, fields: dict[str, Any], resource: Mapping[str, Any], scope: str, line: int) -> None:
        trace_id = _id(_get(fields, "traceId", "trace_id"), _TRACE_ID_BYTES)
        span_id = _id(_get(fields, "spanId", "span_id"), _SPAN_ID_BYTES)
        start_ns = _nanoseconds(_get(fields, "startTimeUnixNano", "start_time_unix_nano"))
        if not trace_id or not span_id:
            self.issue("id_invalid", "a span has no valid trace id or span id; it is left out", line)
            return
        if start_ns is None:
            self.issue("timestamp_invalid", f"span {span_id} has no start; it is left out", line)
            return
        end_ns = _nanoseconds(_get(fields, "endTimeUnixNano", "end_time_unix_nano"))
        if end_ns is None:
            self.issue("timestamp_invalid", f"span {span_id} has no end; its start is taken", line)
        elif end_ns < start_ns:
            self.issue("span_end_before_start", f"span {span_id} ends before it starts", line)
        parent_id = _id(_get(fields, "parentSpanId", "parent_span_id"), _SPAN_ID_BYTES)
        if parent_id == "":
            self.issue("id_invalid", f"span {span_id} has an invalid parent id; it is read as a root", line)
        span = RawSpan(
            span_id=span_id,
            trace_id=trace_id,
            parent_id=parent_id or None,
            name=_string(fields.get("name")),
            start_ns=start_ns,
            end_ns=start_ns if end_ns is None else end_ns,
            kind=_one_of(_KINDS, fields.get("kind"), "SPAN_KIND_"),
            scope=scope,
            status=_status(fields.get("status")),
            attributes=_attributes(fields),
            events=tuple(_events(fields)),
            resource=resource,
            remote_parent=_integer(fields.get("flags")) & _REMOTE == _REMOTE,
        )
        self._keep(span, line)

    def _keep(self, span: RawSpan, line: int) -> None:
        """Keep one span an id: of two the one with the latest end, then the earliest start."""
        other = self.spans.setdefault((span.trace_id, span.span_id), span)
        if other is span:
            return
        self.issue("duplicate_span", f"span {span.span_id} came before", line)
        if (-span.end_ns, span.start_ns) < (-other.end_ns, other.start_ns):
            self.spans[span.trace_id, span.span_id] = span


def _get(holder: Mapping[str, Any], *keys: str) -> Any:
    """The value of the first of the keys that is there: the proto's two spellings, and older ones."""
    return next((holder[key] for key in keys if holder.get(key) is not None), None)


def _id(value: object, size: int) -> str | None:
    """An id as lowercase hex, from hex or base64. None when there is none, "" when it is invalid.

    An id of zeros stands for no id.
    """
    if value is None or value == "":
        return None
    raw = _decoded(value, size) if isinstance(value, str) else None
    if raw is None:
        return ""
    return raw.hex() if any(raw) else None


def _decoded(value: str, size: int) -> bytes | None:
    """The bytes of an id: its length tells hex from base64."""
    try:
        if len(value) == 2 * size:
            raw = bytes.fromhex(value)
        else:
            raw = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (ValueError, binascii.Error):
        return None
    return raw if len(raw) == size else None


def _nanoseconds(value: object) -> int | None:
    """A time in nanoseconds since the epoch; None for 0 and for what is none."""
    number = _integer(value)
    return number if 0 < number <= _MAX_NS else None


def _integer(value: object) -> int:
    """A whole number, written as one or as digits; 0 for anything else."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < _MAX_DIGITS else 0
    if isinstance(value, float):
        return int(value) if value.is_integer() else 0
    return value if isinstance(value, int) else 0


_MAX_DIGITS: Final = 20


def _one_of(names: tuple[str, ...], value: object, prefix: str) -> str:
    """The name of an enum's value, given as its number or as its name in the proto."""
    if isinstance(value, str) and value.startswith(prefix):
        name = value.removeprefix(prefix).lower()
        return name if name in names else names[0]
    number = _integer(value)
    return names[number] if 0 <= number < len(names) else names[0]


def _status(value: object) -> SpanStatus:
    code = value.get("code") if isinstance(value, dict) else None
    name = _one_of(_STATUSES, code, "STATUS_CODE_")
    return next(status for status in _STATUSES if status == name)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _events(fields: Mapping[str, Any]) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    events = fields.get("events")
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict):
            at_ns = _integer(_get(event, "timeUnixNano", "time_unix_nano"))
            yield at_ns, _string(event.get("name")), _attributes(event)


def _attributes(holder: object) -> dict[str, Any]:
    """The attributes that are scalars or lists of scalars. Deeper values are content and left out."""
    pairs = holder.get("attributes") if isinstance(holder, dict) else None
    found: dict[str, Any] = {}
    for pair in pairs if isinstance(pairs, list) else ():
        if isinstance(pair, dict) and isinstance(pair.get("key"), str):
            value = _value(pair.get("value"))
            if value is not None:
                found[pair["key"]] = value
    return found


def _value(value: object) -> object:
    """The value of an AnyValue; None for one that is empty or too deep."""
    if not isinstance(value, dict):
        return None
    array = _get(value, "arrayValue", "array_value")
    if array is None:
        return _scalar(value)
    items = array.get("values") if isinstance(array, dict) else None
    return tuple(
        scalar
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, dict) and (scalar := _scalar(item)) is not None
    )


def _scalar(value: Mapping[str, Any]) -> object:
    text = _get(value, "stringValue", "string_value")
    if isinstance(text, str):
        return text
    flag = _get(value, "boolValue", "bool_value")
    if isinstance(flag, bool):
        return flag
    whole = _get(value, "intValue", "int_value")
    return _signed(whole) if whole is not None else _real(_get(value, "doubleValue", "double_value"))


def _signed(value: object) -> int | None:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        is_number = digits.isascii() and digits.isdigit() and len(digits) < _MAX_DIGITS
        return int(value) if is_number else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _real(value: object) -> float | None:
    """A double; JSON spells the numbers it lacks as words."""
    if isinstance(value, str):
        return float(value) if value in {"NaN", "Infinity", "-Infinity"} else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
