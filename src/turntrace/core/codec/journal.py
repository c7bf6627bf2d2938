"""The journal of a live turn: one line for each thing that happens, and the turn that a journal tells.

The process that runs a turn writes its journal line by line, so that a kill at any moment loses nothing
that was written. Journal lines carry integer times only. The root has lines like any span: its
``span_id`` is the header's.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from turntrace.core.attributes import Scalar
from turntrace.core.codec.encode import event_fields, turn_fields, usage_fields, warning_fields
from turntrace.core.codec.facts import Facts
from turntrace.core.codec.fields import Fields
from turntrace.core.codec.fragments import merge_fragments
from turntrace.core.codec.headers import TURN_STATUSES, read_turn_fields
from turntrace.core.codec.issues import IssueLog
from turntrace.core.codec.json_line import json_bytes, json_line
from turntrace.core.codec.records import Record, read_records
from turntrace.core.codec.spans import read_span
from turntrace.core.contract import MARKS
from turntrace.core.model import (
    Event,
    Issue,
    Mark,
    Outcome,
    ParentSource,
    Span,
    SpanStatus,
    Turn,
    TurnStatus,
    Usage,
    Warn,
)
from turntrace.errors import TraceReadError

__all__ = [
    "Journal",
    "counter_line",
    "event_line",
    "header_line",
    "mark_line",
    "merge_fragments",
    "read_journal",
    "root_line",
    "span_line",
    "span_start_line",
    "usage_line",
    "warning_line",
]

_CACHED_CHARACTERS: Final = 256
_NO_HEADER: Final = "the journal has no header"


def header_line(turn: Turn, *, pid: int, pid_started: int | None = None, fragment: bool = False) -> bytes:
    """The first line: what is known of the turn now, and the process that writes.

    ``pid_started`` tells a process from a later one with its number. A ``fragment`` holds spans whose
    root is in another process. A later header line replaces what it names.
    """
    fields = {**turn_fields(turn), "completed_at": "", "pid": pid}
    if turn.started_ns is not None:
        fields["start_ns"] = turn.started_ns
    if pid_started is not None:
        fields["pid_started"] = pid_started
    if fragment:
        fields["fragment"] = True
    return json_line(fields)


def span_start_line(
    name: str | None, span_name: str, span_id: int, parent_id: int | None, turn_id: int, start_ns: int
) -> bytes:
    """The line of a span that opens; ``name`` is its phase, None for structure."""
    made = _start if len(span_name) <= _CACHED_CHARACTERS else _start.__wrapped__
    return made(name, span_name, turn_id) % (_id(parent_id), span_id, start_ns)


def span_line(  # noqa: PLR0913, PLR0917 - plain arguments: called at every end of a span
    name: str | None,
    span_name: str,
    span_id: int,
    parent_id: int | None,
    turn_id: int,
    start_ns: int,
    end_ns: int,
    *,
    status: SpanStatus = "unset",
    outcome: Outcome = "ok",
    round_number: int | None = None,
    tool: str | None = None,
    model: str | None = None,
    agent: str | None = None,
    run_id: str | None = None,
    parent_source: ParentSource = "otel",
    attributes: Mapping[str, Scalar] | None = None,
) -> bytes:
    """The line of a span that ended; ``name`` is its phase, None for structure."""
    made = _end if len(span_name) <= _CACHED_CHARACTERS else _end.__wrapped__
    template = made(name, outcome, span_name, status, turn_id, round_number)
    line = template % (end_ns, _id(parent_id), span_id, start_ns)
    if tool is not None:
        line += b',"tool":' + _json(tool)
    if model is not None:
        line += b',"model":' + _json(model)
    if agent is not None:
        line += b',"agent":' + _json(agent)
    if run_id is not None:
        line += b',"run_id":' + json_bytes(run_id)
    if parent_source != "otel":
        line += b',"parent_source":' + _word(parent_source)
    if attributes:
        line += b',"attributes":' + json_bytes(attributes)
    return line + b"}\n"


def root_line(turn: Turn, *, status: SpanStatus = "unset", outcome: Outcome = "ok") -> bytes:
    """The root's line at its end, with all that is known of the turn by then.

    ``turn`` has its window, its status and the id of its root.
    """
    fields = turn_fields(turn)
    fields |= {"type": "span", "name": None, "start_ns": turn.started_ns, "end_ns": turn.completed_ns}
    return json_line({**fields, "status": status, "outcome": outcome, "turn_status": turn.status})


def counter_line(name: str, total: int) -> bytes:
    """The line of a counter: its total so far."""
    return b'{"name":%b,"type":"counter","value":%d}\n' % (_json(name), total)


def mark_line(mark: Mark) -> bytes:
    """The line of a moment."""
    return json_line({"type": "mark", "name": mark.name, "at_ns": mark.at_ns, "span_id": mark.span_id})


def usage_line(usage: Usage) -> bytes:
    """The line of what one model call consumed."""
    return json_line(usage_fields(usage))


def warning_line(warn: Warn) -> bytes:
    """The line of something a reader must know."""
    return json_line(warning_fields(warn))


def event_line(event: Event) -> bytes:
    """The line of a prefix_hash, output_budget or task_state event."""
    return json_line(event_fields(event))


_START: Final = (
    b'{"name":%b,"parent_id":%%b,"span_id":"%%016x","span_name":%b,"start_ns":%%d,"turn_id":%b,'
    b'"type":"span_start"}\n'
)
_END: Final = (
    b'{"end_ns":%%d,"name":%b,"outcome":%b,"parent_id":%%b,"span_id":"%%016x","span_name":%b,'
    b'"start_ns":%%d,"status":%b,"turn_id":%b,"type":"span"%b'
)
"""Formatting bytes takes two thirds of the time that a JSON encoder takes for a dictionary made for it."""


@lru_cache(maxsize=1024)
def _start(name: str | None, span_name: str, turn_id: int) -> bytes:
    """The line's template for spans that have this in common; time and ids are left to fill in."""
    known = (json_bytes(name), json_bytes(span_name), _id(turn_id))
    return _START % tuple(part.replace(b"%", b"%%") for part in known)


