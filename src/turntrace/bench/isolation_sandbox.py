"""Isolation by bubblewrap: namespaces of its own, a read-only root, nothing of the user's in sight."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from turntrace.bench import isolation_gate
from turntrace.bench.isolation import Command, Ended, Mode, Served
from turntrace.bench.isolation_child import attend

__all__ = ["BubbleWrap", "bubblewrap", "interpreter_prefixes", "sandbox_argv"]

_PROBE_TIMEOUT_S: Final = 10.0


def bubblewrap() -> tuple[str | None, str]:
    """The path of a bubblewrap that works here, or None; and the reason why not."""
    found = shutil.which("bwrap")
    if found is None:
        return None, "bubblewrap is not installed (Debian and Ubuntu: apt-get install bubblewrap)"
    probe = [found, "--ro-bind", "/", "/", "--tmpfs", "/tmp", *_NAMESPACES, "--unshare-net", "true"]  # noqa: S108 - inside
    try:
        ran = subprocess.run(probe, capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False)  # noqa: S603 - found on PATH
    except subprocess.TimeoutExpired:
        return None, f"bubblewrap did not answer within {_PROBE_TIMEOUT_S:g} s"
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        return None, f"bubblewrap does not work here: {said[-1] if said else f'status {ran.returncode}'}"
    return found, ""


_NAMESPACES: Final = (
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--unshare-pid",
    "--unshare-ipc",
    "--die-with-parent",
)


def interpreter_prefixes() -> tuple[Path, ...]:
    """Where this Python and its packages lie, for agents and oracles written in it."""
    package = Path(__file__).parents[2]
    return tuple(dict.fromkeys(Path(found) for found in (sys.base_prefix, sys.prefix, package)))


def sandbox_argv(found: str, command: Command, info_fd: int, gate_fd: int) -> list[str]:
    """The whole command line. Later mounts cover earlier ones: hidden, shown again, writable."""
    mounts = ["--ro-bind", "/", "/", *_NAMESPACES]
    for folder in _covered(command.hidden):
        mounts += ["--tmpfs", str(folder)]
    for folder in command.readable:
        mounts += ["--ro-bind", str(folder), str(folder)]
        for inner in _covered(command.hidden):
            if inner != folder and inner.is_relative_to(folder):
                mounts += ["--tmpfs", str(inner)]
    for folder in command.writable:
        mounts += ["--bind", str(folder), str(folder)]
    network = [] if command.network else ["--unshare-net"]
    own = ["--new-session", "--info-fd", str(info_fd), "--chdir", str(command.cwd)]
    gate = []
    if command.served is not None:
        gate = [sys.executable, "-I", "-S", isolation_gate.__file__, str(gate_fd), str(command.served.port)]
    return [found, *mounts, *network, *own, "--", *gate, *command.argv]


def _covered(folders: tuple[Path, ...]) -> Iterator[Path]:
    """Folders that exist, the outer before the inner."""
    return iter(sorted({folder.resolve() for folder in folders if folder.is_dir()}))


class _Namespace:
    """The processes of one sandbox. ``init`` is the first of them as the outside numbers it."""

    def __init__(self, init: int | None, outer: int) -> None:
        self._init = init
        self._outer = outer
        self._gone: int | None = None
        if init is not None:
            with suppress(ProcessLookupError):  # over already
                self._gone = os.pidfd_open(init)

    def terminate(self) -> None:
        """Ask the command. The first process of a namespace does not hear it, which keeps the rest alive."""
        if self._init is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._init, signal.SIGTERM)

    def kill(self) -> None:
        """End the first process: the kernel ends all others."""
        with suppress(ProcessLookupError):
            os.kill(self._outer if self._gone is None else self._init or self._outer, signal.SIGKILL)

    def clear(self) -> None:
        """Wait for the end of the namespace: only then has nothing of the command a file open."""
        if self._gone is None or self._init is None:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._gone, signal.SIGKILL)
        select.select([self._gone], [], [])
        os.close(self._gone)


class BubbleWrap:
    """Runs commands in sandboxes."""

    mode: Mode = "sandbox"

    def __init__(self, found: str, stopping: threading.Event) -> None:
        self._found = found
        self._stopping = stopping

    def run(self, command: Command) -> Ended:
        """Run a command in namespaces that end with it, or with this process."""
        outside, inside = socket.socketpair()
        with outside:
            started_ns = time.monotonic_ns()
            with inside:
                process, init = self._start(command, inside.fileno())
            if command.served is not None and _listen(outside, command.served):
                started_ns = time.monotonic_ns()
                outside.send(b".")
        return attend(
            process,
            _Namespace(init, process.pid),
            started_ns=started_ns,
            timeout_s=command.timeout_s,
            most_bytes=command.output_bytes,
            stopping=self._stopping,
        )

    def _start(self, command: Command, gate: int) -> tuple[subprocess.Popen[bytes], int | None]:
        """The outermost process, and the first of the namespace."""
        reads, writes = os.pipe()
        with tempfile.TemporaryFile() as stdin, os.fdopen(reads, "rb") as info:
            stdin.write(command.stdin)
            stdin.seek(0)
            argv = sandbox_argv(self._found, command, writes, gate)
            try:
                process = subprocess.Popen(  # noqa: S603 - running what the person names is the purpose
                    argv,
                    env=dict(command.env),
                    stdin=stdin if command.stdin else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    pass_fds=(writes, gate) if command.served else (writes,),
                )
            finally:
                os.close(writes)
            return process, _init_of(info.read())


def _listen(outside: socket.socket, served: Served) -> bool:
    """Take the socket that listens inside; False when the command never came so far."""
    said, sockets, *_ = socket.recv_fds(outside, 1, 1)
    if said:
        served.take(socket.socket(fileno=sockets[0]))
    return bool(said)


def _init_of(said: bytes) -> int | None:
    """What bubblewrap says of the namespace; None when it failed before there was one."""
    return int(json.loads(said)["child-pid"]) if said else None
