"""The records every layer shares: frozen, slotted, integer nanoseconds since the Unix epoch.

``None`` means unknown, 0 means zero. Ids are lowercase hex (16 digits a span, 32 a trace).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from turntrace.core.attributes import Scalar
from turntrace.core.contract import ISSUE_SEVERITY, Severity
from turntrace.core.outcomes import Outcome, TurnStatus

__all__ = [
    "Event",
    "Issue",
    "Mark",
    "Outcome",
    "ParentSource",
    "Provenance",
    "RawEvent",
    "RawPoint",
    "RawSpan",
    "Span",
    "SpanStatus",
    "Turn",
    "TurnSource",
    "TurnStatus",
    "Usage",
    "Warn",
]

SpanStatus = Literal["unset", "ok", "error"]
ParentSource = Literal["otel", "inferred", "containment"]
Provenance = Literal["reported", "missing", "estimated"]
TurnSource = Literal["api", "dialect", "local_root", "run", "rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one model call consumed; input includes cache reads and writes, output includes reasoning."""

    span_id: str
    provenance: Provenance = "reported"
    model: str | None = None
    provider: str | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    raw: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSpan:
    """A span as its instrumentation made it, before a dialect has read it.

    ``kind`` is the OTel name in lower case (internal, client, server, producer, consumer).
    ``remote_parent`` is true when the parent is known to live in another process.
    """

    span_id: str
    trace_id: str
    parent_id: str | None
    name: str
    start_ns: int
    end_ns: int
    kind: str = "internal"
    scope: str = ""
    status: SpanStatus = "unset"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[tuple[int, str, Mapping[str, Any]], ...] = ()
    resource: Mapping[str, Any] = field(default_factory=dict)
    remote_parent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEvent:
    """A log event of a coding agent; ids are empty where it was written under no span."""

    name: str
    at_ns: int
    trace_id: str = ""
    span_id: str = ""
    scope: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    resource: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPoint:
    """One point of a counter: what was counted since ``start_ns``, or since the last point if ``is_delta``."""

    name: str
    value: int
    start_ns: int
    at_ns: int
    is_delta: bool
    attributes: Mapping[str, Any] = field(default_factory=dict)
    resource: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span of a turn after its dialect was applied. ``phase`` None means structure.

    ``agent`` and ``run_id`` are set on structure that is a nested turn (a sub-agent).
    """

    span_id: str
    parent_id: str | None
    name: str
    phase: str | None
    start_ns: int
    end_ns: int
    parent_source: ParentSource = "otel"
    status: SpanStatus = "unset"
    outcome: Outcome = "ok"
    round: int | None = None
    tool: str | None = None
    model: str | None = None
    agent: str | None = None
    run_id: str | None = None
    attributes: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A named moment; for a turn the first one of a name counts."""

    name: str
    at_ns: int
    span_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Warn:
    """Something a reader of the turn must know; never a reason to stop."""

    code: str
    message: str
    span_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A prefix_hash, output_budget or task_state line: its type and its other fields, unsorted."""

    type: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """What is wrong with an input: code, where (1-based line, byte offset), in words."""

    code: str
    message: str
    line: int | None = None
    offset: int | None = None

    @property
    def severity(self) -> Severity:
        """The severity of the code; an unknown code is an error."""
        return ISSUE_SEVERITY.get(self.code, "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One user prompt until the agent hands control back, before attribution.

    ``started_ns`` and ``completed_ns`` are the window; ``completed_ns`` is None when the root never
    ended and the turn was interrupted. The root is not among ``spans``; spans directly under it carry
    ``span_id`` as their parent. ``parent_run_id`` is set on nested turns only.
    """

    run_id: str
    spans: tuple[Span, ...] = ()
    started_ns: int | None = None
    completed_ns: int | None = None
    trace_id: str = ""
    span_id: str | None = None
    root_name: str = ""
    parent_run_id: str | None = None
    session_id: str = ""
    profile: str = ""
    agent: str | None = None
    model: str | None = None
    provider: str | None = None
    source: str = "native"
    turn_source: TurnSource = "api"
    status: TurnStatus = "ok"
    labels: Mapping[str, str] = field(default_factory=dict)
    first_chunk_ns: int | None = None
    first_token_ns: int | None = None
    first_visible_ns: int | None = None
    first_useful_ns: int | None = None
    rounds: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    usage: tuple[Usage, ...] = ()
    marks: tuple[Mark, ...] = ()
    events: tuple[Event, ...] = ()
    warnings: tuple[Warn, ...] = ()
    sampled: bool | None = None
    dropped: int = 0
    schema_version: int | None = 1
