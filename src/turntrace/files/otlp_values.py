"""Values of OTLP/JSON: ids, times, numbers, enums, attributes, in every spelling there is.

Source: OpenTelemetry protocol, JSON encoding; opentelemetry/proto/common/v1/common.proto.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final

from turntrace.core.model import SpanStatus

__all__ = [
    "KINDS",
    "REMOTE",
    "SPAN_ID_BYTES",
    "TRACE_ID_BYTES",
    "attributes_of",
    "events_of",
    "first_of",
    "id_of",
    "integer",
    "nanoseconds",
    "number",
    "one_of",
    "signed",
    "status_of",
    "string",
]

KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")
STATUSES: Final[tuple[SpanStatus, ...]] = ("unset", "ok", "error")
REMOTE: Final = 0x300
"""The flag bits that say: the parent is known, and it is in another process."""

SPAN_ID_BYTES: Final = 8
TRACE_ID_BYTES: Final = 16
MAX_NS: Final = 2**63 - 1
_MAX_DIGITS: Final = 20


def first_of(holder: Mapping[str, Any], *keys: str) -> Any:
    """The value of the first of the keys that is there: the proto's two spellings, and older ones."""
    return next((holder[key] for key in keys if holder.get(key) is not None), None)


def id_of(value: object, size: int) -> str | None:
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


def nanoseconds(value: object) -> int | None:
    """A time in nanoseconds since the epoch; None for 0 and for what is none."""
    number = integer(value)
    return number if 0 < number <= MAX_NS else None


def integer(value: object) -> int:
    """A whole number, written as one or as digits; 0 for anything else."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < _MAX_DIGITS else 0
    if isinstance(value, float):
        return int(value) if value.is_integer() else 0
    return value if isinstance(value, int) else 0


def number(value: object) -> int | None:
    """A count: a whole number of 0 or more in any spelling; None for anything else."""
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    found = signed(value)
    return found if found is not None and 0 <= found <= MAX_NS else None


def one_of(names: tuple[str, ...], value: object, prefix: str) -> str:
    """The name of an enum's value, given as its number or as its name in the proto."""
    if isinstance(value, str) and value.startswith(prefix):
        name = value.removeprefix(prefix).lower()
        return name if name in names else names[0]
    number = integer(value)
    return names[number] if 0 <= number < len(names) else names[0]


def status_of(value: object) -> SpanStatus:
    """The status of a span, from its Status."""
    code = value.get("code") if isinstance(value, dict) else None
    name = one_of(STATUSES, code, "STATUS_CODE_")
    return next(status for status in STATUSES if status == name)


def string(value: object) -> str:
    """A string; "" for anything else."""
    return value if isinstance(value, str) else ""


def events_of(fields: Mapping[str, Any]) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Time, name and attributes of each event of a span."""
    events = fields.get("events")
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict):
            at_ns = integer(first_of(event, "timeUnixNano", "time_unix_nano"))
            yield at_ns, string(event.get("name")), attributes_of(event)


def attributes_of(holder: object) -> dict[str, Any]:
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
    array = first_of(value, "arrayValue", "array_value")
    if array is None:
        return _scalar(value)
    items = array.get("values") if isinstance(array, dict) else None
    return tuple(
        scalar
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, dict) and (scalar := _scalar(item)) is not None
    )


def _scalar(value: Mapping[str, Any]) -> object:
    text = first_of(value, "stringValue", "string_value")
    if isinstance(text, str):
        return text
    flag = first_of(value, "boolValue", "bool_value")
    if isinstance(flag, bool):
        return flag
    whole = first_of(value, "intValue", "int_value")
    return signed(whole) if whole is not None else _real(first_of(value, "doubleValue", "double_value"))


def signed(value: object) -> int | None:
    """A whole number with its sign, written as one or as digits; None for anything else."""
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
