"""Folders of a suite: what may stand in them, and one hash over all that does."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final

__all__ = ["CACHES", "files_of", "inside", "tree_faults", "tree_sha256"]

CACHES: Final = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".DS_Store"}


def inside(root: Path, relative: str) -> Path | str:
    """The folder ``relative`` below ``root``, or what is wrong with the path."""
    found = root / relative
    if PurePosixPath(relative).is_absolute() or PureWindowsPath(relative).anchor:
        return "is absolute; it has to be relative to the suite"
    if not Path(os.path.realpath(found)).is_relative_to(os.path.realpath(root)):
        return "leads out of the suite"
    return found if found.is_dir() else f"is no folder: {found}"


def files_of(root: Path) -> Iterator[Path]:
    """Everything below ``root`` but folders and caches, in one order everywhere; links are not followed."""
    for folder, names, files in os.walk(root):
        at = Path(folder)
        linked = [name for name in names if (at / name).is_symlink()]
        names[:] = sorted(name for name in names if name not in CACHES and name not in linked)
        yield from (at / name for name in sorted([*files, *linked]) if name not in CACHES)


def tree_faults(root: Path) -> Iterator[tuple[Path, str]]:
    """What a copy of ``root`` would lose or drag in: links that lead out, pipes, sockets, devices."""
    real = os.path.realpath(root)
    for path in files_of(root):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            if not Path(os.path.realpath(path)).is_relative_to(real):
                yield path, "is a symbolic link that leads out of the fixture"
            elif path.readlink().is_absolute():
                yield path, "is a symbolic link with an absolute target, which a copy would follow back"
        elif not stat.S_ISREG(mode):
            yield path, "is neither a file nor a folder"


def tree_sha256(root: Path) -> str:
    """A hash over names, execute bits, links and bytes of everything below ``root``; hexadecimal."""
    total = hashlib.sha256()
    for path in files_of(root):
        found = path.lstat()
        name = path.relative_to(root).as_posix().encode("utf-8", "surrogateescape")
        if stat.S_ISLNK(found.st_mode):
            kind, content = b"link", os.fsencode(path.readlink())
        elif stat.S_ISREG(found.st_mode):
            kind = b"run" if found.st_mode & stat.S_IXUSR else b"file"
            content = path.read_bytes()
        else:
            kind, content = b"other", b""
        for part in (name, kind, content):
            total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()
