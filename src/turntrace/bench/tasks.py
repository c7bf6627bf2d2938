"""What a suite is once it has been read: tasks, their oracles, and the verdict on one answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from turntrace.errors import TurntraceError

__all__ = [
    "DEFAULT_TIMEOUT_S",
    "CommandOracle",
    "CompletedChild",
    "Expect",
    "Fault",
    "Oracle",
    "Origin",
    "ParallelProbe",
    "ProgramOracle",
    "RunChild",
    "Suite",
    "SuiteError",
    "Task",
    "Tier",
    "Verdict",
    "VerdictStatus",
]

DEFAULT_TIMEOUT_S: Final = 600.0


class Tier(StrEnum):
    """How much a verdict on a task says. Tiers are never averaged."""

    CORRECTNESS = "correctness"
    BUILD = "build"
    LATENCY = "latency"


class Origin(StrEnum):
    """Where a suite comes from. What the package ships is trusted while its hash is the published one."""

    SHIPPED = "shipped"
    FOLDER = "folder"
    ZERO = "zero"


class Expect(StrEnum):
    """What a suite that tests agents of its own expects of a task."""

    PASS = "pass"  # noqa: S105 - the word of the manifest, no secret
    FAIL = "fail"


class VerdictStatus(StrEnum):
    """What an oracle found. ``error`` is the oracle's own failure and is never the agent's."""

    PASS = "pass"  # noqa: S105 - the word of the result, no secret
    FAIL = "fail"
    ERROR = "error"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelProbe:
    """A barrier that ``handlers`` tools must reach within ``timeout_s`` before any of them ends."""

    handlers: int = 2
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOracle:
    """Reference code that is run apart from the agent's files; ``source`` is the text of oracle.py."""

    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOracle:
    """A command run in the workspace; status 0 passes if every line of ``output_has`` was printed.

    ``files`` are written into the workspace after the agent has ended, as (relative path, content).
    ``answer_file`` gets the agent's last words.
    """

    argv: tuple[str, ...]
    files: tuple[tuple[str, bytes], ...] = ()
    answer_file: str | None = None
    output_has: tuple[str, ...] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S


Oracle = ProgramOracle | CommandOracle


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One thing an agent is asked to do.

    ``fixture`` is the absolute folder that a run gets a copy of, None where a manifest names none.
    ``allowed`` are shell patterns of relative paths that the agent may change; empty means everything
    but existing tests and hook files. ``folder`` holds what proves the task, None in zero's manifests.
    ``equivalent`` names mutants of the solution that do the same. ``set_up`` are commands run once per fixture, outside every measured time.
    """

    id: str
    task_class: str
    tier: Tier
    prompt: str
    fixture: Path | None
    allowed: tuple[str, ...] = ()
    strict: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    parallel_probe: ParallelProbe | None = None
    oracle: Oracle | None = None
    expect: Expect | None = None
    set_up: tuple[tuple[str, ...], ...] = ()
    folder: Path | None = None
    equivalent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tasks in the order of the manifest. ``sha256`` covers every file that decides a verdict or a prompt."""

    id: str
    tasks: tuple[Task, ...]
    sha256: str
    origin: Origin
    path: Path
    name: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing wrong with a suite: file, line (1-based, None where no line is at fault), field path."""

    file: str
    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        """As compilers write it."""
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.field}: {self.message}" if self.field else f"{where}: {self.message}"


class SuiteError(TurntraceError):
    """A suite cannot be used. ``faults`` are all that was found, in the order of the files."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        count = len(self.faults)
        more = f" ({count - 1} more faults; turntrace bench validate lists them)" if count > 1 else ""
        super().__init__(f"{self.faults[0]}{more}" if self.faults else "the suite cannot be used")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedChild:
    """A child that has ended. ``status`` is negative for a signal; outputs are cut at the caller's bound."""

    status: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False


class RunChild(Protocol):
    """Runs a command where it can do no harm, and waits until it and its children are dead.

    The child gets an environment of the harness's choosing, never the agent's; output is bounded.
    ``cwd`` is the only writable folder, None for an empty one.
    """

    def __call__(
        self, argv: Sequence[str], *, cwd: Path | None, stdin: bytes, timeout_s: float
    ) -> CompletedChild:
        """What became of the command."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the oracle says of one workspace and answer. ``reason`` is one line; ``details`` count calls."""

    status: VerdictStatus
    reason: str = ""
    details: Mapping[str, int]
