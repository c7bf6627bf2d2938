"""OTLP/JSON requests held to the bounds of a receiver, in place."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from turntrace.collect.counts import Drop
from turntrace.collect.limits import MAX_ANY_VALUE_DEPTH, RefusedError
from turntrace.collect.sink import Signal
from turntrace.files.otlp_values import SPAN_ID_BYTES, TRACE_ID_BYTES, first_of, id_of, nanoseconds

__all__ = ["Bounded", "bounded_json"]

_LEVELS: Final[dict[Signal, tuple[tuple[str, ...], ...]]] = {
    "traces": (
        ("resourceSpans", "resource_spans"),
        ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"),
        ("spans",),
    ),
    "metrics": (("resourceMetrics", "resource_metrics"), ("scopeMetrics", "scope_metrics"), ("metrics",)),
    "logs": (
        ("resourceLogs", "resource_logs"),
        ("scopeLogs", "scope_logs"),
        ("logRecords", "log_records"),
    ),
}

_NESTING: Final = frozenset({"value", "arrayValue", "array_value"})


@dataclass(slots=True)
class Bounded:
    """What was found in a document, and what was taken out of it."""

    items: int = 0
    rejected: int = 0
    dropped: Counter[Drop] = field(default_factory=Counter)


def bounded_json(signal: Signal, document: dict[str, Any], max_attributes: int) -> Bounded:
    """Take out of ``document`` what is out of bounds.

    Raises:
        RefusedError: with status 400, when a list of the signal is none.
    """
    found = Bounded()
    for holder in _holders(document, _LEVELS[signal][:-1]):
        items = _list(holder, _LEVELS[signal][-1])
        kept = [item for item in items if signal != "traces" or _is_valid(item)]
        if len(kept) != len(items):
            found.rejected += len(items) - len(kept)
            found.dropped["invalid"] = found.rejected
            items[:] = kept
        found.items += len(kept)
        for item in kept:
            _bound(item, max_attributes, found.dropped)
    return found


def _holders(document: dict[str, Any], levels: tuple[tuple[str, ...], ...]) -> Iterator[dict[str, Any]]:
    if not levels:
        yield document
        return
    outer, inner = levels
    for middle in _list(document, outer):
        yield from _list(middle, inner)


def _list(holder: dict[str, Any], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    value = first_of(holder, *keys)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise RefusedError("malformed", 400, f"{keys[0]} is no list of objects")
    return value


def _is_valid(span: dict[str, Any]) -> bool:
    return bool(
        id_of(first_of(span, "traceId", "trace_id"), TRACE_ID_BYTES)
        and id_of(first_of(span, "spanId", "span_id"), SPAN_ID_BYTES)
        and nanoseconds(first_of(span, "startTimeUnixNano", "start_time_unix_nano"))
    )


def _bound(item: dict[str, Any], max_attributes: int, dropped: Counter[Drop]) -> None:
    attributes = item.get("attributes")
    if not isinstance(attributes, list):
        return
    kept = [one for one in attributes[:max_attributes] if not _is_too_deep(one)]
    lost = len(attributes) - len(kept)
    if lost:
        extra = max(0, len(attributes) - max_attributes)
        dropped["attributes"] += extra
        dropped["nesting"] += lost - extra
        attributes[:] = kept


def _is_too_deep(attribute: object) -> bool:
    """Whether AnyValues lie in one another deeper than the bound; each is a value, or an item of an array."""
    below: list[tuple[object, int]] = [(attribute, 0)]
    while below:
        value, depth = below.pop()
        if depth > MAX_ANY_VALUE_DEPTH:
            return True
        if isinstance(value, dict):
            below += [(inner, depth + (name in _NESTING)) for name, inner in value.items()]
        elif isinstance(value, list):
            below += [(inner, depth) for inner in value]
    return False
