"""Reading and writing in a folder that an agent left behind: no link is followed, nothing blocks."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["MAX_FILES", "MAX_FILE_BYTES", "put", "texts"]

MAX_FILES: Final = 2_000
MAX_FILE_BYTES: Final = 1024 * 1024
MAX_TOTAL_BYTES: Final = 16 * 1024 * 1024
_SKIPPED: Final = {".git", "__pycache__", ".pytest_cache"}


def texts(root: Path) -> dict[str, str]:
    """The regular text files below ``root`` by relative path; links, devices, binaries and excess are left out."""
    found: dict[str, str] = {}
    left = MAX_TOTAL_BYTES
    for path in _regular(root):
        content = _content(path)
        if content is None or len(content) > left or len(found) >= MAX_FILES:
            continue
        with contextlib.suppress(UnicodeDecodeError):
            found[path.relative_to(root).as_posix()] = content.decode()
            left -= len(content)
    return found


def _regular(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        yield from (Path(folder) / name for name in sorted(files))


def _content(path: Path) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(handle, "rb") as file:  # noqa: PTH123 - a descriptor has no path
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
            return None
        return file.read(MAX_FILE_BYTES)


def put(root: Path, relative: str, content: bytes) -> None:
    """Write a file below ``root``; what stands in its place, links on the way included, is removed first.

    Raises:
        OSError: when the folder cannot be written.
    """
    *folders, name = relative.split("/")
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            at = _entered(at, folder)
        _cleared(at, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, 0o644, dir_fd=at), "wb") as file:  # noqa: PTH123 - as above
            file.write(content)
    finally:
        os.close(at)


def _entered(at: int, name: str) -> int:
    """The folder ``name`` in the folder ``at``, which is closed; made anew where something else stands there."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError:
        _cleared(at, name)
        os.mkdir(name, 0o755, dir_fd=at)
        return os.open(name, flags, dir_fd=at)
    finally:
        os.close(at)


def _cleared(at: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=at)
        else:
            os.unlink(name, dir_fd=at)
