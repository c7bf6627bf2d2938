r"""Running a command as if turntrace were not there: its files, terminal, signals and exit status.

The command is started in turntrace's own process group with every descriptor it would have inherited.
A signal of the terminal (Ctrl-C, Ctrl-\, Ctrl-Z, a hang-up) reaches the whole group, so nothing is passed
on; a signal that a process sends to turntrace alone is. When the command stops, turntrace stops with it,
so that the shell sees a stopped job.
"""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turntrace.errors import TurntraceError

__all__ = [
    "FAILED_STATUS",
    "NOT_EXECUTABLE_STATUS",
    "NOT_FOUND_STATUS",
    "Ending",
    "StartError",
    "Unsignalled",
    "executable",
    "is_supported",
    "leave",
    "supervise",
]

FAILED_STATUS: Final = 125
NOT_EXECUTABLE_STATUS: Final = 126
NOT_FOUND_STATUS: Final = 127

_SIGNAL_STATUS: Final = 128
_LOOK_AGAIN_S: Final = 1.0
_SHELL: Final = "/bin/sh"
_OUR_FAULT: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})

_PASSED_ON: Final = (
    "SIGINT",
    "SIGQUIT",
    "SIGTERM",
    "SIGHUP",
    "SIGUSR1",
    "SIGUSR2",
    "SIGWINCH",
    "SIGCONT",
    "SIGTSTP",
)
_KEPT: Final = ("SIGTTIN", "SIGTTOU")
_CHANGED_BY_PYTHON: Final = ("SIGPIPE", "SIGXFSZ")


class StartError(TurntraceError):
    """The command could not be started; ``status`` is the exit status that says so."""

    def __init__(self, word: str, error: OSError) -> None:
        self.status = _start_status(error)
        hint = f"; for a Python script: turntrace run -- python {word}" if _is_script(word) else ""
        super().__init__(f"cannot run {word}: {error.strerror}{hint}")


def _is_script(word: str) -> bool:
    return word.endswith(".py") and Path(word).is_file()


def _start_status(error: OSError) -> int:
    if error.errno in _OUR_FAULT:
        return FAILED_STATUS
    return NOT_FOUND_STATUS if error.errno in {errno.ENOENT, errno.ENOTDIR} else NOT_EXECUTABLE_STATUS


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ended: by itself with ``code``, or by ``signal`` (0: by itself).

    ``was_interrupted``: the terminal sent turntrace the same signal.
    """

    code: int
    signal: int = 0
    was_interrupted: bool = False

    @property
    def status(self) -> int:
        """The exit status a shell would show: the command's own, 128 + N for signal N."""
        return _SIGNAL_STATUS + self.signal if self.signal else self.code


def executable(word: str) -> str:
    """The file that the command ``word`` would run, found as a shell does.

    Raises:
        StartError: when there is none, or it may not be run.
    """
    path = shutil.which(word)
    if path is None:
        is_there = Path(word).exists() if os.sep in word else shutil.which(word, mode=os.F_OK) is not None
        number = errno.EACCES if is_there else errno.ENOENT
        raise StartError(word, OSError(number, os.strerror(number)))
    return path


def is_supported() -> bool:
    """Whether this platform has what supervise() needs; Windows has not."""
    return hasattr(os, "posix_spawn") and hasattr(signal, "pthread_sigmask")


class Unsignalled:
    """Threads started in the block are never given a signal, so that the main thread hears of all of them."""

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before: set[int] | None = None

    def __enter__(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            self._before = set(signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()))

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


def supervise(arguments: list[str], env: Mapping[str, str]) -> Ending:
    """Run a command to its end.

    Raises:
        StartError: when it cannot be started.
    """
    if not is_supported():
        return Ending(code=subprocess.call(arguments, env=env))  # noqa: S603 - the user's own command
    signals = _signals(_PASSED_ON) | _signals(_KEPT) | {signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an ignored one would lose the exit status
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        return _Supervisor(_spawn(arguments, env, before), signals).watch()
    finally:
        for number in signal.sigpending() & signals:
            signal.sigwait({number})  # it was meant for the command, which has ended
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave(ending: Ending) -> int:
    """The exit status to end with. After a Ctrl-C that ended the command turntrace dies of it too.

    A shell script stops at a Ctrl-C only if the command it ran died of it; the status is 130 either way.
    """
    if ending.was_interrupted and ending.signal == signal.SIGINT:
        sys.stdout.flush()
        sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return ending.status


def _signals(names: Sequence[str]) -> set[int]:
    return {getattr(signal, name) for name in names if hasattr(signal, name)}


def _spawn(arguments: list[str], env: Mapping[str, str], mask: AbstractSet[int]) -> int:
    path = executable(arguments[0])
    defaults = _signals(_CHANGED_BY_PYTHON)
    try:
        try:
            return os.posix_spawn(path, arguments, env, setsigmask=mask, setsigdef=defaults)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            script = [_SHELL, path, *arguments[1:]]  # a script without a first line: as every shell does
            return os.posix_spawn(_SHELL, script, env, setsigmask=mask, setsigdef=defaults)
    except OSError as error:
        raise StartError(arguments[0], error) from error


class _Supervisor:
    """Waits for one child, with the signals of interest blocked."""

    def __init__(self, pid: int, signals: set[int]) -> None:
        self._pid = pid
        self._signals = signals
        self._from_terminal: set[int] = set()

    def watch(self) -> Ending:
        """Pass signals on until the child has ended."""
        while True:
            number, is_sent = self._next_signal()
            if number == signal.SIGCHLD:
                ending = self._look()
                if ending is not None:
                    return ending
            elif is_sent:
                self._send(number)
            else:
                self._from_terminal.add(number)

    def _next_signal(self) -> tuple[int, bool]:
        """A signal, and whether it came from a process and not from the terminal."""
        if hasattr(signal, "sigtimedwait"):
            info = signal.sigtimedwait(self._signals, _LOOK_AGAIN_S)
            if info is None:
                return signal.SIGCHLD, True  # in a process of several threads another one may have got it
            return info.si_signo, info.si_code <= 0 and info.si_signo not in _signals(_KEPT)
        number = signal.sigwait(self._signals)  # macOS cannot tell; what a terminal sends is not passed on
        return number, number in _signals(("SIGCONT", "SIGTERM", "SIGUSR1", "SIGUSR2"))

    def _look(self) -> Ending | None:
        """How the child ended; None when it lives. Follow it when it stopped."""
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return None
            if not os.WIFSTOPPED(status):
                return self._ending(status)
            self._stop_too(os.WSTOPSIG(status))

    def _ending(self, status: int) -> Ending:
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            return Ending(code=code)
        return Ending(code=0, signal=-code, was_interrupted=-code in self._from_terminal)

    def _stop_too(self, number: int) -> None:
        """Stop as the child did until somebody continues us; that signal is passed on like others."""
        os.kill(os.getpid(), number)  # while it is blocked, so that it and the terminal's own become one
        before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it ended meanwhile; its status is still to be read
            os.kill(self._pid, number)
