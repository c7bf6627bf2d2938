"""Header lines to the fields of a turn."""

from collections.abc import Callable
from typing import Any, Final, get_args

from turntrace.core.codec.fields import Fields
from turntrace.core.contract import SCHEMA_VERSION
from turntrace.core.model import TurnSource, TurnStatus

__all__ = ["TURN_STATUSES", "is_block_header", "read_header", "read_turn_fields"]

TURN_STATUSES: Final[dict[str, TurnStatus]] = {name: name for name in get_args(TurnStatus)}
_TURN_SOURCES: Final[dict[str, TurnSource]] = {name: name for name in get_args(TurnSource)}


def is_block_header(values: dict[str, Any]) -> bool:
    """Whether a header starts a block of this contract, and does not merely come a second time."""
    return "schema_version" in values


def read_header(fields: Fields) -> dict[str, Any]:
    """What the header of a block says of its turn, as arguments of Turn."""
    known = read_turn_fields(fields)
    started_ns, completed_ns = fields.time("started_at"), fields.time("completed_at")
    if started_ns is not None and completed_ns is not None and completed_ns < started_ns:
        fields.issue("window_negative", "completed_at is before started_at; the end is unknown")
        completed_ns = None
    if fields.values.get("name") != "run":
        fields.issue("header_name", "the header's name is not run")
    unknown = "interrupted" if completed_ns is None else "ok"
    return {
        "run_id": "",
        **known,
        "started_ns": started_ns,
        "completed_ns": completed_ns,
        "status": fields.choice("status", TURN_STATUSES, unknown),
        "schema_version": _schema_version(fields),
    }


def read_turn_fields(fields: Fields) -> dict[str, Any]:
    """What a line says of its turn apart from window and status, as arguments of Turn; only what is known."""
    known = {argument: read(fields, key) for argument, (key, read) in _READERS.items()}
    return {argument: value for argument, value in known.items() if value is not None}


def _turn_source(fields: Fields, key: str) -> TurnSource | None:
    return fields.choice(key, _TURN_SOURCES, "api") if key in fields.values else None


def _schema_version(fields: Fields) -> int | None:
    version = fields.integer("schema_version")
    if version is not None and version > SCHEMA_VERSION:
        fields.issue("unknown_type", f"schema_version {version} is newer than this reader")
    return version


_READERS: Final[dict[str, tuple[str, Callable[[Fields, str], Any]]]] = {
    "session_id": ("session_id", Fields.text),
    "run_id": ("run_id", Fields.text),
    "profile": ("profile", Fields.text),
    "first_chunk_ns": ("first_chunk_at", Fields.time),
    "first_token_ns": ("first_token_at", Fields.time),
    "first_useful_ns": ("first_useful_at", Fields.time),
    "first_visible_ns": ("first_visible_at", Fields.time),
    "trace_id": ("trace_id", Fields.trace_id),
    "span_id": ("span_id", Fields.span_id),
    "root_name": ("span_name", Fields.text),
    "parent_run_id": ("parent_run_id", Fields.text),
    "turn_source": ("turn_source", _turn_source),
    "agent": ("agent", Fields.text),
    "model": ("model", Fields.text),
    "provider": ("provider", Fields.text),
    "labels": ("labels", Fields.strings),
    "rounds": ("rounds", Fields.integer),
    "sampled": ("sampled", Fields.flag),
    "dropped": ("dropped", Fields.integer),
    "source": ("source", Fields.text),
}
