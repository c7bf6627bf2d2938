"""A trace while it is written: nothing told twice, nothing missed, whatever happens to the file."""

import os

import pytest

from files.journals import block, dead_pid, phase, root_end, turn, write_journal
from turntrace.core.codec.journal import span_start_line
from turntrace.files.out import journal_path
from turntrace.files.watch import Watch

START_NS = 1_700_000_000_000_000_000


def block_of(run_id):
    """The block of a turn of 10 ms."""
    return b"".join(block(turn(run_id, completed_ns=START_NS + 10_000_000, root_name="turn")))


@pytest.fixture
def out(tmp_path):
    """The path of a trace that is not there."""
    return tmp_path / "t.ndjson"


def closed(watch):
    """The runs that were closed since the last look."""
    return [turn.run_id for turn in watch.look().closed]


def start(span_id, name="tool_execution"):
    """The line of a span that begins."""
    return span_start_line(name, name, span_id, 1, 1, START_NS)


def append(path, *blocks):
    """Append blocks."""
    with path.open("ab") as file:
        file.writelines(blocks)


def test_a_running_turn_is_there_and_then_closed(out):
    """First by its journal, then by its block, once each."""
    watch = Watch(out)
    assert watch.look() == type(watch.look())()
    write_journal(out, "r1", os.getpid(), phase(2), start(3))
    [turn] = watch.look().running
    assert [span.outcome for span in turn.spans] == ["ok", "incomplete"]
    append(out, block_of("r1"))
    look = watch.look()
    assert ([turn.run_id for turn in look.closed], look.running) == (["r1"], ())
    journal_path(out, "r1").unlink()
    assert closed(watch) == []


def test_a_dead_writers_turn_is_told_as_dead(out):
    """Its open spans are closed as incomplete, its status is interrupted."""
    write_journal(out, "r1", dead_pid(), start(3))
    look = Watch(out).look()
    [turn] = look.dead
    assert (look.running, turn.status, turn.spans[0].outcome) == ((), "interrupted", "incomplete")


def test_of_a_file_that_was_there_only_the_last_turn_is_told(out):
    """Those before it are known; those after it are new."""
    append(out, block_of("r1"), block_of("r2"))
    watch = Watch(out)
    assert closed(watch) == ["r2"]
    append(out, block_of("r3"), block_of("r1"))
    assert closed(watch) == ["r3"]


def test_a_file_that_appears_later_is_new_from_its_first_turn_on(out):
    """Every turn in it."""
    watch = Watch(out)
    assert closed(watch) == []
    append(out, block_of("r1"), block_of("r2"))
    assert closed(watch) == ["r1", "r2"]


def test_a_block_that_is_being_written_waits(out):
    """However it is cut, it is told once, when it is whole."""
    watch = Watch(out)
    watch.look()
    whole = block_of("r1")
    for cut in range(0, len(whole), 97):
        out.write_bytes(whole[:cut])
        assert closed(watch) == []
    out.write_bytes(whole)
    assert closed(watch) == ["r1"]


def test_lines_that_belong_to_no_block_are_passed_over(out):
    """Damage before a block, a header that is none, lines of others."""
    watch = Watch(out)
    watch.look()
    append(
        out,
        b'no json "type":"trace"\n',
        b'["type":"trace"]\n',
        b'{"type":"trace"}\n',
        b"[]\n",
        block_of("r1"),
    )
    assert closed(watch) == ["r1"]


def test_a_file_that_is_emptied_starts_anew(out):
    """What is written afterwards is told; what was told before is not."""
    append(out, block_of("r1"), block_of("r2"))
    watch = Watch(out)
    watch.look()
    out.write_bytes(block_of("r3"))
    assert closed(watch) == ["r3"]
    out.write_bytes(b"")
    assert closed(watch) == []
    append(out, block_of("r1"), block_of("r4"))
    assert closed(watch) == ["r4"]


def test_a_file_that_is_rotated_loses_nothing(out):
    """What was appended before it was renamed, and what the new one holds."""
    append(out, block_of("r1"))
    watch = Watch(out)
    watch.look()
    append(out, block_of("r2"))
    out.rename(out.with_name("t.ndjson.1"))
    append(out.with_name("t.ndjson.2"), block_of("other"))
    append(out, block_of("r3"))
    assert closed(watch) == ["r2", "r3"]


def test_a_file_that_is_gone_between_two_looks_comes_back(out):
    """Removed and written again."""
    append(out, block_of("r1"))
    watch = Watch(out)
    watch.look()
    out.unlink()
    assert closed(watch) == []
    append(out, block_of("r2"))
    assert closed(watch) == ["r2"]


def test_a_journal_that_did_not_grow_is_not_read_again(out, monkeypatch):
    """A long turn is read when it changes, not four times a second."""
    write_journal(out, "r1", os.getpid(), start(3))
    watch = Watch(out)
    assert len(watch.look().running) == 1
    monkeypatch.setattr("turntrace.files.watch.parts_in", None)
    assert len(watch.look().running) == 1


def test_what_vanishes_while_it_is_looked_at_is_no_error(out, monkeypatch):
    """A journal that is closed meanwhile, a file that is rotated away at the wrong moment."""
    monkeypatch.setattr("turntrace.files.watch.parts_of", lambda _: [out.with_name("gone.part")])
    watch = Watch(out)
    append(out, block_of("r1"))
    watch.look()
    append(out, block_of("r2"))
    true = type(out).open

    def vanish(path, *arguments):
        if path == out:
            raise FileNotFoundError
        return true(path, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(type(out), "open", vanish)
        assert closed(watch) == []
    assert closed(watch) == ["r2"]


def test_the_end_of_the_root_alone_is_still_running(out):
    """Until its block is written the journal tells it."""
    write_journal(out, "r1", os.getpid(), phase(2), root_end("r1"))
    [turn] = Watch(out).look().running
    assert turn.status == "ok"
