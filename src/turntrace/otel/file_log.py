"""The log of a turn on disk: a journal beside the trace file.

In sync mode a line is written before the call of the span returns; but that a short phase began, in which
nothing of the agent's runs that could kill the process, is written with the next line or 50 ms later. In
thread mode the writer encodes and writes all lines. A span that is over by then has the line of its end
only. A disk that takes longer than 100 ms twice moves a sync journal to the thread.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic_ns
from typing import Any, Final

from turntrace.core.attributes import content_free
from turntrace.core.codec import journal as lines
from turntrace.core.model import Event, Mark, Turn, Usage, Warn
from turntrace.core.retry_waits import is_retry_wait
from turntrace.errors import TraceReadError
from turntrace.files.fragments import Part, parts_with_trace, remove_joined, turn_lives_elsewhere
from turntrace.files.intake import IntakeJournal
from turntrace.files.journal import JournalFile
from turntrace.files.journal_record import journal_record
from turntrace.otel.live_turn import LiveTurn, OpenSpan
from turntrace.otel.recording import Recording
from turntrace.otel.turn_record import turn_record

__all__ = ["FileLog"]

_SLOW_NS: Final = 100_000_000
_AT_ONCE: Final = frozenset({None, "generation", "tool_execution", "process_wait", "verification"})
"""Phases in which a process may die: that one began must be known, whatever happens next."""


class FileLog:
    """A journal of one line for each start and end. See TurnLog."""

    publishes = True

    def __init__(
        self, turn: LiveTurn, recording: Recording, journal: JournalFile | IntakeJournal, out: Path
    ) -> None:
        self.out: Path | None = out
        self._turn = turn
        self._recording = recording
        self._journal = journal
        self._path = out
        self._gathered: list[bytes] = []
        self._begun: deque[OpenSpan] = deque()
        self._tells_begun = False
        self._keep = recording.options.keep_attributes
        self._parts: list[Part] = []
        self._record: Turn | None = None
        self._is_sync = recording.options.journal == "sync" and not recording.slow_disk

    # -- told by the spans' threads -------------------------------------------------------------------

    def opened(self) -> None:
        """See TurnLog."""
        self._tell(self._header)

    def started(self, opened: OpenSpan) -> None:
        """See TurnLog."""
        if self._is_sync and opened.phase in _AT_ONCE:
            self._write(self._begun_lines() + self._start_line(opened))
            return
        self._begun.append(opened)
        if not self._tells_begun:
            self._tells_begun = True
            if not self._recording.writer.submit(self._gather_begun):
                self._tells_begun = False

    def ended(self, opened: OpenSpan) -> None:
        """See TurnLog."""
        if self._is_sync:
            line = self._end_line(opened)
            self._write(self._begun_lines() + line if self._begun else line)
        else:
            self._recording.writer.submit(self._gather_end, opened)

    def cut(self, opened: OpenSpan) -> None:
        """See TurnLog."""
        self._gathered.append(self._end_line(opened))

    def counter(self, name: str, total: int) -> None:
        """See TurnLog."""
        self._tell(lines.counter_line, name, total)

    def mark(self, mark: Mark) -> None:
        """See TurnLog."""
        self._tell(lines.mark_line, mark)

    def usage(self, usage: Usage) -> None:
        """See TurnLog."""
        self._tell(lines.usage_line, usage)

    def warning(self, warning: Warn) -> None:
        """See TurnLog."""
        self._tell(lines.warning_line, warning)

    def event(self, event: Event) -> None:
        """See TurnLog."""
        self._tell(lines.event_line, event)

    def _tell(self, encode: Callable[..., bytes], *facts: Any) -> None:
        if self._turn.closed:
            self._recording.guard.drop("late")
        elif self._is_sync:
            self._write(encode(*facts))
        else:
            self._recording.writer.submit(self._gather, encode, facts)

    def _begun_lines(self) -> bytes:
        """The starts of the spans that began since the last line and are not over yet."""
        begun, told = self._begun, b""
        while begun:
            try:
                opened = begun.popleft()
            except IndexError:  # another thread was faster
                break
            if not opened.is_over:
                told += self._start_line(opened)
        return told

    def _gather_begun(self) -> None:
        self._tells_begun = False
        told = self._begun_lines()
        if told and not self._turn.closed:
            self._gathered.append(told)
            self._recording.writer.gathered.add(self)

    def _gather_end(self, opened: OpenSpan) -> None:
        self._gather(self._end_line, (opened,))

    def _gather(self, encode: Callable[..., bytes], facts: tuple[Any, ...]) -> None:
        self._gathered.append(encode(*facts))
        self._recording.writer.gathered.add(self)

    def flush(self) -> None:
        """See TurnLog."""
        if self._gathered:
            gathered, self._gathered = self._gathered, []
            self._write(b"".join(gathered))

    def _write(self, data: bytes) -> None:
        start_ns = monotonic_ns()
        try:
            self._journal.write(data)
        except OSError as error:
            self._recording.guard.lost(str(self._path), error, data.count(b"\n"))
        is_slow = monotonic_ns() - start_ns > _SLOW_NS and not self._recording.calls.is_brief
        if is_slow and self._is_sync:
            self._recording.disk_was_slow()
            self._is_sync = not self._recording.slow_disk

    # -- lines ----------------------------------------------------------------------------------------

    def _header(self) -> bytes:
        turn, recording = self._turn, self._recording
        return lines.header_line(
            turn_record(turn, (), (), (), ()),
            pid=recording.pid,
            pid_started=recording.pid_started,
            fragment=turn.who.is_remote,
        )

    def _start_line(self, opened: OpenSpan) -> bytes:
        return lines.span_start_line(
            opened.phase, opened.name, opened.span_id, opened.parent_id, self._turn.root_id, opened.start_ns
        )

    def _end_line(self, opened: OpenSpan) -> bytes:
        if opened.span_id == self._turn.root_id:
            record = turn_record(self._turn, (), (), (), ())
            return lines.root_line(record, status=opened.status, outcome=opened.outcome)
        return lines.span_line(
            opened.phase,
            opened.name,
            opened.span_id,
            opened.parent_id,
            self._turn.root_id,
            opened.start_ns,
            opened.end_ns,
            status=opened.status,
            outcome=opened.outcome,
            round_number=opened.round,
            tool=opened.tool,
            model=opened.model,
            agent=opened.agent,
            run_id=opened.run_id,
            parent_source="inferred" if opened.inferred else "otel",
            attributes=opened.attributes and content_free(opened.attributes, self._keep),
        )

    # -- asked by the closer ----------------------------------------------------------------------------

    def record(self) -> Turn:
        """See TurnLog."""
        told = [*self._journal.read(), *self._gathered]  # a short turn never was on the disk
        self._parts = parts_with_trace(self._path, f"{self._turn.trace_id:032x}")
        try:
            record = self._told(told)
        except TraceReadError:  # the disk took other lines, but not the header
            record = self._told([self._header(), *told])
        self._record = self._with_losses(record)
        return self._record

    def _told(self, told: list[bytes]) -> Turn:
        return journal_record(told, self._parts, sampled=self._turn.who.sampled)

    def _with_losses(self, record: Turn) -> Turn:
        """``record`` with the number of spans whose lines the disk did not take."""
        turn = self._turn
        folded = sum(len(warning.span_ids) for warning in record.warnings if warning.code == "folded")
        told = sum(not is_retry_wait(span) for span in record.spans) + folded
        missing = turn.span_count - bool(turn.root_id) - told
        if not turn.closed or missing <= 0:
            return record
        lost = Warn(code="lines_lost", message=f"spans that could not be written: {missing}")
        return replace(record, dropped=record.dropped + missing, warnings=(*record.warnings, lost))

    def has_turn_elsewhere(self) -> bool:
        """See TurnLog."""
        return turn_lives_elsewhere(self._path, self._turn.trace_id, self._recording.pid)

    def discard(self) -> None:
        """See TurnLog."""
        self._gathered = []
        self._journal.delete()
        if self._parts and self._record is not None:
            remove_joined(self._parts, self._record)
        self._parts, self._record = [], None

    def leave(self) -> None:
        """See TurnLog."""
        self._gathered.append(self._begun_lines())
        self.flush()
        self._journal.leave()

    def close(self) -> None:
        """See TurnLog."""
        self._journal.close()

    def forget(self) -> None:
        """See TurnLog."""
        self._gathered = []
        self._begun.clear()
        self._journal.forget()
