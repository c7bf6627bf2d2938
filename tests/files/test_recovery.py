"""What becomes of the journals of processes that are gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from files.journals import (
    MS,
    START_NS,
    TRACE,
    block,
    dead_pid,
    header,
    phase,
    root_end,
    turn,
    turn_lines,
    write_fragment,
    write_journal,
)
from recordings import blocks_of
from turntrace.core.codec.decode import read_blocks
from turntrace.files.append import Rotation
from turntrace.files.journal import JournalFile
from turntrace.files.lock import claimed
from turntrace.files.out import fragment_path, journal_path, parts_of
from turntrace.files.read import read_paths
from turntrace.files.recovery import finish_dead

ROTATION = Rotation()


@pytest.fixture(scope="module")
def dead():
    """A process that is gone."""
    return dead_pid()


@pytest.fixture
def out(tmp_path):
    """A trace that was prepared and is empty."""
    path = tmp_path / "t.ndjson"
    path.touch()
    return path


def tools(turn):
    """The tools of a turn's spans."""
    return sorted(span.tool for span in turn.spans)


def test_a_dead_journal_becomes_an_interrupted_block_once(out, dead):
    """Its spans stand in the file, the journal is gone, and a second run finds nothing to do."""
    write_journal(out, "r1", dead)
    assert finish_dead(out, ROTATION) == 1
    assert finish_dead(out, ROTATION) == 0
    [found] = blocks_of_lenient(out)
    assert (found.turn.run_id, found.turn.status, tools(found.turn)) == ("r1", "interrupted", ["t2"])
    assert found.turn.completed_ns is None
    assert parts_of(out) == []


def blocks_of_lenient(out):
    """The blocks of a file, each of which is whole."""
    with out.open("rb") as file:
        blocks = list(read_blocks(file, strict=False))
    assert all(found.complete for found in blocks)
    return blocks


def test_a_turn_that_had_ended_is_written_as_it_ended(out, dead):
    """A process that died between the end of its turn and the block loses nothing of it."""
    write_journal(out, "r1", dead, phase(2), root_end("r1"))
    assert finish_dead(out, ROTATION) == 1
    [found] = blocks_of(out)
    assert (found.turn.status, found.turn.completed_ns is not None) == ("ok", True)


def test_a_turn_that_stands_in_the_file_is_not_written_again(out, dead):
    """A process that died between the block and the deletion of its journal left two; one counts."""
    write_journal(out, "r1", dead, phase(2), root_end("r1"))
    finish_dead(out, ROTATION)
    before = out.read_bytes()
    write_journal(out, "r1", dead, phase(2), root_end("r1"))
    assert finish_dead(out, ROTATION) == 0
    assert out.read_bytes() == before
    assert parts_of(out) == []


def test_a_torn_block_does_not_count_as_standing(out, dead):
    """A process that died inside the append is written from its journal, below the torn block."""
    write_journal(out, "r1", dead, phase(2), phase(3), root_end("r1"))
    finish_dead(out, ROTATION)
    whole = out.read_bytes()
    out.write_bytes(b"".join(whole.splitlines(keepends=True)[:2])[:-5])
    write_journal(out, "r1", dead, phase(2), phase(3), root_end("r1"))
    assert finish_dead(out, ROTATION) == 1
    assert out.read_bytes().endswith(whole)


def test_the_name_of_a_run_in_another_run_s_block_is_not_its_block(out, dead):
    """A run id that appears in some line is looked at properly."""
    write_journal(out, "r1", dead, phase(2, name="other"), root_end("r1", session_id="r2"))
    finish_dead(out, ROTATION)
    write_journal(out, "r2", dead)
    assert finish_dead(out, ROTATION) == 1
    assert [found.turn.run_id for found in blocks_of_lenient(out)] == ["r1", "r2"]


