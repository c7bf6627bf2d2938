"""Prepares the file of a trace before anything is recorded: its folder, its name, what an earlier run left."""

import errno
import os
import shutil
import stat
from pathlib import Path
from typing import Final

from turntrace.errors import TraceWriteError
from turntrace.files.fragments import is_dead, parts_in
from turntrace.files.lock import is_locked
from turntrace.files.out import DEFAULT_FOLDER, FILE_MODE, parts_of, requests_folders

__all__ = ["make_folder", "prepare"]

_LONGEST_SUFFIX_BYTES: Final = 48
"""What stands behind the name in those of the files beside it: a trace id and a pid at most."""


def prepare(path: Path, *, truncate: bool) -> None:
    """Create the folder and open ``path`` once, so that a mistake is known before the agent starts.

    With ``truncate`` the file is emptied, and what earlier runs left beside it is deleted: journals and
    requests. What a run that still lives keeps there stays, that run writes its turns behind those of the new one.

    Raises:
        TraceWriteError: when the path is no regular file or cannot be written, or leaves no room for longer names beside it.
    """
    try:
        make_folder(path.parent)
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            raise TraceWriteError(str(path), "not a regular file")
        _check_length(path)
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if truncate else 0)
        os.close(os.open(path, flags, FILE_MODE))
    except OSError as error:
        raise TraceWriteError(str(path), error.strerror or str(error)) from error
    if truncate:
        _clear(path)


def make_folder(folder: Path) -> None:
    """Create the folder of a file; the default one keeps itself out of version control."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if folder.name == DEFAULT_FOLDER and not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def _check_length(path: Path) -> None:
    """Raises OSError where a journal could not be named: it would be missed when the agent has ended."""
    longest_bytes = os.pathconf(path.parent, "PC_NAME_MAX") if hasattr(os, "pathconf") else 255
    if 0 < longest_bytes < len(os.fsencode(path.name)) + _LONGEST_SUFFIX_BYTES:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))


def _clear(out: Path) -> None:
    """Delete what belongs to no living run."""
    found = [(path, parts_in(path)) for path in parts_of(out)]
    kept = {path for path, parts in found if is_locked(path) or any(not is_dead(part) for part in parts)}
    living = {
        part.journal.turn.trace_id
        for path, parts in found
        if path in kept
        for part in parts
        if not part.journal.fragment
    }
    for path, parts in found:
        if path not in kept and living.isdisjoint(part.journal.turn.trace_id for part in parts):
            path.unlink(missing_ok=True)
    for folder in requests_folders(out):
        if folder.with_suffix(".part") not in kept:
            shutil.rmtree(folder, ignore_errors=True)
