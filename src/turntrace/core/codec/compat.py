"""Zero's own reader, its faults included: what Gitlawb/zero 0.8 makes of a file.

Source: ``ReadNDJSON`` of Gitlawb/zero 0.8, measured. Integers wrap and saturate as Go's do on amd64.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isinf
from typing import Any, Final

import orjson

from turntrace.core.codec.event_fields import EVENT_FIELDS
from turntrace.core.codec.json_text import SPACE, JsonTextError, decoded, first_value, number
from turntrace.core.codec.times import parse_time_compat
from turntrace.core.intervals import merge
from turntrace.errors import TraceReadError

__all__ = ["MAX_LINE_BYTES", "CompatSpan", "CompatTrace", "read_compat"]

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
"""A line of this many bytes or more, its LF not counted, fails the whole file."""

_MIN_INT64: Final = -(2**63)
_MAX_INT64: Final = 2**63 - 1
_EMPTY: Final = "parse trace: empty input (no trace emitted)"
_NO_HEADER: Final = "parse trace: not a valid NDJSON trace (no type:trace header)"
_NO_EVENTS: Final = "parse trace: header present but no events recovered (corrupt or truncated)"
_TOO_LONG: Final = "bufio.Scanner: token too long"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatSpan:
    """A span as zero stores it; times in ns, None is its zero time."""

    name: str
    duration_ns: int
    exclusive_ns: int
    parent: str
    start_ns: int | None
    end_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatTrace:
    """A trace as zero stores it; times in ns, None is its zero time. Equal counters are all there."""

    session_id: str
    run_id: str
    profile: str
    started_ns: int | None
    completed_ns: int | None
    first_visible_ns: int | None
    first_useful_ns: int | None
    first_token_ns: int | None
    spans: tuple[CompatSpan, ...]
    counters: tuple[tuple[str, int], ...]
    prefix_hashes: tuple[Mapping[str, str | int | bool], ...]
    output_budgets: tuple[Mapping[str, str | int | bool], ...]
    task_states: tuple[Mapping[str, str | int | bool], ...]

    @property
    def wall_ns(self) -> int:
        """Completed minus started, 0 when one of them is unknown."""
        if self.started_ns is None or self.completed_ns is None:
            return 0
        return _saturated(self.completed_ns - self.started_ns)

    @property
    def attributed_ns(self) -> int:
        """The sum of the durations of spans without a parent."""
        return _wrapped(sum(span.duration_ns for span in self.spans if not span.parent))

    @property
    def coverage(self) -> float:
        """The union of the intervals over the wall, at most 1; not cut to the window."""
        wall_ns, union_ns = self.wall_ns, _union_ns(self.spans)
        return min(1.0, float(union_ns) / float(wall_ns)) if wall_ns > 0 and union_ns > 0 else 0.0


def read_compat(data: bytes) -> CompatTrace:
    r"""What zero's reader returns for a file.

    >>> trace = read_compat(b'{"type":"trace"}\n{"type":"counter","name":"tool_calls","value":"2"}\n')
    >>> trace.counters
    (('tool_calls', 0),)

    Raises:
        TraceReadError: where zero's reader fails, with its message.
    """
    header: dict[str, Any] | None = None
    events: dict[str, list[dict[str, Any]]] = {kind: [] for kind in ("span", "counter", *EVENT_FIELDS)}
    for fields in _objects(data):
        kind = None if fields is None else _text(fields, "type")
        if kind == "trace":
            header = fields
        elif header is None:
            raise TraceReadError(_NO_HEADER)
        elif fields is not None and kind in events:
            events[kind].append(fields)
    if header is None:
        raise TraceReadError(_EMPTY)
    if not any(events.values()):
        raise TraceReadError(_NO_EVENTS)
    return _trace(header, events)


def _objects(data: bytes) -> Iterator[dict[str, Any] | None]:
    """The object of each line that is not blank: empty for null, None where decoding fails."""
    for raw in data.split(b"\n"):
        if len(raw) >= MAX_LINE_BYTES:
            raise TraceReadError(_TOO_LONG)
        if not raw or raw.isspace():
            continue
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            text = decoded(raw)[0].strip(SPACE)
            if not text:
                continue
            value = _first_value(text)
        yield {} if value is None else value if isinstance(value, dict) else None


def _first_value(text: str) -> object:
    try:
        return first_value(text, _number).value
    except JsonTextError:
        return False  # no object, as little as any other scalar


def _number(text: str) -> int | float:
    value = number(text)
    return 0.0 if isinf(value) else value


def _trace(header: dict[str, Any], events: dict[str, list[dict[str, Any]]]) -> CompatTrace:
    return CompatTrace(
        session_id=_text(header, "session_id"),
        run_id=_text(header, "run_id"),
        profile=_text(header, "profile"),
        started_ns=_time_ns(header, "started_at"),
        completed_ns=_time_ns(header, "completed_at"),
        first_visible_ns=_time_ns(header, "first_visible_at"),
        first_useful_ns=_time_ns(header, "first_useful_at"),
        first_token_ns=_time_ns(header, "first_token_at"),
        spans=tuple(map(_span, events["span"])),
        counters=tuple((_text(fields, "name"), _int64(fields.get("value"))) for fields in events["counter"]),
        prefix_hashes=_events("prefix_hash", events),
        output_budgets=_events("output_budget", events),
        task_states=_events("task_state", events),
    )


def _span(fields: dict[str, Any]) -> CompatSpan:
    start_ns, end_ns = _time_ns(fields, "start"), _time_ns(fields, "end")
    duration_ns = _duration_ns(fields.get("duration_ms"))
    if end_ns is None and start_ns is not None:
        end_ns = start_ns + duration_ns
    exclusive_ns = _duration_ns(fields["exclusive_ms"]) if "exclusive_ms" in fields else duration_ns
    return CompatSpan(
        name=_text(fields, "name"),
        duration_ns=duration_ns,
        exclusive_ns=exclusive_ns,
        parent=_text(fields, "parent"),
        start_ns=start_ns,
        end_ns=end_ns,
    )


def _events(kind: str, events: dict[str, list[dict[str, Any]]]) -> tuple[Mapping[str, str | int | bool], ...]:
    defaults = EVENT_FIELDS[kind]
    return tuple(
        {key: _like(fields.get(key), default=default) for key, default in defaults.items()}
        for fields in events[kind]
    )


def _like(value: object, *, default: str | int | bool) -> str | int | bool:
    if isinstance(default, bool):
        return value is True
    if isinstance(default, int):
        return _int64(value)
    return value if isinstance(value, str) else default


def _text(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _time_ns(fields: dict[str, Any], key: str) -> int | None:
    return parse_time_compat(_text(fields, key))


def _duration_ns(value: object) -> int:
    """Milliseconds times 1e6 in floating point, cut: the microsecond that zero loses."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return _truncated(float(value) * 1e6)


def _int64(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    if isinstance(value, int) and _MIN_INT64 <= value <= _MAX_INT64:
        return value
    return _truncated(float(value))


def _truncated(value: float) -> int:
    """Go's conversion to int64 on amd64: what does not fit becomes the smallest one."""
    return int(value) if _MIN_INT64 <= value < _MAX_INT64 else _MIN_INT64


def _saturated(value: int) -> int:
    """Go's ``time.Time.Sub``."""
    return max(_MIN_INT64, min(value, _MAX_INT64))


def _wrapped(value: int) -> int:
    """Go's sum of int64."""
    return (value - _MIN_INT64) % 2**64 + _MIN_INT64


def _union_ns(spans: Iterable[CompatSpan]) -> int:
    intervals = [
        (span.start_ns, span.end_ns)
        for span in spans
        if span.start_ns is not None and span.end_ns is not None
    ]
    return _wrapped(sum(_saturated(end - start) for start, end in merge(intervals)))