def test_a_living_process_is_left_alone(out):
    """Its pid lives, or its lock is held: the journal is its own."""
    alive = write_journal(out, "r1", os.getpid())
    locked = JournalFile(journal_path(out, "r2"))
    locked.write(b"".join(turn_lines("r2", 2**22 + 1)))
    assert finish_dead(out, ROTATION) == 0
    assert parts_of(out) == [alive, locked.path]
    locked.close()
    assert finish_dead(out, ROTATION) == 1


def test_a_journal_without_a_pid_lives_as_long_as_its_lock(out):
    """Where the header says no pid, the kernel alone decides."""
    path = journal_path(out, "r1")
    journal = JournalFile(path)
    lines = b"".join(turn_lines("r1", 7)).replace(b'"pid":7', b'"nobody":7')
    assert b"nobody" in lines
    journal.write(lines)
    assert finish_dead(out, ROTATION) == 0
    journal.close()
    assert finish_dead(out, ROTATION) == 1


def test_fragments_are_joined_and_those_of_the_dead_deleted(out, dead):
    """Spans of a worker stand in its turn's block; a worker that lives keeps its file."""
    write_journal(out, "r1", dead)
    gone = write_fragment(out, dead, phase(5, parent=2))
    lives = write_fragment(out, os.getpid(), phase(6, parent=2))
    other = write_fragment(out, dead + 1, phase(7, parent=2), trace_id="cd" * 16)
    assert finish_dead(out, ROTATION) == 1
    [found] = blocks_of_lenient(out)
    assert tools(found.turn) == ["t2", "t5", "t6"]
    assert (gone.exists(), lives.exists(), other.exists()) == (False, True, True)


def test_every_run_of_a_shared_journal_is_written(out, dead):
    """A process with many turns leaves one file and as many blocks; closed runs are no blocks."""
    switch = b'{"type":"journal","run_id":"%b"%b}\n'
    lines = [
        switch % (b"r1", b""), *turn_lines("r1", dead),
        switch % (b"r2", b""), *turn_lines("r2", dead),
        switch % (b"r1", b""), phase(3),
        switch % (b"r3", b""), *turn_lines("r3", dead),
        switch % (b"r3", b',"closed":true'),
    ]  # fmt: skip
    out.with_name(f"{out.name}.intake-1-ab.part").write_bytes(b"".join(lines))
    assert finish_dead(out, ROTATION) == 2
    found = {found.turn.run_id: tools(found.turn) for found in blocks_of_lenient(out)}
    assert found == {"r1": ["t2", "t3"], "r2": ["t2"]}
    assert parts_of(out) == []


def test_a_local_root_without_a_phase_is_no_turn(out, dead):
    """A lone request of a foreign instrumentation leaves no block; one around a phase does."""
    write_journal(out, "r1", dead, phase(2, name=None), phase(3, name="other"), turn_source="local_root")
    write_journal(out, "r2", dead, phase(2, name="retrieval"), turn_source="local_root")
    assert finish_dead(out, ROTATION) == 1
    [found] = blocks_of_lenient(out)
    assert found.turn.run_id == "r2"
    assert parts_of(out) == []


def test_a_journal_without_a_header_stays_where_it_is(out):
    """Nothing readable is no reason to delete anything."""
    empty, torn = journal_path(out, "r1"), journal_path(out, "r2")
    empty.write_bytes(b"")
    torn.write_bytes(b'{"type":"tra')
    assert finish_dead(out, ROTATION) == 0
    assert parts_of(out) == [empty, torn]


def test_a_trace_that_was_deleted_is_made_again(out, dead):
    """The journals of a file that is gone become a new file."""
    write_journal(out, "r1", dead)
    out.unlink()
    assert finish_dead(out, ROTATION) == 1
    assert [found.turn.run_id for found in blocks_of_lenient(out)] == ["r1"]


def test_a_full_disk_keeps_the_journal(out, dead, monkeypatch):
    """What could not be written is an error, and its journal is there for the next try."""
    path = write_journal(out, "r1", dead)

    def full(fd, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="space"):
            finish_dead(out, ROTATION)
    assert path.exists()
    assert finish_dead(out, ROTATION) == 1


