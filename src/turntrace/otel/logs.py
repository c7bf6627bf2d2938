"""Which log a new turn gets."""

from pathlib import Path

from turntrace.files.intake import IntakeJournal
from turntrace.files.journal import JournalFile
from turntrace.files.out import fragment_path, journal_path
from turntrace.otel.blocks import STDERR
from turntrace.otel.file_log import FileLog
from turntrace.otel.live_turn import LiveTurn, TurnLog
from turntrace.otel.memory_log import MemoryLog
from turntrace.otel.recording import Recording

__all__ = ["open_log"]


def open_log(turn: LiveTurn, recording: Recording) -> TurnLog:
    """A journal beside the trace file; memory without a file, for ``-`` and with journaling off."""
    options = recording.options
    out = None if options.out is None else Path(options.out)
    if out is None or options.out == STDERR or options.journal == "off":
        return MemoryLog(turn, out)
    if turn.who.is_remote:
        path = fragment_path(out, turn.trace_id, recording.pid)
        return FileLog(turn, recording, JournalFile(path, recording.calls), out)
    path = journal_path(out, turn.run_id)
    if recording.intake is not None:
        return FileLog(turn, recording, IntakeJournal(recording.intake, turn.run_id, path), out)
    return FileLog(turn, recording, JournalFile(path, recording.calls), out)
