"""System calls as the standard library makes them, where there are locks and where there are none."""

import errno
import importlib.util
import os
import sys

import pytest

from turntrace.files import calls as calls_module
from turntrace.files.calls import Calls

FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND


def test_the_end_of_a_file_is_told(tmp_path):
    """Open, write, size and last byte are those of the system."""
    calls = Calls()
    fd = calls.open(tmp_path / "f", FLAGS, 0o600)
    assert calls.write(fd, b"ab") == 2
    assert (calls.size_bytes(fd), calls.byte_at(fd, 1), calls.byte_at(fd, 9)) == (2, b"b", b"")
    calls.close(fd)
    with pytest.raises(OSError, match="descriptor"):
        calls.size_bytes(fd)


@pytest.mark.parametrize("number", [errno.EWOULDBLOCK, errno.ENOLCK, errno.ENOTSUP])
def test_a_lock_that_cannot_be_had_is_no_error(tmp_path, monkeypatch, number):
    """Taken by another, or a file system without locks: both mean that this one does not hold it."""
    calls = Calls()
    fd = calls.open(tmp_path / "f", FLAGS, 0o600)
    assert calls.lock(fd)

    def refused(fd, operation):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(calls_module.fcntl, "flock", refused)
    assert not calls.lock(fd)
    calls.close(fd)


def test_without_fcntl_nothing_is_locked(tmp_path, monkeypatch):
    """On a platform without the module the name is None and no lock is ever held."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    spec = importlib.util.spec_from_file_location("calls_without_fcntl", calls_module.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.fcntl is None
    fd = os.open(tmp_path / "f", FLAGS)
    assert not module.Calls().lock(fd)
    os.close(fd)
