"""The folders of one run: a workspace with a fresh copy of the fixture, a home and a place for temporary files."""

import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["RunFolder"]


class RunFolder:
    """``with RunFolder(fixture) as folder: folder.workspace``; nobody else can enter, and nothing is left of it.

    Mode bits of the fixture are kept; links in it are copied as links.
    """

    def __init__(self, fixture: Path | None) -> None:
        self.parent = Path(tempfile.mkdtemp(prefix="turntrace-bench-")).resolve()
        self.workspace = self.parent / "workspace"
        self.home = self.parent / "home"
        self.temporary = self.parent / "tmp"
        self.traces = self.parent / "traces"
        for folder in (self.home, self.temporary, self.traces):
            folder.mkdir(mode=0o700)
        if fixture is None:
            self.workspace.mkdir(mode=0o700)
        else:
            shutil.copytree(fixture, self.workspace, symlinks=True)
            self.workspace.chmod(0o700)

    @property
    def writable(self) -> tuple[Path, ...]:
        """What the agent may write to."""
        return (self.workspace, self.home, self.temporary, self.traces)

    def env(self) -> dict[str, str]:
        """The variables that point into it."""
        return {"HOME": str(self.home), "TMPDIR": str(self.temporary), "NO_COLOR": "1"}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        shutil.rmtree(self.parent, onerror=_open_up)


def _open_up(function: Any, path: str, error: Any) -> None:
    """An agent may have closed a folder to everybody, its owner included."""
    del error
    found = Path(path)
    for folder in (found.parent, found):
        with suppress(OSError):
            if not folder.is_symlink():
                folder.chmod(stat.S_IRWXU)
    if found.is_dir() and not found.is_symlink():
        shutil.rmtree(found, ignore_errors=True)
    else:
        with suppress(OSError):
            function(path)
