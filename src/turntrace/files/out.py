"""Where a trace goes: names, placeholders and the files that lie beside it.

Beside ``OUT`` lie ``OUT.<run_id>.part`` (journal of a live turn), ``OUT.<trace_id>.<pid>.part``
(fragment of a turn whose root lives in another process), ``OUT.<run_id>.otlp`` (what a run received),
``OUT.lock``, ``OUT.<pid>`` (blocks written
without the lock) and ``OUT.1`` ... (rotated).
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = [
    "DEFAULT_FOLDER",
    "FILE_MODE",
    "companions",
    "default_out",
    "expand",
    "fragment_path",
    "journal_path",
    "newest",
    "parts_of",
    "requests_folder",
    "requests_folders",
    "safe_name",
]

FILE_MODE: Final = 0o600
DEFAULT_FOLDER: Final = ".turntrace"
_REQUESTS: Final = ".otlp"

_PLACEHOLDER: Final = re.compile(r"\{(run_id|pid|date|time|agent)\}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def expand(template: str, *, run_id: str, agent: str | None) -> str:
    """The path with ``{run_id} {pid} {date} {time} {agent}`` replaced; nothing else is touched.

    Values from data (the agent's name) lose every character that could leave the folder.
    """
    now = time.localtime()
    values = {
        "run_id": run_id,
        "pid": str(os.getpid()),
        "date": time.strftime("%Y%m%d", now),
        "time": time.strftime("%H%M%S", now),
        "agent": safe_name(agent or "agent"),
    }
    return _PLACEHOLDER.sub(lambda match: values[match.group(1)], template)


def safe_name(text: str) -> str:
    """``text`` as one path component: letters, digits, dot, dash and underscore, never empty or dotted.

    >>> safe_name("../../etc/passwd")
    'etc-passwd'
    """
    return _UNSAFE.sub("-", text).strip(".-")[:64] or "agent"


def default_out() -> str:
    """The template used when nobody names a file."""
    return f"{DEFAULT_FOLDER}/{{date}}-{{time}}-{{agent}}.ndjson"


def journal_path(out: Path, run_id: str) -> Path:
    """The journal of a live turn beside ``out``."""
    return out.with_name(f"{out.name}.{safe_name(run_id)}.part")


def fragment_path(out: Path, trace_id: int, pid: int) -> Path:
    """The journal of spans whose turn is rooted in another process."""
    return out.with_name(f"{out.name}.{trace_id:032x}.{pid}.part")


def requests_folder(out: Path, run_id: str) -> Path:
    """Where the requests of a run wait until it has ended."""
    return out.with_name(f"{out.name}.{safe_name(run_id)}{_REQUESTS}")


def requests_folders(out: Path) -> list[Path]:
    """The requests of runs that lie beside ``out``."""
    return sorted(_entries(out.parent, f"{out.name}.", _REQUESTS))


def parts_of(out: Path) -> list[Path]:
    """The journals and fragments beside ``out``, by name."""
    prefix = f"{out.name}."
    return sorted(_entries(out.parent, prefix, ".part"))


def _entries(folder: Path, prefix: str, suffix: str) -> Iterator[Path]:
    try:
        with os.scandir(folder) as found:
            names = [e.name for e in found if e.name.startswith(prefix) and e.name.endswith(suffix)]
    except FileNotFoundError:
        return
    for name in names:
        yield folder / name


def companions(folder: Path) -> list[str]:
    """The names of all journals and requests in ``folder``; those of a trace begin with its name and a dot."""
    return [path.name for suffix in (".part", _REQUESTS) for path in _entries(folder, "", suffix)]


def newest(folder: Path) -> Path | None:
    """The trace in ``folder`` that was written last, its journals counted; None when there is none.

    A file without a byte and without a journal holds nothing to read and is passed over.
    """
    traces = [out for out in _entries(folder, "", ".ndjson") if _size_bytes(out) or parts_of(out)]
    return max(traces, key=_touched_ns, default=None)


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _touched_ns(out: Path) -> int:
    times = [0]
    for path in (out, *parts_of(out)):
        try:
            times.append(path.stat().st_mtime_ns)
        except FileNotFoundError:  # a journal whose turn was closed meanwhile
            continue
    return max(times)
