"""What a command may touch while it runs, and what no form of isolation here can stop."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

__all__ = [
    "CANNOT_STOP",
    "ENV_ALLOWED",
    "Captured",
    "Command",
    "Confinement",
    "Ended",
    "Mode",
    "Served",
    "allowed_env",
]

Mode = Literal["sandbox", "process"]

CANNOT_STOP: Final[Mapping[Mode, tuple[str, ...]]] = {
    "sandbox": ("reading world-readable files of the system", "using processor and memory without bound"),
    "process": (
        "reading the suite and every file of the user",
        "writing outside the workspace",
        "leaving the session and so outliving the run",
        "the network",
        "using processor and memory without bound",
    ),
}
"""Printed before a run and stored in its result."""

ENV_ALLOWED: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables an agent gets of the harness's own environment."""

OUTPUT_BYTES: Final = 4 << 20
"""How much of each stream is kept: one half from its start, one from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server of the harness's on the loopback of a sandbox: ``take`` gets the listening socket of ``port``."""

    port: int
    take: Callable[[socket.socket], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to run. ``writable`` are the only folders it may write to, ``hidden`` those it may not see.

    ``readable`` are folders shown read-only although they lie in a hidden one. ``stdin`` is what it may
    read, empty for nothing. ``network`` False leaves loopback only, where the isolation can.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    timeout_s: float
    stdin: bytes = b""
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    network: bool = False
    served: Served | None = None
    output_bytes: int = OUTPUT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What a stream said: ``data`` is all of it, or its two ends when ``total_bytes`` is more."""

    data: bytes = b""
    total_bytes: int = 0

    @property
    def cut_bytes(self) -> int:
        """How much was dropped."""
        return self.total_bytes - len(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended. ``status`` is negative for a signal, None where it could not be started.

    ``forced`` says that it ignored the request to end, ``left_running`` that it ended before processes of
    its own, which were then killed; None where that is not seen.
    """

    status: int | None
    wall_ns: int
    stdout: Captured = field(default_factory=Captured)
    stderr: Captured = field(default_factory=Captured)
    timed_out: bool = False
    interrupted: bool = False
    forced: bool = False
    left_running: bool | None = None
    error: str = ""


class Confinement(Protocol):
    """A way to run commands."""

    mode: Mode

    def run(self, command: Command) -> Ended:
        """Run ``command`` and return once it and all of its that can be reached are dead."""
        ...


def allowed_env(env: Mapping[str, str], names: tuple[str, ...] = ()) -> dict[str, str]:
    """What of ``env`` an agent gets: the allow-list and ``names``.

    >>> allowed_env({"PATH": "/bin", "SECRET": "x", "KEY": "y"}, ("KEY",))
    {'PATH': '/bin', 'KEY': 'y'}
    """
    return {name: env[name] for name in (*ENV_ALLOWED, *names) if name in env}
