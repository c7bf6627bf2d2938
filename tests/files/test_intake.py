"""The journal that all turns of a process share."""

import errno
import os

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.journals import turn_lines
from turntrace.files import intake as intake_module
from turntrace.files.brief_calls import BriefCalls
from turntrace.files.calls import Calls
from turntrace.files.fragments import parts_in
from turntrace.files.intake import Intake, IntakeJournal, runs_of
from turntrace.files.journal import JournalFile
from turntrace.files.out import journal_path, parts_of

PID = os.getpid()


@pytest.fixture(params=[Calls, BriefCalls])
def intake(request, tmp_path):
    """An intake beside t.ndjson, by either kind of system call."""
    made = Intake(tmp_path / "t.ndjson", request.param())
    yield made
    made.forget()


def out_of(tmp_path):
    """The trace beside which the intake lies."""
    return tmp_path / "t.ndjson"


def on_disk(tmp_path):
    """The runs that a reader finds in the journals now."""
    return {
        part.journal.turn.run_id: [span.tool for span in part.journal.turn.spans]
        for path in parts_of(out_of(tmp_path))
        for part in parts_in(path)
    }


def test_lines_wait_for_the_flush_and_are_told_before_it(intake, tmp_path):
    """What was added is read at once and on disk after flush, in one file for all runs."""
    intake.add("r1", b"".join(turn_lines("r1", PID)))
    assert intake.read("r1") == turn_lines("r1", PID)
    assert parts_of(out_of(tmp_path)) == []
    intake.add("r2", b"".join(turn_lines("r2", PID)))
    intake.flush()
    [path] = parts_of(out_of(tmp_path))
    assert path.name.startswith(f"t.ndjson.intake-{PID}-")
    assert on_disk(tmp_path) == {"r1": ["t2"], "r2": ["t2"]}


def test_a_flush_of_nothing_makes_no_file(intake, tmp_path):
    """The file comes with its first line."""
    intake.flush()
    assert parts_of(out_of(tmp_path)) == []


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 999), st.sampled_from(["add", "flush", "release"]))
    )
)
def test_runs_never_mix(tmp_path_factory, steps):
    """Whatever the order of adding, writing and releasing, a run reads its own lines and no others."""
    intake = Intake(tmp_path_factory.mktemp("intake") / "t.ndjson", Calls())
    told: dict[str, list[bytes]] = {}
    for run, number, step in steps:
        line = b'{"run":"%b","n":%d}\n' % (run.encode(), number)
        if step == "add":
            intake.add(run, line)
            told.setdefault(run, []).append(line)
        elif step == "flush":
            intake.flush()
        else:
            intake.release(run)
            told.pop(run, None)
        assert {name: intake.read(name) for name in "abc"} == {name: told.get(name, []) for name in "abc"}
    intake.flush()
    [path] = parts_of(intake._out) or [None]
    found = [] if path is None else list(runs_of(path.read_bytes().splitlines(keepends=True)))
    assert sorted(found) == sorted(told.values())
    intake.forget()


def test_a_released_run_is_read_no_more(intake, tmp_path):
    """Who is closed stands in the trace; the others go on."""
    for run in ("r1", "r2"):
        intake.add(run, b"".join(turn_lines(run, PID)))
    intake.flush()
    intake.release("r1")
    assert on_disk(tmp_path) == {"r2": ["t2"]}
    assert intake.read("r1") == []
    assert intake.read("r2") == turn_lines("r2", PID)


def test_what_waits_of_a_released_run_is_never_written(intake, tmp_path):
    """A turn that was over before the flush leaves nothing."""
    intake.add("r1", b"".join(turn_lines("r1", PID)))
    intake.release("r1")
    intake.flush()
    assert parts_of(out_of(tmp_path)) == []


def test_an_idle_file_is_replaced_once_it_has_grown(intake, tmp_path, monkeypatch):
    """Without live turns a small file stays and a large one goes."""
    monkeypatch.setattr(intake_module, "_IDLE_BYTES", 1000)
    intake.add("r1", b"".join(turn_lines("r1", PID)))
    intake.flush()
    intake.release("r1")
    assert len(parts_of(out_of(tmp_path))) == 1
    intake.add("r2", b"".join(turn_lines("r2", PID)))
    intake.flush()
    intake.release("r2")
    assert parts_of(out_of(tmp_path)) == []


def test_live_turns_of_a_full_file_move_to_journals_of_their_own(intake, tmp_path, monkeypatch):
    """The file is bounded: those that outlive their share go on alone, and nothing is lost on the way."""
    intake.add("r1", b"".join(turn_lines("r1", PID)))
    intake.flush()
    monkeypatch.setattr(intake_module, "_FULL_BYTES", 100)
    intake.add("r2", b"".join(turn_lines("r2", PID)))
    intake.flush()
    paths = [journal_path(out_of(tmp_path), run) for run in ("r1", "r2")]
    assert parts_of(out_of(tmp_path)) == paths
    assert on_disk(tmp_path) == {"r1": ["t2"], "r2": ["t2"]}
    intake.add("r1", b"later\n")
    assert intake.read("r1") == [*turn_lines("r1", PID), b"later\n"]
    intake.flush()
    assert intake.read("r1") == [*turn_lines("r1", PID), b"later\n"]
    intake.release("r1")
    assert parts_of(out_of(tmp_path)) == paths[1:]


