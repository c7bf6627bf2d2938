"""The folder that ``turntrace run`` puts on PYTHONPATH, and what its sitecustomize calls where it can."""

import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from opentelemetry.instrumentation.auto_instrumentation import initialize

from turntrace.config import environment, set_environment
from turntrace.otel.launch import AGENT, CHILDREN, INSIDE, NOTES, is_launcher
from turntrace.otel.sources import start_adapters

__all__ = ["start"]

_NAMED: Final = {"OTEL_PYTHON_DISTRO": "turntrace", "OTEL_PYTHON_CONFIGURATOR": "turntrace"}
_LOADER: Final = "opentelemetry.instrumentation.auto_instrumentation"


def start(handed: Mapping[str, str], forget: Callable[[], None]) -> None:
    """Record this process with what ``run`` handed over, and tell ``run`` how that went; never raises.

    ``forget`` takes what starts recording out of the environment. A launcher keeps it for the Python
    that it starts.
    """
    if is_launcher(sys.orig_argv):
        return
    if CHILDREN not in handed:
        forget()
    with _Notes(handed.get(NOTES)) as notes, _Variables(_for_start(handed)):
        try:
            initialize(swallow_exceptions=False)
            start_adapters()
        except Exception as error:  # noqa: BLE001 - the agent runs, recorded or not
            notes.write("failed", f"{type(error).__name__}: {error}")
        else:
            notes.write("started")
    if CHILDREN in handed:
        set_environment(INSIDE, "1")


def _for_start(handed: Mapping[str, str]) -> dict[str, str]:
    """The variables that OpenTelemetry's loader and our configurator read, as long as they start."""
    named = {**_NAMED, **handed}
    env = environment()
    has_name = env.get("OTEL_SERVICE_NAME") or "service.name=" in env.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if AGENT in handed and not has_name:
        named["OTEL_SERVICE_NAME"] = handed[AGENT]
    return named


class _Variables:
    """Variables that are set inside the block and as before after it."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> None:
        self._before = {name: environment().get(name) for name in self._values}
        for name, value in self._values.items():
            set_environment(name, value)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, value in self._before.items():
            set_environment(name, value)


class _Notes(logging.Handler):
    """What is to be said of the start goes to ``run``; the agent's standard error stays the agent's."""

    def __init__(self, path: str | None) -> None:
        super().__init__(logging.WARNING)
        self._path = None if path is None else Path(path)

    def write(self, outcome: str, message: str = "") -> None:
        """Append a line."""
        if self._path is None:
            return
        line = f"{outcome}\t{sys.executable}\t{' '.join(message.split())}\n"
        try:
            with self._path.open("a", encoding="utf-8") as notes:
                notes.write(line)
        except OSError:
            pass

    def emit(self, record: logging.LogRecord) -> None:
        """Write down what OpenTelemetry's loader says."""
        self.write("said", record.getMessage())

    def __enter__(self) -> Self:
        logger = logging.getLogger(_LOADER)
        logger.addHandler(self)
        logger.propagate = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logger = logging.getLogger(_LOADER)
        logger.removeHandler(self)
        logger.propagate = True
