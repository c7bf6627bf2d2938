"""Which log a turn gets, and where it lies while the turn runs."""

from pathlib import Path

import pytest

from otel.fakes import FakeClock
from turntrace.files.out import fragment_path, journal_path
from turntrace.otel.file_log import FileLog
from turntrace.otel.live_turn import LiveTurn
from turntrace.otel.logs import open_log
from turntrace.otel.memory_log import MemoryLog
from turntrace.otel.options import RecordingOptions
from turntrace.otel.processor import TurnSpanProcessor
from turntrace.otel.turn_identity import TurnIdentity


def opened(out, journal, *, is_remote=False):
    """The log of a turn, with the processor's options."""
    options = RecordingOptions(out=None if out is None else str(out), journal=journal)
    recording = TurnSpanProcessor(options, clock=FakeClock()).recording
    who = TurnIdentity(run_id="run_1", trace_id=0xABC, root_id=1, is_remote=is_remote)
    turn = LiveTurn(who, recording.clock, 0)
    turn.log = open_log(turn, recording)
    return recording, turn.log


@pytest.mark.parametrize(("out", "journal"), [(None, "sync"), ("-", "thread"), ("t.ndjson", "off")])
def test_without_a_journal_a_turn_is_kept_in_memory(out, journal):
    """No file, standard error, or journals switched off."""
    _, log = opened(out, journal)
    assert isinstance(log, MemoryLog)
    assert log.out == (None if out is None else Path(out))


def test_a_sync_journal_has_the_name_of_its_run(tmp_path):
    """Each turn has a journal of its own beside the file."""
    out = tmp_path / "t.ndjson"
    _, log = opened(out, "sync")
    assert isinstance(log, FileLog)
    log.opened()
    assert list(tmp_path.iterdir()) == [journal_path(out, "run_1")]
    log.discard()
    assert list(tmp_path.iterdir()) == []


def test_the_turns_of_a_thread_share_one_journal(tmp_path):
    """In thread mode the lines of all turns go through one file of the process."""
    recording, log = opened(tmp_path / "t.ndjson", "thread")
    log.opened()
    recording.writer.drain()
    (journal,) = tmp_path.iterdir()
    assert ".intake-" in journal.name
    recording.writer.stop(5)


@pytest.mark.parametrize("journal", ["sync", "thread"])
def test_a_local_root_below_another_process_has_a_fragment(tmp_path, journal):
    """Spans whose turn may be elsewhere lie in a file that names trace and process."""
    out = tmp_path / "t.ndjson"
    recording, log = opened(out, journal, is_remote=True)
    log.opened()
    recording.writer.drain()
    assert list(tmp_path.iterdir()) == [fragment_path(out, 0xABC, recording.pid)]
    assert b'"fragment":true' in fragment_path(out, 0xABC, recording.pid).read_bytes()
    log.discard()
    recording.writer.stop(5)
