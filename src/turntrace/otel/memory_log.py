"""The log of a turn that has no journal: recording without a file, to standard error, or journals off."""

from dataclasses import replace
from pathlib import Path

from turntrace.core.model import Event, Mark, Turn, Usage, Warn
from turntrace.otel.live_turn import LiveTurn, OpenSpan
from turntrace.otel.span_table import MAX_SPANS, SpanTable
from turntrace.otel.turn_record import turn_record

__all__ = ["MemoryLog"]


class MemoryLog:
    """Packed spans and the few other facts of one turn. See TurnLog."""

    def __init__(self, turn: LiveTurn, out: Path | None) -> None:
        self.out = out
        self._turn = turn
        self._run_id = turn.run_id
        self._table = SpanTable()
        self._marks: list[Mark] = []
        self._usage: list[Usage] = []
        self._warnings: list[Warn] = []
        self._events: list[Event] = []

    def opened(self) -> None:
        """See TurnLog."""

    def started(self, opened: OpenSpan) -> None:
        """See TurnLog."""

    def ended(self, opened: OpenSpan) -> None:
        """See TurnLog."""
        if opened.span_id != self._turn.root_id:
            with self._turn.lock:
                self._table.add(opened)

    def cut(self, opened: OpenSpan) -> None:
        """See TurnLog."""
        self.ended(opened)

    def counter(self, name: str, total: int) -> None:
        """See TurnLog."""

    def mark(self, mark: Mark) -> None:
        """See TurnLog."""
        self._marks.append(mark)

    def usage(self, usage: Usage) -> None:
        """See TurnLog."""
        self._usage.append(usage)

    def warning(self, warning: Warn) -> None:
        """See TurnLog."""
        self._warnings.append(warning)

    def event(self, event: Event) -> None:
        """See TurnLog."""
        self._events.append(event)

    def flush(self) -> None:
        """See TurnLog."""

    def record(self) -> Turn:
        """See TurnLog."""
        with self._turn.lock:
            spans = tuple(self._table.spans())
        warnings = list(self._warnings)
        if self._table.count > MAX_SPANS:
            warnings.append(
                Warn(code="too_many_spans", message=f"more than {MAX_SPANS} spans without a file")
            )
        record = turn_record(self._turn, spans, self._usage, self._marks, warnings)
        return replace(
            record, run_id=self._run_id, events=tuple(self._events)
        )  # a turn that was rolled over goes on under another

    def has_turn_elsewhere(self) -> bool:
        """See TurnLog."""
        return False

    def discard(self) -> None:
        """See TurnLog."""
        self._table = SpanTable()

    def leave(self) -> None:
        """See TurnLog."""
        self.discard()

    def close(self) -> None:
        """See TurnLog."""

    def forget(self) -> None:
        """See TurnLog."""
