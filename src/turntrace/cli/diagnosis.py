"""What ``doctor`` finds out: nothing is set up, sent or left behind by it."""

import difflib
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions, entry_points
from pathlib import Path
from typing import Final

from turntrace.config import OWN_VARIABLES, Settings
from turntrace.core.contract import PHASES
from turntrace.errors import ConfigurationError
from turntrace.files.lock import FileLock
from turntrace.files.out import default_out, expand
from turntrace.otel.destination import Destination, destination
from turntrace.otel.instrumentors import Instrumentor, disabled_names, installed, loaded
from turntrace.otel.launch import HANDED_PREFIX
from turntrace.otel.probe import is_listening
from turntrace.otel.sources import Source, sources

__all__ = ["Diagnosis", "Folder", "Variable", "diagnose", "variables"]

_OTEL_PREFIX: Final = "OTEL_"
_OWN_PREFIX: Final = "TURNTRACE_"
_SECRETS: Final = ("HEADERS", "KEY", "CERTIFICATE")
_OWN_LIKENESS: Final = 0.6
_OTEL_LIKENESS: Final = 0.92
_DISABLED: Final = "nothing is recorded: TURNTRACE_DISABLED or OTEL_SDK_DISABLED is set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable that is set. ``suggestion`` is the nearest name that exists, of one that does not."""

    name: str
    value: str
    is_known: bool
    suggestion: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The folder of the trace, or the nearest one above it that is there already."""

    path: str
    is_writable: bool
    can_lock: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Everything there is to say. ``problems`` are what keeps turns from being recorded."""

    python: str
    executable: str
    platform: str
    packages: Mapping[str, str]
    decision: str
    endpoint: Destination | None
    is_listening: bool
    instrumentors: tuple[Instrumentor, ...]
    sources: tuple[Source, ...]
    variables: tuple[Variable, ...]
    folder: Folder
    abilities: Mapping[str, bool]
    planned_phases: tuple[str, ...]
    problems: tuple[str, ...]


def diagnose(env: Mapping[str, str]) -> Diagnosis:
    """Look at this Python and at ``env``; the endpoint is probed for at most a quarter of a second."""
    problems: list[str] = []
    settings, goal, decision = Settings(), None, ""
    try:
        settings = Settings.from_env(env)
        goal = destination(None, settings)
        decision = _decision(settings)
    except ConfigurationError as error:
        problems.append(str(error))
    folder = _folder(settings.trace)
    if not folder.is_writable:
        problems.append(f"no file can be written in {folder.path}")
    instrumentors = tuple(loaded(one) for one in installed(disabled_names(env), env))
    return Diagnosis(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        executable=sys.executable,
        platform=f"{platform.system()} {platform.machine()}",
        packages=_packages(),
        decision=decision,
        endpoint=goal,
        is_listening=goal is not None and is_listening(goal.endpoint),
        instrumentors=instrumentors,
        sources=sources(env, instrumentors),
        variables=tuple(variables(env, _otel_names())),
        folder=folder,
        abilities={
            "fork": hasattr(os, "fork") and hasattr(os, "register_at_fork"),
            "locks": folder.can_lock,
            "signals": hasattr(os, "posix_spawn"),
        },
        planned_phases=tuple(phase.name for phase in PHASES.values() if phase.planned),
        problems=tuple(problems),
    )


def _decision(settings: Settings) -> str:
    """What configure() would do in an application that has no provider: the line it would give itself."""
    from turntrace.otel.options import RecordingOptions
    from turntrace.otel.pipeline import build
    from turntrace.otel.processor import TurnSpanProcessor

    if settings.disabled or settings.sdk_disabled:
        return _DISABLED
    processor = TurnSpanProcessor(RecordingOptions())
    return build(None, settings, processor, metrics=False, content="drop").decision


def _packages() -> dict[str, str]:
    """Versions of turntrace and of OpenTelemetry; instrumentations are listed by themselves."""
    names = ((one.name.lower().replace("_", "-"), one.version) for one in distributions())
    return {
        name: version
        for name, version in sorted(names)
        if name == "turntrace"
        or (name.startswith("opentelemetry-") and not name.startswith("opentelemetry-instrumentation-"))
    }


def _otel_names() -> frozenset[str]:
    modules = (point.load() for point in entry_points(group="opentelemetry_environment_variables"))
    return frozenset(name for module in modules for name in vars(module) if name.startswith(_OTEL_PREFIX))


def variables(env: Mapping[str, str], otel_names: Iterable[str]) -> list[Variable]:
    """The variables of ours and of OpenTelemetry that are set, by name, without what may be secret.

    >>> [(one.name, one.suggestion) for one in variables({"TURNTRACE_TRCAE": "x.ndjson"}, ())]
    [('TURNTRACE_TRCAE', 'TURNTRACE_TRACE')]
    """
    known = {_OWN_PREFIX: list(OWN_VARIABLES), _OTEL_PREFIX: list(otel_names)}
    likeness = {_OWN_PREFIX: _OWN_LIKENESS, _OTEL_PREFIX: _OTEL_LIKENESS}
    found: list[Variable] = []
    for name in sorted(env):
        prefix = next((prefix for prefix in known if name.startswith(prefix)), None)
        if prefix is None or name.startswith(HANDED_PREFIX):
            continue
        is_known = name in known[prefix]
        near = None if is_known else _nearest(name, known[prefix], likeness[prefix], len(prefix))
        found.append(
            Variable(
                name=name,
                value="(not shown)" if any(word in name for word in _SECRETS) else env[name],
                is_known=is_known or (prefix == _OTEL_PREFIX and near is None),
                suggestion=near,
            )
        )
    return found


def _nearest(name: str, known: Iterable[str], likeness: float, cut: int) -> str | None:
    """The known name that is most like ``name``, their first ``cut`` letters being the same."""
    rests = [other[cut:] for other in known]
    found = difflib.get_close_matches(name[cut:], rests, 1, likeness)
    return name[:cut] + found[0] if found else None


def _folder(trace: str | None) -> Folder:
    folder = Path(expand(trace or default_out(), run_id="run", agent=None)).absolute().parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryDirectory(prefix=".turntrace-", dir=folder) as inside:
            lock = Path(inside, "lock")
            with FileLock(lock, 0.0) as mine:
                can_lock = mine.held
    except OSError:
        return Folder(path=str(folder), is_writable=False, can_lock=False)
    return Folder(path=str(folder), is_writable=True, can_lock=can_lock)
