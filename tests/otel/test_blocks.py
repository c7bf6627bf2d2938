"""Finished blocks on their way to the file, to standard error, or aside."""

import errno
import os

import pytest

from turntrace.files.append import Rotation
from turntrace.files.calls import Calls
from turntrace.files.lock import FileLock
from turntrace.otel import blocks as module
from turntrace.otel.blocks import Blocks
from turntrace.otel.guard import Guard


class Log:
    """A log that says what became of it."""

    def __init__(self, out):
        self.out = out
        self.told = []

    def __getattr__(self, name):
        return lambda: self.told.append(name)


@pytest.fixture
def guard():
    """Where losses are counted."""
    return Guard()


@pytest.fixture
def blocks(guard):
    """Blocks with real files."""
    return Blocks(guard, Rotation(), Calls())


def test_a_written_block_lets_its_log_go(tmp_path, blocks):
    """Only when the whole block stands in the file is the journal dropped."""
    log = Log(tmp_path / "t")
    blocks.add(log, b"block\n")
    assert blocks.is_waiting
    assert log.told == []
    blocks.flush()
    assert log.told == ["discard"]
    assert not blocks.is_waiting
    assert log.out.read_bytes() == b"block\n"


def test_blocks_of_several_files_go_to_each(tmp_path, blocks):
    """One pass writes to every file; order within a file is kept."""
    first, second = tmp_path / "a", tmp_path / "b"
    for out, block in ((first, b"1\n"), (second, b"2\n"), (first, b"3\n")):
        blocks.add(Log(out), block)
    blocks.add(Log(None), b"nowhere\n")
    blocks.finish()
    assert (first.read_bytes(), second.read_bytes()) == (b"1\n3\n", b"2\n")


def test_a_heap_of_blocks_is_written_at_once(tmp_path, blocks, monkeypatch):
    """What is gathered has a bound."""
    monkeypatch.setattr(module, "_GATHER_BYTES", 10)
    blocks.add(Log(tmp_path / "t"), b"12345678901\n")
    assert not blocks.is_waiting


def test_a_locked_file_is_tried_again_for_a_second_then_left(tmp_path, blocks, guard, monkeypatch, capsys):
    """A block waits for the lock without stopping anyone; after a second it goes to a file of this process."""
    out = tmp_path / "t"
    now_ns = [10]
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: now_ns[0])
    log = Log(out)
    aside = tmp_path / f"t.{os.getpid()}"
    with FileLock(tmp_path / "t.lock"):
        blocks.add(log, b"block\n")
        blocks.flush()
        now_ns[0] += 1_000_000_000
        blocks.flush()
        assert blocks.is_waiting
        assert (log.told, aside.exists()) == ([], False)
        now_ns[0] += 1
        blocks.flush()
    assert log.told == ["discard"]
    assert aside.read_bytes() == b"block\n"
    assert not out.exists()
    assert capsys.readouterr().err == (
        f"turntrace: another process keeps {out} locked; turns of this one go to {aside}\n"
    )
    blocks.add(Log(out), b"next\n")
    blocks.flush()
    assert out.read_bytes() == b"next\n"


def test_a_disk_that_takes_no_block_keeps_the_journal(tmp_path, blocks, guard, monkeypatch, capsys):
    """The log is flushed and closed, not discarded: its journal is the turn."""

    def refuse(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "append_blocks", refuse)
    log = Log(tmp_path / "t")
    blocks.add(log, b"block\n")
    blocks.finish()
    assert log.told == ["flush", "close"]
    assert guard.dropped == {"write_failed": 1}
    assert not blocks.is_waiting
    assert "No space left" in capsys.readouterr().err


def test_a_dash_is_standard_error_with_a_bound(blocks, guard, monkeypatch, capfdbinary):
    """Whole blocks up to a megabyte; a larger one is dropped and counted, whatever stands around it."""
    from pathlib import Path

    monkeypatch.setattr(module, "MAX_STDERR_BYTES", 10)
    logs = [Log(Path("-")) for _ in range(3)]
    for log, block in zip(logs, (b"one\n", b"x" * 11, b"two\n"), strict=True):
        blocks.add(log, block)
    blocks.finish()
    assert capfdbinary.readouterr().err == b"one\ntwo\n"
    assert guard.dropped == {"stderr": 1}
    assert [log.told for log in logs] == [["discard"]] * 3
