"""Typed access to the fields of one line: a value of the wrong type is reported and reads as unknown."""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, TypeVar

from turntrace.core.attributes import Scalar
from turntrace.core.codec.issues import IssueLog
from turntrace.core.codec.records import Record
from turntrace.core.codec.times import MAX_TIME_NS, MIN_TIME_NS, format_time, ms_to_ns, parse_time

__all__ = ["Fields"]

_Choice = TypeVar("_Choice", bound=str)
_MAX_LENGTH_NS: Final = 2**63
_SPAN_ID: Final = re.compile(r"(?!0{16})[0-9a-f]{16}")
_TRACE_ID: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")


class Fields:
    """The fields of one line. Absent and null both read as unknown, without an issue."""

    __slots__ = ("_log", "line", "offset", "record", "values")

    def __init__(self, record: Record, values: dict[str, Any], log: IssueLog) -> None:
        self.record = record
        self.line = record.line
        self.offset = record.offset
        self.values = values
        self._log = log

    def issue(self, code: str, message: str) -> None:
        """Report an issue of this line."""
        self._log.add(code, message, self.line, self.offset)

    def wrong(self, key: str, wanted: str) -> None:
        """Report a field of the wrong type."""
        self.issue("field_type", f"{key} is not {wanted}")

    def text(self, key: str) -> str | None:
        """A string."""
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return value
        self.wrong(key, "a string")
        return None

    def integer(self, key: str) -> int | None:
        """An integer; ``12.0`` is one."""
        value = self.values.get(key)
        if value is None or type(value) is int:
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        self.wrong(key, "an integer")
        return None

    def flag(self, key: str) -> bool | None:
        """A boolean."""
        value = self.values.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(key, "a boolean")
        return None

    def choice(self, key: str, choices: Mapping[str, _Choice], default: _Choice) -> _Choice:
        """One of ``choices``."""
        text = self.text(key)
        if text is None:
            return default
        if text not in choices:
            self.wrong(key, "one of " + ", ".join(choices))
        return choices.get(text, default)

    def strings(self, key: str) -> dict[str, str]:
        """An object of strings."""
        return self._mapping(key, str)

    def integers(self, key: str) -> dict[str, int]:
        """An object of integers."""
        return self._mapping(key, int)

    def scalars(self, key: str) -> dict[str, Scalar]:
        """An object of strings, booleans and finite numbers."""
        return self._mapping(key, str, bool, int, float)

    def _mapping(self, key: str, *kinds: type) -> dict[str, Any]:
        value = self.values.get(key)
        if not value and (value is None or isinstance(value, dict)):
            return {}
        if not isinstance(value, dict):
            self.wrong(key, "an object")
            return {}
        stated = {name: item for name, item in value.items() if item is not None}
        kept = {name: item for name, item in stated.items() if type(item) in kinds and _finite(item)}
        if len(kept) < len(stated):
            self.wrong(key, "an object of " + " or ".join(kind.__name__ for kind in kinds))
        return kept

    def time(self, key: str) -> int | None:
        """A time in ns from RFC 3339 text; an empty string is unknown."""
        text = self.text(key)
        if not text:
            return None
        time_ns = parse_time(text)
        if time_ns is None:
            self.issue("timestamp_invalid", f"{key} is not an RFC 3339 time")
        return time_ns

    def instant(self, ns_key: str, key: str) -> int | None:
        """A time in ns from an integer field, else from the RFC 3339 text beside it."""
        time_ns = self.values.get(ns_key)
        if time_ns is None:
            return self.time(key)
        if type(time_ns) is not int or not MIN_TIME_NS <= time_ns <= MAX_TIME_NS:
            self.wrong(ns_key, "a time in nanoseconds")
            return self.time(key)
        text = self.values.get(key)
        if text is not None and text != format_time(time_ns) and self.time(key) not in {None, time_ns}:
            self.issue("timestamp_invalid", f"{key} and {ns_key} are not the same time")
        return time_ns

    def milliseconds(self, key: str, code: str) -> int | None:
        """A length in ns; anything but a number of milliseconds from 0 to 292 years is reported as ``code``."""
        value = self.values.get(key)
        length_ns = (
            ms_to_ns(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        )
        if length_ns is not None and 0 <= length_ns < _MAX_LENGTH_NS:
            return length_ns
        self.issue(code, f"{key} is not a length in milliseconds")
        return None

    def span_id(self, key: str) -> str | None:
        """16 lower-case hex digits, not all of them 0."""
        return self._id(key, _SPAN_ID)

    def trace_id(self, key: str) -> str | None:
        """32 lower-case hex digits, not all of them 0; an empty string is unknown."""
        return self._id(key, _TRACE_ID) if self.values.get(key) else None

    def _id(self, key: str, pattern: re.Pattern[str]) -> str | None:
        value = self.values.get(key)
        if value is None or (isinstance(value, str) and pattern.fullmatch(value)):
            return value
        self.issue("id_invalid", f"{key} is not {pattern.pattern[-3:-1]} lower-case hex digits")
        return None


def _finite(value: object) -> bool:
    return not isinstance(value, float) or isfinite(value)