@lru_cache(maxsize=1024)
def _end(
    name: str | None,
    outcome: Outcome,
    span_name: str,
    status: SpanStatus,
    turn_id: int,
    round_number: int | None,
) -> bytes:
    """The line's template for spans that have this in common; times and ids are left to fill in."""
    known = (json_bytes(name), json_bytes(outcome), json_bytes(span_name), json_bytes(status), _id(turn_id))
    rounds = b"" if round_number is None else b',"round":%d' % round_number
    return _END % (*(part.replace(b"%", b"%%") for part in known), rounds)


def _id(span_id: int | None) -> bytes:
    return b'"%016x"' % span_id if span_id else b"null"


def _json(text: str) -> bytes:
    return _word(text) if len(text) <= _CACHED_CHARACTERS else json_bytes(text)


@lru_cache(maxsize=1024)
def _word(text: str | None) -> bytes:
    """The JSON of a text that comes again and again."""
    return json_bytes(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What a journal tells. ``open_span_ids`` are spans that had started and not ended, the root left out.

    They are among the turn's spans, closed at the last time the journal mentions, ``incomplete``.
    """

    turn: Turn
    fragment: bool
    pid: int | None
    pid_started: int | None
    root_ended: bool
    open_span_ids: tuple[str, ...]
    issues: tuple[Issue, ...]


def read_journal(lines: Iterable[bytes], *, path: str = "") -> Journal:
    """The turn that the raw ``lines`` of a journal tell, in one pass.

    Without the end of the root the turn is ``interrupted`` and its window open. Of damaged lines only an
    unterminated last one is expected; every other is an issue too, and the rest is read.

    Raises:
        TraceReadError: when there is no header.
    """
    reader = _JournalReader()
    for record in read_records(lines):
        reader.read(record)
    if not reader.known:
        raise TraceReadError(_NO_HEADER, path=path)
    return reader.close()


class _JournalReader:
    """A journal while its lines come in."""

    __slots__ = (
        "_ended",
        "_facts",
        "_fragment",
        "_last_ns",
        "_log",
        "_open",
        "_pid",
        "_pid_started",
        "_started_ns",
        "_turn_status",
        "known",
    )

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        self._facts = Facts(running=True)
        self._log = IssueLog()
        self._open: dict[str, Span] = {}
        self._ended: list[Span] = []
        self._started_ns: int | None = None
        self._last_ns: int | None = None
        self._turn_status: TurnStatus | None = None
        self._fragment = False
        self._pid: int | None = None
        self._pid_started: int | None = None

    def read(self, record: Record) -> None:
        """Take a line."""
        for code, message in record.problems:
            self._log.add(code, message, record.line, record.offset)
        if record.fields is None:
            return
        fields = Fields(record, record.fields, self._log)
        kind = record.fields.get("type")
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        if reader is not None:
            reader(self, fields)
        elif not isinstance(kind, str) or not self._facts.read(kind, fields):
            fields.issue("unknown_type", "the type of the line is unknown; the line is skipped")

    def header(self, fields: Fields) -> None:
        """Take a header; a later one replaces what it names."""
        self.known = {"run_id": "", **self.known, **read_turn_fields(fields)}
        started_ns = self._seen(fields.instant("start_ns", "started_at"))
        pid, pid_started = fields.integer("pid"), fields.integer("pid_started")
        self._started_ns = self._started_ns if started_ns is None else started_ns
        self._pid = self._pid if pid is None else pid
        self._pid_started = self._pid_started if pid_started is None else pid_started
        self._fragment |= bool(fields.flag("fragment"))

    def start(self, fields: Fields) -> None:
        """Take the start of a span: until it ends it is incomplete."""
        span_id, start_ns = fields.span_id("span_id"), self._seen(fields.instant("start_ns", "start"))
        if span_id is None or start_ns is None:
            fields.issue("id_invalid", "a start without an id or a time")
            return
        span = read_span(fields, span_id, fields.text("name"), start_ns, start_ns)
        self._open[span_id] = replace(span, outcome="incomplete")

    def end(self, fields: Fields) -> None:
        """Take the end of a span."""
        span_id, start_ns = fields.span_id("span_id"), self._seen(fields.instant("start_ns", "start"))
        end_ns = self._seen(fields.instant("end_ns", "end"))
        if span_id is None or start_ns is None or end_ns is None:
            fields.issue("id_invalid", "a span without an id or an interval")
            return
        self._open.pop(span_id, None)
        self._ended.append(read_span(fields, span_id, fields.text("name"), start_ns, end_ns))
        if "turn_status" in fields.values:
            self.known |= read_turn_fields(fields)
            self._turn_status = fields.choice("turn_status", TURN_STATUSES, "ok")

    def _seen(self, time_ns: int | None) -> int | None:
        if time_ns is not None and (self._last_ns is None or time_ns > self._last_ns):
            self._last_ns = time_ns
        return time_ns

    def close(self) -> Journal:
        """What the lines told."""
        root_id: str | None = self.known.get("span_id")
        ended = {span.span_id: span for span in self._ended}
        if len(ended) < len(self._ended):  # by its thread and by who closed the turn
            self._ended = list(ended.values())
        for span_id in self._open.keys() & ended.keys():
            del self._open[span_id]  # told by one thread before another told its start
        last_ns = max((self._last_ns or 0, *(mark.at_ns for mark in self._facts.marks)))
        root = next((span for span in reversed(self._ended) if span.span_id == root_id), None)
        opened = root or self._open.pop(root_id or "", None)
        if root is None and not self._fragment:
            self._log.add("interrupted", "the root of the turn never ended", None, None)
        open_spans = [replace(span, end_ns=max(last_ns, span.start_ns)) for span in self._open.values()]
        spans = (*(span for span in self._ended if span.span_id != root_id), *open_spans)
        if self._turn_status is None:
            self.known["rounds"] = _rounds(spans, self.known.get("rounds"))
        return Journal(
            turn=Turn(
                **{**self.known, **self._first_moments(), **_said_by_root(root)},
                spans=spans,
                started_ns=self._started_ns if opened is None else opened.start_ns,
                completed_ns=None if root is None else max(root.start_ns, root.end_ns),
                status="interrupted" if root is None else self._turn_status or _turn_status(root),
                counters=self._facts.counters,
                usage=tuple(self._facts.usage),
                marks=tuple(self._facts.marks),
                events=tuple(self._facts.events),
                warnings=tuple(self._facts.warnings),
            ),
            fragment=self._fragment,
            pid=self._pid,
            pid_started=self._pid_started,
            root_ended=root is not None,
            open_span_ids=tuple(self._open),
            issues=self._log.sorted(),
        )

    def _first_moments(self) -> dict[str, int]:
        """The earliest mark of each name that is a moment of the turn, as arguments of Turn."""
        first_ns: dict[str, int] = {}
        for mark in self._facts.marks:
            if mark.name in MARKS:
                key = f"{mark.name}_ns"
                first_ns[key] = min(mark.at_ns, first_ns.get(key, mark.at_ns))
        return first_ns


def _said_by_root(root: Span | None) -> dict[str, str]:
    said = {} if root is None else {"agent": root.agent, "model": root.model}
    return {argument: value for argument, value in said.items() if value is not None}


def _rounds(spans: Iterable[Span], known: int | None) -> int | None:
    """The rounds a turn has come to, by its spans; a nested turn counts its own."""
    below: dict[str | None, list[Span]] = {}
    nested: list[Span] = []
    for span in spans:
        (nested if span.run_id is not None else below.setdefault(span.parent_id, [])).append(span)
    while nested:
        nested += below.pop(nested.pop().span_id, ())
    rounds = [known, *(span.round for group in below.values() for span in group)]
    return max((number for number in rounds if number is not None), default=None)


def _turn_status(root: Span) -> TurnStatus:
    if root.outcome == "cancelled":
        return "cancelled"
    if root.outcome == "incomplete":
        return "interrupted"
    return "error" if root.outcome == "error" or root.status == "error" else "ok"


_READERS: Final[dict[str, Callable[[_JournalReader, Fields], None]]] = {
    "trace": _JournalReader.header,
    "span_start": _JournalReader.start,
    "span": _JournalReader.end,
}
