"""What ``turntrace run`` hands to the command it starts: one environment, and what became of it.

Two things start recording in a Python: a folder first on PYTHONPATH, whose ``sitecustomize`` runs
before any other code, and variables named ``TURNTRACE_RUN_*``. The sitecustomize takes both away
again, so that what the agent starts in turn is not instrumented. TURNTRACE_TRACE, TURNTRACE_LABELS and
TRACEPARENT stay: they start nothing by themselves.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

__all__ = [
    "AGENT",
    "CHILDREN",
    "CONTENT",
    "ENDPOINT",
    "HANDED_PREFIX",
    "INSIDE",
    "LAUNCHERS",
    "NOTES",
    "PARENT",
    "THROUGH",
    "Note",
    "Plan",
    "child_environment",
    "is_launcher",
    "new_traceparent",
    "read_notes",
    "target_name",
]

HANDED_PREFIX: Final = "TURNTRACE_RUN_"
"""Variables of this prefix live from ``run`` until the agent's Python has read them, not longer."""

AGENT: Final = "TURNTRACE_RUN_AGENT"
CHILDREN: Final = "TURNTRACE_RUN_CHILDREN"
CONTENT: Final = "TURNTRACE_RUN_CONTENT"
ENDPOINT: Final = "TURNTRACE_RUN_ENDPOINT"
INSIDE: Final = "TURNTRACE_RUN_INSIDE"
"""Set by a recorded Python for those it starts: the turn is not theirs."""
PARENT: Final = "TURNTRACE_RUN_PARENT"
NOTES: Final = "TURNTRACE_RUN_NOTES"
THROUGH: Final = "TURNTRACE_RUN_THROUGH"

LAUNCHERS: Final = frozenset(
    {
        "conda", "doppler", "dotenv", "env", "hatch", "mamba", "micromamba", "nice", "nohup", "pdm",
        "pipenv", "pipx", "pixi", "poetry", "pyenv", "rye", "stdbuf", "time", "timeout", "uv", "uvx",
    }
)  # fmt: skip
"""Commands that only start another one: the Python they end in is the agent, not they themselves."""

_WITH_VALUE: Final = frozenset({"-W", "-X"})
_FOLDER: Final = Path(__file__).with_name("autostart")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a command is started.

    ``trace`` is an absolute path; with ``appends`` the file is that of an agent around the run. ``notes``
    is a file in which each Python that was started says what became of it. ``parent_pid`` is the process
    whose direct child is the agent; None where another command may start it, so that a Python which is
    not the agent hands the environment on. ``children``: it is kept whole for what the agent starts.
    """

    trace: str
    traceparent: str
    appends: bool = False
    tracestate: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    instrument: bool = True
    agent: str | None = None
    endpoint: str | None = None
    content: Literal["drop", "keep"] = "drop"
    notes: str | None = None
    parent_pid: int | None = None
    children: bool = False

    @property
    def trace_id(self) -> str:
        """The trace that the command is given."""
        return self.traceparent.split("-", 2)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What became of recording in one Python: ``outcome`` is started, lacking, failed or said."""

    outcome: str
    python: str
    message: str = ""


def child_environment(env: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """``env`` with what ``plan`` adds, and without what another ``run`` around this one added.

    >>> plan = Plan(trace="/t/out.ndjson", traceparent="00-0a-0b-01", instrument=False)
    >>> child_environment({"LANG": "C"}, plan)
    {'LANG': 'C', 'TURNTRACE_TRACE': '/t/out.ndjson', 'TRACEPARENT': '00-0a-0b-01'}
    """
    child = {name: text for name, text in env.items() if not name.startswith(HANDED_PREFIX)}
    child |= {"TURNTRACE_TRACE": plan.trace, "TRACEPARENT": plan.traceparent}
    if plan.tracestate is None:
        child.pop("TRACESTATE", None)  # it belongs to a parent that is not this one
    if plan.labels:
        texts = [env.get("TURNTRACE_LABELS", ""), *(f"{key}={value}" for key, value in plan.labels.items())]
        child["TURNTRACE_LABELS"] = ",".join(text for text in texts if text)
    given = env.get("PYTHONPATH", "")
    path = [entry for entry in given.split(os.pathsep) if entry != str(_FOLDER)] if given else []
    if plan.instrument:
        child |= _handed(plan)
        path.insert(0, str(_FOLDER))
    if path or given:
        child["PYTHONPATH"] = os.pathsep.join(path)
    return child


def _handed(plan: Plan) -> dict[str, str]:
    texts = {
        AGENT: plan.agent,
        CHILDREN: "1" if plan.children else None,
        CONTENT: plan.content,
        ENDPOINT: plan.endpoint,
        NOTES: plan.notes,
        PARENT: None if plan.parent_pid is None or plan.children else str(plan.parent_pid),
        THROUGH: "1" if plan.parent_pid is None else None,
    }
    return {name: text for name, text in texts.items() if text}


def target_name(arguments: Sequence[str]) -> str | None:
    """What a Python's command line runs: the name of the script or of the module; None for code and input.

    >>> target_name(["python3", "-X", "dev", "/a/agent.py", "-m"]), target_name(["python3", "-um", "pkg.bot"])
    ('agent', 'bot')
    """
    words = iter(arguments[1:])
    for word in words:
        if not word.startswith("-"):
            return Path(word).name.removesuffix(".py")
        if word in _WITH_VALUE:
            next(words, None)
        elif word.endswith("m") and not word.startswith("--"):
            return next(words, "").rpartition(".")[2]
        elif word == "-c":
            return None
    return None


def is_launcher(arguments: Sequence[str]) -> bool:
    """Whether a Python's command line runs a launcher.

    >>> is_launcher(["python3", "/usr/bin/poetry", "run"]), is_launcher(["python3", "agent.py", "uv"])
    (True, False)
    """
    return target_name(arguments) in LAUNCHERS


def new_traceparent() -> str:
    """A TRACEPARENT of a trace that nobody else is in, sampled."""
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"


def read_notes(path: Path) -> tuple[Note, ...]:
    """What the Pythons wrote into the file ``path``; empty when none wrote."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    fields = (line.split("\t", 2) for line in text.splitlines())
    return tuple(
        Note(outcome=outcome, python=python, message=message)
        for outcome, python, message in (parts for parts in fields if len(parts) == 3)  # noqa: PLR2004  # as written
    )
