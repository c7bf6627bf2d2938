"""What nobody had the time to close stays whole for the next process, and what was joined goes."""

import os

from turntrace.core.codec import journal as lines
from turntrace.core.model import Span, Turn
from turntrace.files.append import Rotation
from turntrace.files.calls import Calls
from turntrace.files.fragments import parts_in, parts_with_trace, remove_joined
from turntrace.files.intake import Intake
from turntrace.files.journal import JournalFile
from turntrace.files.out import fragment_path, parts_of
from turntrace.files.read import read_paths
from turntrace.files.recovery import finish_dead

TRACE_ID = 0xABC
NOBODY = 2**22 + 1
"""A pid beyond what Linux gives out."""


def told(run_id, *, fragment=False, pid=NOBODY):
    """The journal of a turn (or fragment) of one tool that ended."""
    root = 1 if not fragment else 0
    turn = Turn(
        run_id=run_id,
        started_ns=1_000,
        trace_id=f"{TRACE_ID:032x}",
        span_id=f"{root:016x}" if root else None,
        agent="a",
        turn_source="local_root" if fragment else "api",
    )
    header = lines.header_line(turn, pid=pid, fragment=fragment)
    number = 3 if fragment else 2
    span = lines.span_line("tool_execution", "execute_tool t", number, 1, root, 1_100, 1_200, tool="t")
    return header + span


def test_a_run_that_is_left_is_finished_by_the_next_process(tmp_path):
    """Leaving a run keeps its lines where they are, even when the file they are in is replaced."""
    out = tmp_path / "t.ndjson"
    out.touch()
    intake = Intake(out, Calls())
    for run_id in ("run_left", "run_closed"):
        intake.add(run_id, told(run_id))
    intake.leave("run_left")
    intake.flush()
    intake.release("run_closed")
    intake.end()
    assert len(parts_of(out)) == 1
    assert finish_dead(out, Rotation()) == 1
    assert parts_of(out) == []
    (turn,) = read_paths([str(out)], strict=True).turns
    assert (turn.run_id, turn.status) == ("run_left", "interrupted")
    assert [span.tool for span in turn.spans] == ["t"]


def test_an_intake_in_which_nothing_is_left_goes(tmp_path):
    """After the last run is released and the recording ends no file of it stays; a run it never saw is none."""
    out = tmp_path / "t.ndjson"
    intake = Intake(out, Calls())
    intake.leave("run_unknown")
    intake.add("run_1", told("run_1"))
    intake.flush()
    intake.release("run_1")
    intake.end()
    assert parts_of(out) == []


def fragment_of(out, pid=7):
    """A fragment beside ``out``, closed by its process."""
    file = JournalFile(fragment_path(out, TRACE_ID, pid))
    file.write(told("run_f", fragment=True))
    file.close()
    return file


def joined(*span_ids):
    """A turn in which these spans stand."""
    spans = tuple(
        Span(span_id=f"{n:016x}", parent_id=None, name="s", phase=None, start_ns=0, end_ns=1)
        for n in span_ids
    )
    return Turn(run_id="r", spans=spans)


def test_a_fragment_goes_once_all_of_it_stands_in_the_block(tmp_path):
    """What is joined whole is deleted; what is joined in part is kept for the reader."""
    out = tmp_path / "t.ndjson"
    fragment_of(out)
    parts = parts_with_trace(out, f"{TRACE_ID:032x}")
    remove_joined(parts, joined(9))
    assert len(parts_of(out)) == 1
    remove_joined(parts, joined(3, 9))
    assert parts_of(out) == []
    remove_joined(parts, joined(3))


def test_a_fragment_that_is_written_to_is_kept(tmp_path):
    """A living writer's mark, or lines that came after it was read, keep a fragment."""
    out = tmp_path / "t.ndjson"
    file = fragment_of(out)
    parts = parts_in(file.path)
    file.write(told("run_g", fragment=True))
    remove_joined(parts_in(file.path), joined(3))
    assert file.path.exists()
    file.close()
    remove_joined(parts, joined(3))
    assert file.path.exists()


def test_a_journal_never_writes_to_a_file_that_is_gone(tmp_path, monkeypatch):
    """A file that was deleted between open and lock is made anew, so that no line is lost with it."""
    path = tmp_path / "j.part"

    class Deleting(Calls):
        deleted = 0

        def lock(self, fd):
            if not Deleting.deleted:
                Deleting.deleted = 1
                path.unlink()
            return super().lock(fd)

    journal = JournalFile(path, Deleting())
    journal.write(b"a\n")
    assert path.read_bytes() == b"a\n"
    assert Deleting.deleted == 1
    journal.close()


def test_a_journal_waits_for_who_looks_at_its_lock_but_not_for_ever(tmp_path):
    """A reader that probes the lock holds it for a moment; another holder costs ten milliseconds, no line."""
    path = tmp_path / "j.part"
    path.touch()
    other = os.open(path, os.O_RDWR)
    assert Calls().lock(other)
    journal = JournalFile(path)
    journal.write(b"a\n")
    os.close(other)
    assert path.read_bytes() == b"a\n"
    journal.leave()


def test_after_a_failed_write_the_next_lines_stand_on_their_own(tmp_path):
    """A disk that was full leaves half a line; what comes later is whole and is found at its offset."""

    class Full(Calls):
        room = 1_000_000

        def write(self, fd, data):
            if len(data) > Full.room:
                os.write(fd, data[: Full.room])
                raise OSError(28, "No space left on device")
            return super().write(fd, data)

    out = tmp_path / "t.ndjson"
    intake = Intake(out, Full())
    intake.add("run_1", b"one\n")
    intake.flush()
    intake.add("run_1", b"lost\n")
    Full.room = 20
    try:
        intake.flush()
    except OSError:
        Full.room = 1_000_000
    intake.add("run_1", b"two\n")
    intake.add("run_2", b"other\n")
    intake.flush()
    assert intake.read("run_1") == [b"one\n", b"two\n"]
    assert intake.read("run_2") == [b"other\n"]
    intake.forget()