def test_a_journal_that_moves_is_never_seen_in_part(intake, tmp_path, monkeypatch):
    """Killed or out of disk in the middle of the move, the shared file still has every line."""
    intake.add("r1", b"".join(turn_lines("r1", PID)))
    intake.flush()
    before, write = on_disk(tmp_path), JournalFile.write

    def write_half(file, lines):
        if file.path.suffix == ".moving":
            write(file, lines[: len(lines) // 2])
            assert on_disk(tmp_path) == before
            raise OSError(errno.ENOSPC, "full")
        return write(file, lines)

    monkeypatch.setattr(intake_module, "_FULL_BYTES", 100)
    monkeypatch.setattr(JournalFile, "write", write_half)
    intake.add("r1", b"later\n")
    with pytest.raises(OSError, match="full"):
        intake.flush()
    assert intake.read("r1") == [*turn_lines("r1", PID), b"later\n"]
    monkeypatch.setattr(JournalFile, "write", write)
    intake.flush()
    assert intake.read("r1") == [*turn_lines("r1", PID), b"later\n"]
    assert parts_of(out_of(tmp_path)) == [journal_path(out_of(tmp_path), "r1")]
    assert not list(tmp_path.glob("*.moving"))


def test_a_recording_that_ends_takes_its_file_away_unless_a_turn_lives(intake, tmp_path):
    """What is still open stays for the reader."""
    intake.add("r1", b"".join(turn_lines("r1", PID)))
    intake.flush()
    intake.end()
    assert on_disk(tmp_path) == {"r1": ["t2"]}
    intake.release("r1")
    intake.end()
    assert parts_of(out_of(tmp_path)) == []


def test_what_is_left_stands_for_the_next_process(intake, tmp_path, monkeypatch):
    """A run that is left is forgotten here and read by others, even when the file is replaced."""
    for run in ("r1", "r2"):
        intake.add(run, b"".join(turn_lines(run, PID)))
    intake.leave("r1")
    assert intake.read("r1") == []
    assert on_disk(tmp_path) == {"r1": ["t2"], "r2": ["t2"]}
    monkeypatch.setattr(intake_module, "_IDLE_BYTES", 1)
    intake.release("r2")
    intake.add("r3", b"".join(turn_lines("r3", PID)))
    intake.flush()
    assert "r1" in on_disk(tmp_path)
    assert len(parts_of(out_of(tmp_path))) == 2
    intake.leave("never begun")
    intake.release("r3")
    assert len(parts_of(out_of(tmp_path))) == 1


def test_a_run_s_side_is_a_journal(intake, tmp_path):
    """IntakeJournal writes, reads and deletes its own run; closing it leaves the shared file open."""
    journal = IntakeJournal(intake, "r1", tmp_path / "any")
    journal.write(b"a\n")
    intake.flush()
    journal.close()
    assert journal.read() == [b"a\n"]
    journal.delete()
    assert journal.read() == []
    journal.write(b"b\n")
    journal.leave()
    assert journal.read() == []


def test_a_write_that_failed_costs_its_lines_only(intake, tmp_path, monkeypatch):
    """After a full disk the next lines stand on lines of their own and are read back."""
    intake.add("r1", b"".join(turn_lines("r1", PID)))
    intake.flush()

    def torn(calls, fd, data):
        os.write(fd, bytes(data)[:10])
        raise OSError(28, "No space left on device")

    intake.add("r2", b"lost\n")
    with monkeypatch.context() as patch:
        patch.setattr(type(intake._calls), "write", torn)
        with pytest.raises(OSError, match="space"):
            intake.flush()
    intake.add("r3", b"".join(turn_lines("r3", PID)))
    intake.flush()
    assert on_disk(tmp_path) == {"r1": ["t2"], "r3": ["t2"]}
    assert intake.read("r3") == turn_lines("r3", PID)


def test_a_torn_tail_ends_its_run_and_no_other():
    """A file cut at any byte gives every whole line before the cut to its run."""
    heads = {run: orjson.dumps({"type": "journal", "run_id": run}) + b"\n" for run in ("a", "b")}
    data = heads["a"] + b'{"a":1}\n' + heads["b"] + b'{"b":1}\n' + heads["a"] + b'{"a":2}\n'
    for cut in range(len(data) + 1):
        runs = list(runs_of(data[:cut].splitlines(keepends=True)))
        whole = [line for run in runs for line in run if line.endswith(b"\n")]
        assert sum(line.startswith(b'{"a"') for line in whole) == data[:cut].count(b'{"a":1}\n') + data[
            :cut
        ].count(b'{"a":2}\n')
        for run in runs:
            owners = {line[2:3] for line in run if line.endswith(b"\n")}
            assert len(owners) <= 1


def test_a_journal_of_one_turn_is_one_run():
    """Lines without a switch belong together, and an empty file holds no run."""
    assert list(runs_of([b"x\n", b"y\n"])) == [[b"x\n", b"y\n"]]
    assert list(runs_of([])) == []
    assert list(runs_of([b'{"type":"journal","run_id":"a","closed":true}\n'])) == []
