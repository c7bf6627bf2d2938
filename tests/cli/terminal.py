"""A job on a terminal of its own: what is typed, what is printed, when it stopped, how it ended."""

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

__all__ = ["Terminal"]

SHELL = str(Path(__file__).with_name("job_shell.py"))
PATIENCE_S = 30.0


class Terminal:
    """Runs ``arguments`` under a small job-control shell; use as a context manager."""

    def __init__(self, folder, *arguments, env=None):
        self._events = folder / "events"
        self._screen, self._end = pty.openpty()
        self._printed = b""
        self._process = subprocess.Popen(
            [sys.executable, "-S", SHELL, str(self._events), *arguments],
            stdin=self._end,
            stdout=self._end,
            stderr=self._end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - pytest has one thread
            env=env,
        )

    def type(self, keys):
        """Type ``keys``; control characters act as on any terminal."""
        os.write(self._screen, keys)

    def read_until(self, text):
        """Everything printed so far, once ``text`` is in it."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self._printed:
            assert time.monotonic() < deadline, self._printed
            if select.select([self._screen], [], [], 0.1)[0]:
                self._printed += os.read(self._screen, 65536)
        return self._printed

    def events(self, count):
        """The first ``count`` events, waited for; printing goes on meanwhile."""
        deadline = time.monotonic() + PATIENCE_S
        while len(found := self._events.read_text().splitlines() if self._events.exists() else []) < count:
            assert time.monotonic() < deadline, (found, self._printed)
            if select.select([self._screen], [], [], 0.02)[0]:
                self._printed += os.read(self._screen, 65536)
        return found[:count]

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self._process.poll() is None and kind is not None:
            self._process.kill()
        self._process.wait(PATIENCE_S)
        os.close(self._end)
        os.close(self._screen)
