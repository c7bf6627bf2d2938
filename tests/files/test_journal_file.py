"""The journal of a live turn, and who is alive."""

import os
import subprocess
import sys

from turntrace.files import lock, process
from turntrace.files.calls import Calls
from turntrace.files.journal import JournalFile
from turntrace.files.lock import claimed, is_locked
from turntrace.files.process import is_alive, started_ticks


def test_lines_are_on_disk_when_write_returns(tmp_path):
    """A second reader sees each line at once."""
    journal = JournalFile(tmp_path / "j.part")
    assert journal.read() == []
    journal.write(b"a\n")
    journal.write(b"b\n")
    assert journal.read() == [b"a\n", b"b\n"]
    journal.close()


def test_a_closed_journal_opens_again_and_goes_on(tmp_path):
    """Closing gives the descriptor back; the next line is appended."""
    journal = JournalFile(tmp_path / "j.part")
    journal.write(b"a\n")
    journal.close()
    journal.close()
    journal.write(b"b\n")
    assert journal.read() == [b"a\n", b"b\n"]
    journal.delete()
    journal.delete()
    assert not journal.path.exists()


def test_a_short_write_is_completed(tmp_path, monkeypatch):
    """A write(2) that takes half of a line is followed by the rest."""
    journal = JournalFile(tmp_path / "j.part")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[: max(1, len(data) // 2)]))
    journal.write(b"abcdefgh\n")
    assert journal.read() == [b"abcdefgh\n"]
    journal.close()


def test_the_kernel_says_whether_the_writer_lives(tmp_path):
    """The mark is there while the journal is open and gone when its process is."""
    path = tmp_path / "j.part"
    assert not is_locked(path)
    journal = JournalFile(path)
    journal.write(b"a\n")
    assert is_locked(path)
    journal.close()
    assert not is_locked(path)
    code = f"from turntrace.files.journal import JournalFile as J; from pathlib import Path; import os\nJ(Path({str(path)!r})).write(b'x\\n'); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert not is_locked(path)


def test_without_locks_nothing_is_locked(tmp_path, monkeypatch):
    """Where fcntl is missing the mark is neither set nor found."""
    monkeypatch.setattr(lock, "fcntl", None)
    journal = JournalFile(tmp_path / "j.part")
    journal.write(b"a\n")
    assert not is_locked(journal.path)
    journal.close()


def test_a_pid_is_alive_only_as_the_process_that_wrote(monkeypatch):
    """A reused pid is told apart by the time its process started."""
    me = os.getpid()
    ticks = started_ticks(me)
    assert ticks is not None
    assert is_alive(me, ticks)
    assert is_alive(me, None)
    assert not is_alive(me, ticks - 1)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not is_alive(gone.pid, None)
    assert started_ticks(gone.pid) is None

    def refused(pid, signal):
        raise PermissionError

    monkeypatch.setattr(process.os, "kill", refused)
    assert is_alive(1, None)


def test_a_file_that_was_deleted_before_it_was_marked_is_made_again(tmp_path):
    """A reader that joined the journal in the very moment it opens does not take its lines away."""

    class Deleting(Calls):
        """Deletes the file behind the first open."""

        opened = 0

        def open(self, path, flags, mode):
            fd = super().open(path, flags, mode)
            self.opened += 1
            if self.opened == 1:
                path.unlink()
            return fd

    calls = Deleting()
    journal = JournalFile(tmp_path / "j.part", calls)
    journal.write(b"a\n")
    assert calls.opened == 2
    assert journal.path.read_bytes() == b"a\n"
    journal.close()


def test_a_look_at_the_lock_delays_the_mark_only(tmp_path):
    """Who asks whether a writer lives holds the lock for a moment; the writer tries again, and not for long."""
    path = tmp_path / "j.part"
    path.touch()
    journal = JournalFile(path)
    with claimed(path) as is_mine:
        assert is_mine
        journal.write(b"a\n")
    assert path.read_bytes() == b"a\n"
    journal.close()


def test_a_journal_that_is_left_stands(tmp_path):
    """What a process leaves for the next one is there and no longer marked."""
    journal = JournalFile(tmp_path / "j.part")
    journal.write(b"a\n")
    journal.leave()
    assert journal.path.read_bytes() == b"a\n"
    assert not is_locked(journal.path)


def test_a_part_is_read_while_the_file_is_open(tmp_path):
    """Any stretch of what was written; nothing of a file that is closed."""
    journal = JournalFile(tmp_path / "j.part")
    journal.delete()
    assert (journal.write(b"ab\n"), journal.write(b"cd\n")) == (0, 3)
    assert journal.part(3, 3) == b"cd\n"
    journal.close()
    assert journal.part(3, 3) == b""
