"""The judge's children in a confinement: an oracle, the agent's code, a patch, each in one of its own."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from turntrace.bench.isolation import Command, Confinement, allowed_env
from turntrace.bench.isolation_sandbox import interpreter_prefixes
from turntrace.bench.tasks import CompletedChild

__all__ = ["ConfinedChild"]

_NOT_STARTED: Final = 127


class ConfinedChild:
    """Runs commands for the judge. ``env`` is the harness's own, of which little is passed on."""

    def __init__(self, confinement: Confinement, env: Mapping[str, str], hidden: tuple[Path, ...]) -> None:
        self._confinement = confinement
        self._env = env
        self._hidden = hidden

    def __call__(
        self, argv: Sequence[str], *, cwd: Path | None, stdin: bytes, timeout_s: float
    ) -> CompletedChild:
        """Run ``argv`` in ``cwd``, in an empty folder for None; status 127 where it could not start."""
        with tempfile.TemporaryDirectory(prefix="turntrace-judge-") as empty:
            home = Path(empty).resolve()
            at = home if cwd is None else cwd.resolve()
            command = Command(
                argv=tuple(argv),
                cwd=at,
                env={**allowed_env(self._env), "HOME": str(home), "TMPDIR": str(home), "NO_COLOR": "1"},
                timeout_s=timeout_s,
                stdin=stdin,
                writable=(home, at),
                readable=interpreter_prefixes(),
                hidden=self._hidden,
            )
            ended = self._confinement.run(command)
        return CompletedChild(
            status=_NOT_STARTED if ended.status is None else ended.status,
            stdout=ended.stdout.data,
            stderr=ended.stderr.data or ended.error.encode(),
            timed_out=ended.timed_out,
        )
