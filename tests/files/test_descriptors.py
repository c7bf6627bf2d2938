"""Descriptors that a forked child does not keep."""

import os
import threading

import pytest

from turntrace.files import descriptors
from turntrace.files.descriptors import give_back, take
from turntrace.files.lock import FileLock, is_locked


def in_child(check):
    """The exit status of a forked child that runs ``check``: 0 when that returns True."""
    pid = os.fork()
    if not pid:
        os._exit(0 if check() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def is_open(fd):
    """Whether the descriptor can be used."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def null():
    """A descriptor of a file that is always there."""
    return os.open(os.devnull, os.O_RDONLY)


def test_a_child_has_none_of_them():
    """What is taken is closed in the child and stays open in the parent."""
    fd = take(null)
    assert in_child(lambda: not is_open(fd)) == 0
    assert is_open(fd)
    give_back(fd)
    assert not is_open(fd)


def test_a_child_keeps_what_was_given_back():
    """A number that is another file's by now is left alone."""
    fd = take(null)
    give_back(fd)
    other = null()
    assert other == fd
    assert in_child(lambda: is_open(other)) == 0
    os.close(other)


def test_a_fork_while_a_thread_closes_waits_for_the_end_of_it():
    """Between close(2) and the note of it, the number may be another file's already: no fork comes there."""
    fd, closed, go_on = take(null), threading.Event(), threading.Event()

    def slowly(number):
        os.close(number)
        closed.set()
        go_on.wait(10)

    closing = threading.Thread(target=give_back, args=(fd, slowly))
    closing.start()
    assert closed.wait(10)
    other = null()
    assert other == fd
    threading.Timer(0.1, go_on.set).start()
    assert in_child(lambda: is_open(other) and not descriptors._taken) == 0
    assert go_on.is_set()
    closing.join()
    os.close(other)


def test_a_child_forked_while_one_is_open_can_take_others():
    """The child starts with a free lock, and nothing of the parent's is its own."""
    fd = take(null)

    def takes_and_gives():
        give_back(fd)  # not its own: nothing happens
        mine = take(null)
        give_back(mine)
        return not is_open(mine)

    assert in_child(takes_and_gives) == 0
    give_back(fd)


def test_a_program_that_closed_everything_before_it_forks_is_not_disturbed():
    """Daemons close what they did not open; the child is told nothing of it."""
    fd = take(null)
    os.close(fd)
    descriptors._changing.acquire()
    descriptors._close_in_child()
    assert not descriptors._taken


def test_a_lock_that_is_held_at_a_fork_is_free_for_the_child(tmp_path):
    """Every descriptor of a lock is closed, and locks can be taken again."""
    path = tmp_path / "t.lock"

    def can_be_taken():
        with FileLock(path, 0) as again:
            return again.held

    with FileLock(path) as lock:
        assert lock.held
        assert in_child(lambda: is_locked(path)) == 0
    assert in_child(can_be_taken) == 0


def test_what_cannot_be_opened_is_not_noted(tmp_path):
    """The error is the caller's."""
    before = set(descriptors._taken)
    with pytest.raises(FileNotFoundError):
        take(lambda: os.open(tmp_path / "none", os.O_RDONLY))
    assert descriptors._taken == before
