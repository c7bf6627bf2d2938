"""A repository's commits as raw material for tasks: which files a commit changes, and the trees around it."""

import io
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turntrace.bench.workspace import put
from turntrace.errors import ConfigurationError

__all__ = ["Change", "History", "is_test"]

_TEST: Final = re.compile(
    r"(^|/)(tests?|testing|spec)/|(^|/)test_[^/]*\.py$|_test\.(py|go)$|(^|/)conftest\.py$|\.(test|spec)\.[jt]sx?$"
)
_TIMEOUT_S: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A commit: full hash, its only parent or "", message, files by what became of them (A, M, D, T)."""

    revision: str
    parent: str
    message: str
    files: tuple[tuple[str, str], ...]

    @property
    def tests(self) -> tuple[str, ...]:
        """Test files that are there after the commit."""
        return tuple(path for kind, path in self.files if kind != "D" and is_test(path))

    @property
    def others(self) -> tuple[str, ...]:
        """Files that are no tests."""
        return tuple(path for _, path in self.files if not is_test(path))


def is_test(path: str) -> bool:
    """Whether a path looks like a test's.

    >>> is_test("pkg/tests/data.json"), is_test("pkg/latest.py"), is_test("a/test_b.py")
    (True, False, True)
    """
    return _TEST.search(path) is not None


class History:
    """A local repository. git is asked so that nothing configured in it is run."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository

    def newest(self, count: int) -> list[str]:
        """The newest ``count`` commits of HEAD that are no merges, newest first."""
        return self._git("rev-list", "--no-merges", f"--max-count={count}", "HEAD").decode().split()

    def change(self, revision: str) -> Change:
        """What the commit ``revision`` did.

        Raises:
            ConfigurationError: when there is no such commit.
        """
        wanted = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
        found = self._git(*wanted, or_say=f"{self._repository} has no commit {revision}").decode().strip()
        parents = self._git("rev-list", "--parents", "--max-count=1", found).decode().split()[1:]
        listed = self._git(
            "diff-tree", "--root", "--no-commit-id", "--name-status", "--no-renames", "-r", "-z", found
        )
        parts = listed.decode("utf-8", "surrogateescape").split("\0")[:-1]
        return Change(
            revision=found,
            parent=parents[0] if len(parents) == 1 else "",
            message=self._git("log", "-1", "--format=%B", found).decode("utf-8", "replace").strip(),
            files=tuple(zip(parts[::2], parts[1::2], strict=True)),
        )

    def extract(self, revision: str, folder: Path) -> None:
        """Write the tree of ``revision`` into ``folder``, byte for byte: no filter, no attribute is applied.

        Modules of other repositories stay empty.
        """
        folder.mkdir(parents=True, exist_ok=True)
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", revision).decode("utf-8", "surrogateescape")
        entries = [entry.partition("\t") for entry in listed.split("\0")[:-1]]
        blobs = [(*head.split(), path) for head, _, path in entries if head.split()[1] == "blob"]
        contents = self._blobs([blob[2] for blob in blobs])
        for mode, _, _, path in blobs:
            _plant(folder, path, mode, next(contents))

    def _blobs(self, hashes: Sequence[str]) -> Iterator[bytes]:
        given = "".join(f"{one}\n" for one in hashes).encode()
        found = io.BytesIO(self._git("cat-file", "--batch", given=given))
        for _ in hashes:
            yield found.read(int(found.readline().split()[2]))
            found.read(1)

    def content(self, revision: str, path: str) -> bytes:
        """A file as it is in ``revision``."""
        return self._git("cat-file", "blob", f"{revision}:{path}")

    def patch(self, change: Change) -> bytes:
        """What the commit did to files that are no tests, for ``git apply``."""
        options = ("--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--full-index")
        return self._git("diff", *options, change.parent, change.revision, "--", *change.others)

    def _git(self, *words: str, or_say: str = "", given: bytes = b"") -> bytes:
        argv = [
            "git",
            "-C",
            str(self._repository),
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=false",
        ]
        try:
            done = subprocess.run(  # noqa: S603 - git with words of ours and hashes that git gave
                [*argv, "--literal-pathspecs", *words],
                input=given,
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except FileNotFoundError as error:
            raise ConfigurationError("making tasks of commits needs git, which is not on the PATH") from error
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise ConfigurationError(or_say or f"git {words[0]}: {said[0] if said else done.returncode}")
        return done.stdout


def _plant(folder: Path, path: str, mode: str, content: bytes) -> None:
    if mode == "120000":
        at = folder / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(os.fsdecode(content))
        return
    put(folder, path, content)
    if mode == "100755":
        (folder / path).chmod(0o755)
