"""Fragments: what other processes tell of a turn."""

import os

import pytest

from files.journals import TRACE, dead_pid, phase, write_fragment, write_journal
from turntrace.core.codec.journal import span_start_line
from turntrace.core.model import Turn
from turntrace.files.fragments import parts_with_trace, read_parts, remove_joined, turn_lives_elsewhere
from turntrace.files.journal import JournalFile
from turntrace.files.out import journal_path


@pytest.fixture
def out(tmp_path):
    """A trace that was not written yet."""
    return tmp_path / "t.ndjson"


@pytest.fixture(scope="module")
def dead():
    """A process that is gone."""
    return dead_pid()


def test_the_fragments_of_a_trace_are_found_by_name(out, dead):
    """Journals and other traces' fragments are not opened."""
    write_journal(out, "r1", dead)
    mine = write_fragment(out, dead, phase(5))
    write_fragment(out, dead, phase(6), trace_id="cd" * 16)
    assert [part.path for part in parts_with_trace(out, TRACE)] == [mine]


def test_a_joined_fragment_goes_once_its_process_is_done_with_it(out, dead):
    """Deleted when all its spans stand in the turn, nobody holds it and nothing came since it was read."""
    whole = write_fragment(out, dead, phase(5))
    held, grown = write_fragment(out, dead + 1, phase(6)), write_fragment(out, dead + 2, phase(7))
    partly = write_fragment(out, dead + 3, phase(8))
    root = write_journal(out, "r1", dead, phase(9))
    parts = read_parts(out)
    known = Turn(
        run_id="r1",
        spans=tuple(span for part in parts if part.path != partly for span in part.journal.turn.spans),
    )
    holder = JournalFile(held)
    holder.write(b"")
    with grown.open("ab") as file:
        file.write(phase(10))
    remove_joined(parts, known)
    assert [path.exists() for path in (whole, held, grown, partly, root)] == [False, True, True, True, True]
    remove_joined(parts, known)
    holder.close()


def test_a_fragment_with_an_open_span_stays_while_its_process_lives(out, dead):
    """The end of the span is still to come; of a dead process none comes."""
    start = span_start_line("tool_execution", "work", 5, 1, 1, 1_700_000_000_000_000_000)
    alive, gone = write_fragment(out, os.getpid(), start), write_fragment(out, dead, start)
    parts = read_parts(out)
    known = Turn(run_id="r1", spans=tuple(span for part in parts for span in part.journal.turn.spans))
    remove_joined(parts, known)
    assert [path.exists() for path in (alive, gone)] == [True, False]


def test_a_turn_lives_elsewhere_when_another_process_holds_its_root(out, dead):
    """Told by the trace id of a journal that is no fragment and not one's own."""
    trace = int(TRACE, 16)
    assert not turn_lives_elsewhere(out, trace, os.getpid())
    write_fragment(out, dead, phase(5))
    assert not turn_lives_elsewhere(out, trace, os.getpid())
    write_journal(out, "r1", dead)
    assert turn_lives_elsewhere(out, trace, os.getpid())
    assert not turn_lives_elsewhere(out, trace, dead)
    assert not turn_lives_elsewhere(out, trace + 1, os.getpid())


def test_the_trace_id_in_a_journal_of_another_trace_is_no_root(out, dead):
    """A span that mentions the id does not make the journal its turn's."""
    write_journal(out, "r1", dead, trace_id="cd" * 16, session_id=TRACE)
    assert not turn_lives_elsewhere(out, int(TRACE, 16), os.getpid())


def test_a_journal_that_goes_meanwhile_is_no_error(out, dead, monkeypatch):
    """Between the listing of a folder and the reading of a file its turn may be closed."""
    gone = journal_path(out, "gone")
    monkeypatch.setattr("turntrace.files.fragments.parts_of", lambda out: [gone])
    assert read_parts(out) == []
    assert not turn_lives_elsewhere(out, int(TRACE, 16), os.getpid())