_RECOVER = """
import sys
from pathlib import Path
from turntrace.files.append import Rotation
from turntrace.files.recovery import finish_dead
sys.stdin.readline()
print(finish_dead(Path(sys.argv[1]), Rotation()))
"""


def test_of_many_recoverers_each_journal_has_one(out, dead):
    """Processes that find the same dead journals at once write each turn once."""
    runs = [f"r{number}" for number in range(20)]
    for run in runs:
        write_journal(out, run, dead)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _RECOVER, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.flush()
    written = [int(worker.communicate()[0]) for worker in workers]
    assert sum(written) == len(runs)
    assert sorted(found.turn.run_id for found in blocks_of_lenient(out)) == sorted(runs)
    assert parts_of(out) == []


def test_a_journal_that_another_one_holds_is_left_to_it(out, dead, monkeypatch):
    """Who does not get the claim writes nothing and deletes nothing."""
    path = write_journal(out, "r1", dead)
    monkeypatch.setattr("turntrace.files.recovery.is_dead", lambda part: True)
    with_lock = JournalFile(path)
    with_lock.write(phase(3))
    assert finish_dead(out, ROTATION) == 0
    assert path.exists()
    with_lock.close()


def test_blocks_of_a_complete_trace_are_encoded_alike(out):
    """The block that recovery writes is the one that any writer writes of the same turn."""
    dead = dead_pid()
    write_journal(out, "r1", dead, phase(2), root_end("r1"))
    finish_dead(out, ROTATION)
    [found] = blocks_of(out)
    assert out.read_bytes() == b"".join(block(found.turn))


def test_a_header_may_be_followed_by_nothing(out, dead):
    """A process that was killed right after the first line had a turn without spans."""
    journal_path(out, "r1").write_bytes(header("r1", dead))
    assert finish_dead(out, ROTATION) == 1
    assert Path(out).read_bytes()


# -- fragments of a turn whose root nobody recorded ---------------------------------------------------


def write_rootless(out, pid, *spans):
    """A fragment that tells no root of its own."""
    write_fragment(out, pid, *spans)
    path = fragment_path(out, int(TRACE, 16), pid)
    path.write_bytes(path.read_bytes().replace(b'"span_id":"0000000000000001",', b"", 1))


def test_fragments_without_a_root_are_one_turn(out):
    """What two processes did below the same unknown span is one turn; what hangs elsewhere is another."""
    write_rootless(out, dead_pid(), phase(2, at=(1, 2)))
    write_rootless(out, dead_pid(), phase(3, at=(3, 9)))
    write_rootless(out, dead_pid(), phase(4, parent=77, at=(4, 5)))
    read = read_paths([str(out)]).turns
    assert [tools(found) for found in read] == [["t2", "t3"], ["t4"]]
    assert finish_dead(out, ROTATION, ended=TRACE) == 2
    written = [found.turn for found in blocks_of(out)]
    assert [tools(found) for found in written] == [["t2", "t3"], ["t4"]]
    assert [found.completed_ns - found.started_ns for found in written] == [8 * MS, 1 * MS]
    assert parts_of(out) == []


def test_fragments_wait_while_more_of_their_turn_may_come(out, dead):
    """Their run that goes on, a living process, a lock, or a block that they are read with keeps them."""
    write_rootless(out, dead, phase(2))
    assert finish_dead(out, ROTATION) == 0
    write_rootless(out, os.getpid(), phase(3))
    assert finish_dead(out, ROTATION, ended=TRACE) == 0
    fragment_path(out, int(TRACE, 16), os.getpid()).unlink()
    with claimed(fragment_path(out, int(TRACE, 16), dead)) as is_mine:
        assert is_mine
        assert finish_dead(out, ROTATION, ended=TRACE) == 0
    out.write_bytes(b"".join(block(turn("r1", completed_ns=START_NS + MS))))
    assert finish_dead(out, ROTATION, ended=TRACE) == 0
    assert len(parts_of(out)) == 1
