"""System calls that keep the interpreter lock: the same results and errors as the others'."""

import ctypes
import errno
import os
import threading
import time

import pytest

from turntrace.files import brief_calls
from turntrace.files.brief_calls import BriefCalls
from turntrace.files.calls import Calls

FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND


@pytest.fixture(params=[True, False], ids=["brief", "usual"])
def calls(request, monkeypatch):
    """Calls before and after a slow one."""
    monkeypatch.setattr(brief_calls, "_SLOW_NS", 10**10)
    made = BriefCalls()
    assert made.is_brief
    made._again_ns = 0 if request.param else 2**62
    assert made.is_brief is request.param
    return made


def test_results_are_those_of_the_standard_library(calls, tmp_path):
    """Open with its mode, write, size, one byte, lock and close do what os does."""
    path = tmp_path / "f-ä"
    fd = calls.open(path, FLAGS, 0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    assert calls.write(fd, b"ab") == 2
    assert calls.write(fd, memoryview(b"c")) == 1
    assert (calls.size_bytes(fd), calls.byte_at(fd, 2), calls.byte_at(fd, 9)) == (3, b"c", b"")
    assert calls.lock(fd)
    other = Calls().open(path, FLAGS, 0o600)
    assert not Calls().lock(other)
    calls.close(fd)
    assert calls.lock(other)
    os.close(other)
    assert path.read_bytes() == b"abc"


def test_errors_are_those_of_the_standard_library(calls, tmp_path):
    """A failed call raises OSError with its number and, for open, its path."""
    with pytest.raises(FileNotFoundError) as caught:
        calls.open(tmp_path / "none" / "f", FLAGS, 0o600)
    assert str(tmp_path / "none" / "f") in str(caught.value)
    fd = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError) as full:
        calls.write(fd, b"x")
    assert full.value.errno == errno.ENOSPC
    os.close(fd)
    for call in (
        calls.close,
        calls.size_bytes,
        lambda fd: calls.byte_at(fd, 0),
        lambda fd: calls.write(fd, b""),
    ):
        with pytest.raises(OSError) as bad:
            call(fd)
        assert bad.value.errno == errno.EBADF


def test_a_large_write_gives_the_lock_away(tmp_path, monkeypatch):
    """What takes long anyway goes the usual way, so that other threads run meanwhile."""
    calls, usual = BriefCalls(), []
    monkeypatch.setattr(Calls, "write", lambda self, fd, data: usual.append(len(data)) or len(data))
    fd = os.open(tmp_path / "f", FLAGS)
    calls.write(fd, b"x" * 10)
    calls.write(fd, b"x" * (1 << 20))
    assert usual == [1 << 20]
    os.close(fd)


class FakeLibc:
    """A C library whose write fails and dawdles as told."""

    def __init__(self, *errors, seconds=0.0):
        self.errors = list(errors)
        self.seconds = seconds

    def write(self, fd, data, size):
        """As write(2)."""
        if self.seconds:
            time.sleep(self.seconds)
        if self.errors:
            ctypes.set_errno(self.errors.pop(0))
            return -1
        return size


def test_a_call_that_a_signal_interrupted_is_made_again(monkeypatch):
    """EINTR is no error, as everywhere in Python."""
    monkeypatch.setattr(brief_calls, "_SLOW_NS", 10**10)
    calls = BriefCalls()
    calls._libc = FakeLibc(errno.EINTR, errno.EINTR)
    assert calls.write(1, b"abc") == 3
    assert calls.is_brief


def test_two_slow_calls_in_a_row_end_the_brief_ones():
    """A disk that takes longer than five milliseconds must not hold up the agent's threads."""
    calls = BriefCalls()
    calls._libc = FakeLibc(seconds=0.02)
    assert calls.write(1, b"abc") == 3
    assert calls.is_brief  # it may have waited for the interpreter
    assert calls.write(1, b"abc") == 3
    assert not calls.is_brief


def test_a_slow_call_between_quick_ones_is_no_slow_disk():
    """Whatever held it up, it did not hold up the next."""
    calls = BriefCalls()
    calls._libc = FakeLibc()
    for seconds in (0.02, 0.0, 0.02, 0.0):
        calls._libc.seconds = seconds
        calls.write(1, b"abc")
    assert calls.is_brief


def test_a_slow_disk_is_tried_again_after_ever_longer_pauses(monkeypatch, tmp_path):
    """One more slow call doubles the pause; a quick one ends it."""
    monkeypatch.setattr(brief_calls, "_PAUSE_NS", 10_000_000)
    calls = BriefCalls()
    quick, slow = calls._libc, FakeLibc(seconds=0.006)
    calls._libc = slow
    calls.write(1, b"abc")
    calls.write(1, b"abc")
    assert (calls.is_brief, calls._pause_ns) == (False, 20_000_000)
    time.sleep(0.02)
    assert calls.is_brief
    calls.write(1, b"abc")
    assert (calls.is_brief, calls._pause_ns) == (False, 40_000_000)
    time.sleep(0.03)
    calls._libc = quick
    fd = calls.open(tmp_path / "f", FLAGS, 0o600)
    calls.write(fd, b"abc")
    assert (calls.is_brief, calls._pause_ns, calls._slow) == (True, 10_000_000, 0)
    calls.close(fd)


def test_a_write_keeps_no_other_thread_waiting_for_its_turn(tmp_path):
    """With a busy thread beside it, a brief write takes far less than the interpreter's switch interval."""
    calls, stop = BriefCalls(), threading.Event()

    def busy():
        while not stop.is_set():
            sum(range(100))

    worker = threading.Thread(target=busy)
    worker.start()
    fd = calls.open(tmp_path / "f", FLAGS, 0o600)
    times = []
    for _ in range(200):
        start_ns = time.perf_counter_ns()
        calls.write(fd, b"x\n")
        times.append(time.perf_counter_ns() - start_ns)
    stop.set()
    worker.join()
    calls.close(fd)
    assert sorted(times)[100] < 2_000_000


@pytest.mark.parametrize("error", [OSError, AttributeError, TypeError])
def test_without_a_c_library_calls_are_the_usual_ones(monkeypatch, tmp_path, error):
    """A platform without dlopen(NULL) writes as the standard library does."""

    def missing(*arguments, **options):
        raise error

    monkeypatch.setattr(brief_calls.ctypes, "PyDLL", missing)
    calls = BriefCalls()
    assert not calls.is_brief
    fd = calls.open(tmp_path / "f", FLAGS, 0o600)
    assert calls.write(fd, b"x") == 1
    calls.close(fd)


def test_without_fcntl_no_brief_lock_is_held(monkeypatch, tmp_path):
    """Where there are no locks a brief one is none either."""
    monkeypatch.setattr(brief_calls, "fcntl", None)
    monkeypatch.setattr("turntrace.files.calls.fcntl", None)
    fd = os.open(tmp_path / "f", FLAGS)
    assert not BriefCalls().lock(fd)
    os.close(fd)
