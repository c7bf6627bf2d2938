"""Running a child without a sandbox: its own process group, a bare environment, bounded output and time."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from turntrace.bench.tasks import CompletedChild
from turntrace.config import environment

__all__ = ["CAPTURE_BYTES", "run_plain_child"]

CAPTURE_BYTES: Final = 8 * 1024 * 1024
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_NOT_FOUND: Final = 127


def run_plain_child(
    argv: Sequence[str], *, cwd: Path | None, stdin: bytes, timeout_s: float
) -> CompletedChild:
    """Run ``argv`` and kill its group at the end; what leaves the group or reads elsewhere is not stopped."""
    with (
        tempfile.TemporaryDirectory(prefix="turntrace-child-") as home,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as given,
    ):
        given.write(stdin)
        given.seek(0)
        try:
            child = subprocess.Popen(  # noqa: S603 - running what it is given is what it is for
                argv,
                cwd=cwd or home,
                stdin=given,
                stdout=out,
                stderr=err,
                env={"PATH": environment().get("PATH", _PATH), "HOME": home, "TMPDIR": home, "NO_COLOR": "1"},
                start_new_session=True,
            )
        except OSError as error:
            return CompletedChild(status=_NOT_FOUND, stdout=b"", stderr=str(error.strerror).encode())
        timed_out = _waited(child, timeout_s)
        return CompletedChild(
            status=child.returncode, stdout=_start(out), stderr=_start(err), timed_out=timed_out
        )


def _waited(child: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for the child and kill what is left of its group; whether it had to be stopped."""
    timed_out = False
    try:
        child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return timed_out


def _start(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(CAPTURE_BYTES)
