"""What tests of hostile agents share: the agent, a look at what survives, a digest of what must not change."""

import hashlib
import os
import sys
from pathlib import Path

import pytest

from turntrace.bench.isolation import Command
from turntrace.bench.isolation_sandbox import bubblewrap, interpreter_prefixes

FOUND, REASON = bubblewrap()
needs_sandbox = pytest.mark.skipif(FOUND is None, reason=REASON or "bubblewrap works")
HOSTILE = Path(__file__).parent / "hostile.py"


def digest(folder):
    """What is in a folder: names, mode bits and bytes."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(f"{path.relative_to(folder)} {path.lstat().st_mode}".encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


def command(folder, *deed, timeout_s=20.0, hidden=(), **more):
    """A command that runs a deed in the workspace of ``folder``."""
    return Command(
        argv=(sys.executable, "-I", "-S", str(HOSTILE), *map(str, deed)),
        cwd=folder.workspace,
        env={"PATH": os.environ["PATH"], **folder.env()},
        timeout_s=timeout_s,
        writable=folder.writable,
        readable=(*interpreter_prefixes(), HOSTILE.parent),
        hidden=(Path.home(), Path("/tmp"), *hidden),
        **more,
    )


def survivors(marker):
    """Processes that have ``marker`` in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in words and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found
