"""What an agent changed, and the part of it that is put on a fresh copy to be judged."""

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

__all__ = ["Changes", "changes", "put_changes"]

_IGNORED: Final = frozenset(
    {
        ".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".cache", ".venv", "node_modules",
        ".claude", ".codex", ".gemini", ".opencode", ".zero", ".turntrace", ".DS_Store",
    }
)  # fmt: skip
"""State of agents and caches: neither applied nor judged."""

_HOOKS: Final = (
    "conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    "pytest.ini",
    "tox.ini",
    "setup.cfg",
)
_TESTS: Final = ("test_*.py", "*_test.py", "*_test.go", "*.test.[jt]s", "*.spec.[jt]s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Relative paths. ``outside`` were changed though they may not be, and are not applied."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    outside: tuple[str, ...]


def changes(fixture: Path | None, workspace: Path, allowed: Sequence[str]) -> Changes:
    """Compare what the agent left with what it was given; no link is followed.

    ``allowed`` are shell patterns; without them everything but existing tests and hook files is.
    """
    before = {} if fixture is None else dict(_entries(fixture))
    after = dict(_entries(workspace))
    written = [path for path, found in after.items() if path not in before or not _same(before[path], found)]
    removed = [path for path in before if path not in after]
    fine = {path for path in (*written, *removed) if _is_allowed(path, allowed, is_old=path in before)}
    return Changes(
        written=tuple(sorted(fine.intersection(written))),
        removed=tuple(sorted(fine.intersection(removed))),
        outside=tuple(sorted({*written, *removed} - fine)),
    )


def put_changes(found: Changes, workspace: Path, fresh: Path) -> None:
    """Make the allowed changes in ``fresh``, a copy of the fixture. Links are copied as links."""
    for path in found.removed:
        (fresh / path).unlink()
    for path in found.written:
        target = fresh / path
        if target.is_symlink() or target.is_file():
            target.unlink()
        elif target.is_dir() and not _emptied(target):
            continue  # what may not be removed stands where a file is to be
        _parents(fresh, target)
        shutil.copy2(workspace / path, target, follow_symlinks=False)


def _emptied(folder: Path) -> bool:
    """Take a folder away in which nothing but folders is left; whether that was so."""
    for at, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # something is left in it
            Path(at).rmdir()
    return not folder.exists()


def _parents(fresh: Path, target: Path) -> None:
    """Folders on the way; a file or link that stood in the place of one makes way."""
    for folder in reversed(target.relative_to(fresh).parents):
        at = fresh / folder
        if at.is_symlink() or at.is_file():
            at.unlink()
        at.mkdir(exist_ok=True)


def _entries(root: Path) -> Iterator[tuple[str, Path]]:
    """Regular files and links below ``root``; pipes, sockets and devices are nobody's work."""
    for folder, names, files in os.walk(root):
        at = Path(folder)
        linked = [name for name in names if (at / name).is_symlink()]
        names[:] = [name for name in names if name not in _IGNORED and name not in linked]
        for name in (*files, *linked):
            path = at / name
            mode = path.lstat().st_mode
            if name not in _IGNORED and (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
                yield path.relative_to(root).as_posix(), path


def _same(before: Path, after: Path) -> bool:
    old, new = before.lstat(), after.lstat()
    if stat.S_IFMT(old.st_mode) != stat.S_IFMT(new.st_mode):
        return False
    if stat.S_ISLNK(old.st_mode):
        return before.readlink() == after.readlink()
    same_bits = old.st_mode & stat.S_IXUSR == new.st_mode & stat.S_IXUSR
    return same_bits and old.st_size == new.st_size and _same_bytes(before, after)


def _same_bytes(before: Path, after: Path) -> bool:
    try:
        return before.read_bytes() == after.read_bytes()
    except PermissionError:  # locked by the agent: changed, if only its bits
        return False


def _is_allowed(path: str, allowed: Sequence[str], *, is_old: bool) -> bool:
    if allowed:
        return any(fnmatch(path, pattern) for pattern in allowed)
    name = path.rsplit("/", 1)[-1]
    is_hook = any(fnmatch(name, pattern) for pattern in _HOOKS)
    return not is_hook and not (is_old and any(fnmatch(name, pattern) for pattern in _TESTS))
