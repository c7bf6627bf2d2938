"""Locks that the kernel frees when their process is gone."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from turntrace.files import lock as lock_module
from turntrace.files.append import Rotation, append_block
from turntrace.files.lock import FileLock, claimed, is_locked


def test_one_holder_at_a_time(tmp_path):
    """The second waits for its timeout and goes on without; the first's end frees it."""
    path = tmp_path / "t.lock"
    with FileLock(path) as first:
        assert first.held
        start_s = time.monotonic()
        with FileLock(path, 0.05) as second:
            assert not second.held
        assert time.monotonic() - start_s >= 0.05
        assert is_locked(path)
    assert not first.held
    with FileLock(path, 0) as third:
        assert third.held


def test_a_waiting_lock_is_taken_when_the_holder_ends(tmp_path):
    """A holder that is killed frees the lock, and who waits gets it."""
    path = tmp_path / "t.lock"
    code = (
        "import sys, time; from pathlib import Path; from turntrace.files.lock import FileLock\n"
        "with FileLock(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        holder.kill()
        with FileLock(path, 10) as lock:
            assert lock.held


def test_a_claim_is_for_one(tmp_path):
    """Of two only one may take a file away; of a file that is gone none."""
    path = tmp_path / "j.part"
    with claimed(path) as is_mine:
        assert not is_mine
    path.touch()
    with claimed(path) as is_mine, claimed(path) as is_other_s:
        assert (is_mine, is_other_s) == (True, False)
    with claimed(path) as is_mine:
        assert is_mine


def test_an_error_inside_frees_the_lock(tmp_path):
    """The block may fail; the lock does not outlive it."""
    path = tmp_path / "t.lock"
    for holder in (FileLock(path), claimed(path)):
        path.touch()
        with pytest.raises(ValueError, match="x"), holder:
            raise ValueError("x")
        assert not is_locked(path)


def test_no_descriptor_is_left(tmp_path):
    """Whatever the outcome, every descriptor is closed."""
    path = tmp_path / "t.lock"
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with FileLock(path), FileLock(path, 0), claimed(path), claimed(tmp_path / "none"):
            assert is_locked(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_without_locks_each_process_writes_a_file_of_its_own(tmp_path, monkeypatch):
    """Where fcntl is missing no lock is held, a claim always holds, and blocks go aside."""
    monkeypatch.setattr(lock_module, "fcntl", None)
    out = tmp_path / "t.ndjson"
    with FileLock(out) as lock:
        assert not lock.held
    out.touch()
    assert not is_locked(out)
    with claimed(out) as is_mine:
        assert is_mine
    assert append_block(out, [b"x\n"], Rotation()) == tmp_path / f"t.ndjson.{os.getpid()}"


_FORKING = """
import os, signal, sys
from pathlib import Path
from turntrace.files.lock import FileLock, is_locked
path = Path(sys.argv[1])
begun, begins = os.pipe()
with FileLock(path) as lock:
    child = os.fork()
    if not child:
        os.write(begins, b"x")
        signal.pause()
    os.read(begun, 1)
    assert is_locked(path)
print(is_locked(path), flush=True)
os.kill(child, 9)
os.waitpid(child, 0)
"""


def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    """A child that lives on after its parent let go holds up nobody."""
    code = [sys.executable, "-c", _FORKING, tmp_path / "t.lock"]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("False\n", "")
