"""What lines say of a turn beside its spans: counters, events, usage, marks and warnings."""

from collections.abc import Callable
from typing import Final, get_args

from turntrace.core.attributes import Scalar
from turntrace.core.codec.event_fields import EVENT_FIELDS
from turntrace.core.codec.fields import Fields
from turntrace.core.model import Event, Mark, Provenance, Usage, Warn

__all__ = ["Facts"]

_PROVENANCES: Final[dict[str, Provenance]] = {name: name for name in get_args(Provenance)}
_MIN_COUNT: Final = -(2**63)
_MAX_COUNT: Final = 2**63 - 1


class Facts:
    """Gathers the facts of one turn. With ``running`` a counter line holds the total so far, else all."""

    __slots__ = ("_calls", "counters", "dropped", "events", "marks", "running", "usage", "warnings")

    def __init__(self, *, running: bool) -> None:
        self.running = running
        self.counters: dict[str, int] = {}
        self.events: list[Event] = []
        self.usage: list[Usage] = []
        self.marks: list[Mark] = []
        self.warnings: list[Warn] = []
        self.dropped = 0
        self._calls: set[str] = set()

    def is_new_call(self, span_id: str) -> bool:
        """Whether this is the first report of a call, by the id of its span."""
        is_new = span_id not in self._calls
        self._calls.add(span_id)
        return is_new

    def read(self, kind: str, fields: Fields) -> bool:
        """Take a line of type ``kind``; False when it is none of the five."""
        reader = _READERS.get(kind)
        if reader is None:
            return False
        self.dropped += not reader(self, fields)
        return True


def _read_counter(facts: Facts, fields: Fields) -> bool:
    name = fields.values.get("name")
    if not isinstance(name, str) or not name.strip():
        fields.issue("counter_name_missing", "a counter without a name")
        return False
    value = _count(fields)
    if value is None:
        fields.issue("counter_value_invalid", f"the value of counter {name} is no 64-bit integer")
        return False
    if facts.running or name not in facts.counters:
        facts.counters[name] = value
    else:
        fields.issue("counter_duplicate", f"counter {name} comes twice; the first line counts")
    return True


def _read_event(facts: Facts, fields: Fields) -> bool:
    kind: str = fields.values["type"]
    known = EVENT_FIELDS[kind]
    kept: dict[str, Scalar | None] = {}
    for key, value in fields.values.items():
        if key in known and type(value) is not type(known[key]) and not _whole(value, known[key]):
            fields.wrong(key, f"of type {type(known[key]).__name__}")
        elif key != "type" and (value is None or isinstance(value, str | bool | int | float)):
            kept[key] = value
    facts.events.append(Event(type=kind, fields=kept))
    return True


def _read_usage(facts: Facts, fields: Fields) -> bool:
    usage = Usage(
        span_id=fields.span_id("span_id") or "",
        provenance=fields.choice("provenance", _PROVENANCES, "reported"),
        model=fields.text("model"),
        provider=fields.text("provider"),
        input_tokens=fields.integer("input_tokens"),
        cached_input_tokens=fields.integer("cached_input_tokens"),
        cache_write_tokens=fields.integer("cache_write_tokens"),
        output_tokens=fields.integer("output_tokens"),
        reasoning_tokens=fields.integer("reasoning_tokens"),
        raw=fields.integers("raw"),
    )
    if not facts.running and usage.span_id and not facts.is_new_call(usage.span_id):
        fields.issue(
            "duplicate_span", f"the usage of span {usage.span_id} came before; the first line counts"
        )
        return True
    facts.usage.append(usage)
    return True


def _read_mark(facts: Facts, fields: Fields) -> bool:
    name, at_ns = fields.text("name"), fields.instant("at_ns", "at")
    if name is None or at_ns is None:
        fields.issue("field_type", "a mark without a name or a time")
        return False
    facts.marks.append(Mark(name=name, at_ns=at_ns, span_id=fields.span_id("span_id")))
    return True


def _read_warning(facts: Facts, fields: Fields) -> bool:
    code, span_ids = fields.text("code"), fields.values.get("span_ids", [])
    if code is None or not isinstance(span_ids, list) or not all(isinstance(item, str) for item in span_ids):
        fields.issue("field_type", "a warning without a code or with span ids that are no strings")
        return False
    facts.warnings.append(Warn(code=code, message=fields.text("message") or "", span_ids=tuple(span_ids)))
    return True


def _count(fields: Fields) -> int | None:
    value = fields.values.get("value")
    if isinstance(value, float):  # 1e3 and 12.0 are integers, but a float may have been rounded
        return fields.record.exact_int("value")
    return value if type(value) is int and _MIN_COUNT <= value <= _MAX_COUNT else None


def _whole(value: object, like: object) -> bool:
    return type(like) is int and isinstance(value, float) and value.is_integer()


_READERS: Final[dict[str, Callable[[Facts, Fields], bool]]] = {
    "counter": _read_counter,
    **dict.fromkeys(EVENT_FIELDS, _read_event),
    "usage": _read_usage,
    "mark": _read_mark,
    "warning": _read_warning,
}
