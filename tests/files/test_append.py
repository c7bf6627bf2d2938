"""Blocks appended by many processes to one file."""

import os
import subprocess
import sys

import pytest

from turntrace.files import lock
from turntrace.files.append import Rotation, append_aside, append_block, append_blocks, write_all
from turntrace.files.brief_calls import BriefCalls
from turntrace.files.calls import Calls
from turntrace.files.lock import FileLock

KEEP_ALL = Rotation()


def test_a_block_goes_to_the_end(tmp_path):
    """Blocks follow one another, and the file they went to is told."""
    out = tmp_path / "t.ndjson"
    assert append_block(out, [b"a\n", b"b\n"], KEEP_ALL) == out
    append_block(out, [b"c\n"], KEEP_ALL)
    assert out.read_bytes() == b"a\nb\nc\n"
    assert out.stat().st_mode & 0o777 == 0o600


def test_an_unfinished_line_before_is_ended_first(tmp_path):
    """A killed writer's half line never swallows the next block's header."""
    out = tmp_path / "t.ndjson"
    out.write_bytes(b'{"type":"tr')
    append_block(out, [b"next\n"], KEEP_ALL)
    assert out.read_bytes() == b'{"type":"tr\nnext\n'


def test_without_the_lock_the_block_goes_to_a_file_of_the_process(tmp_path, monkeypatch):
    """A lock that never comes costs a second and loses nothing."""
    out = tmp_path / "t.ndjson"
    monkeypatch.setattr(lock, "LOCK_TIMEOUT_S", 0.02)
    with FileLock(tmp_path / "t.ndjson.lock") as held:
        assert held.held
        path = append_block(out, [b"a\n"], KEEP_ALL)
    assert path == tmp_path / f"t.ndjson.{os.getpid()}"
    assert path.read_bytes() == b"a\n"
    assert not out.exists()


def test_where_locks_do_not_exist_every_process_has_its_own_file(tmp_path, monkeypatch):
    """On a platform without fcntl the block goes to the process's file."""
    monkeypatch.setattr(lock, "fcntl", None)
    assert append_block(tmp_path / "t", [b"a\n"], KEEP_ALL).name == f"t.{os.getpid()}"


def test_rotation_moves_whole_files_between_blocks(tmp_path):
    """Above the bound the file becomes .1, .1 becomes .2, and the oldest goes."""
    out = tmp_path / "t.ndjson"
    for number in range(5):
        append_block(out, [b"%d\n" % number], Rotation(max_bytes=3, keep=2))
    assert out.read_bytes() == b"4\n"
    assert (tmp_path / "t.ndjson.1").read_bytes() == b"3\n"
    assert (tmp_path / "t.ndjson.2").read_bytes() == b"2\n"
    assert not (tmp_path / "t.ndjson.3").exists()


def test_rotation_that_keeps_nothing_drops_the_old_file(tmp_path):
    """With keep 0 only the newest file is there."""
    out = tmp_path / "t.ndjson"
    for number in range(2):
        append_block(out, [b"%d\n" % number], Rotation(max_bytes=1, keep=0))
    assert out.read_bytes() == b"1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.ndjson", "t.ndjson.lock"]


_APPENDER = """
import sys
from pathlib import Path
from turntrace.files.append import Rotation, append_block
out, who = Path(sys.argv[1]), sys.argv[2]
for number in range(50):
    size = 1 + (number * 7919) % 200
    append_block(out, [f"{who}:{number}:".encode() + b"x" * (size * 1024) + b"\\n"], Rotation())
"""


def test_eight_processes_append_whole_lines(tmp_path):
    """8 processes, 50 blocks of 1 to 200 KiB each: 400 whole lines, none twice."""
    out = tmp_path / "t.ndjson"
    workers = [subprocess.Popen([sys.executable, "-c", _APPENDER, out, str(who)]) for who in range(8)]
    assert [worker.wait() for worker in workers] == [0] * 8
    files = [path for path in tmp_path.iterdir() if not path.name.endswith(".lock")]
    lines = [line for path in files for line in path.read_bytes().splitlines()]
    heads = {tuple(line.split(b":")[:2]) for line in lines}
    assert heads == {(b"%d" % who, b"%d" % number) for who in range(8) for number in range(50)}
    assert len(lines) == 400


def test_write_all_takes_many_calls_when_a_write_is_short(tmp_path, monkeypatch):
    """A write(2) that takes one byte at a time still writes everything."""
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    real = os.write
    monkeypatch.setattr(os, "write", lambda f, data: real(f, data[:1]))
    write_all(fd, b"hello")
    os.close(fd)
    assert (tmp_path / "f").read_bytes() == b"hello"


def test_a_full_disk_is_an_error():
    """What the disk does not take is told, not swallowed."""
    fd = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError, match="space"):
        write_all(fd, b"x")
    os.close(fd)


@pytest.mark.parametrize("calls", [Calls, BriefCalls])
def test_blocks_follow_one_another_without_a_gap(tmp_path, calls):
    """By either kind of system call a line feed is added after a half line only."""
    out = tmp_path / "t.ndjson"
    for number in range(3):
        assert append_blocks(out, [b"%d\n" % number], KEEP_ALL, calls=calls()) == out
    assert append_aside(out, [b"a\n"], calls()) == append_aside(out, [b"b\n"], calls())
    assert out.read_bytes() == b"0\n1\n2\n"
    assert (tmp_path / f"t.ndjson.{os.getpid()}").read_bytes() == b"a\nb\n"


def test_blocks_given_together_are_rotated_between_them(tmp_path):
    """A file that grows too large within one call is moved before the block that does not fit."""
    out = tmp_path / "t.ndjson"
    blocks = [b"%d234567\n" % number for number in range(5)]
    append_blocks(out, blocks, Rotation(max_bytes=20, keep=2))
    assert out.read_bytes() == blocks[4]
    assert (tmp_path / "t.ndjson.1").read_bytes() == blocks[2] + blocks[3]
    assert (tmp_path / "t.ndjson.2").read_bytes() == blocks[0] + blocks[1]
