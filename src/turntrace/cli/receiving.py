"""The private receiver of a run: which command gets one, and how the command is started with it."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from turntrace.cli.launch import Command
from turntrace.cli.output import UsageError
from turntrace.cli.supervision import Unsignalled
from turntrace.collect.preparation import configuration_path, matching
from turntrace.collect.presets import PRESETS, Preset
from turntrace.collect.reception import Reception
from turntrace.errors import TurntraceError
from turntrace.otel.launch import Plan

__all__ = ["Receiving", "folder_of", "preset_of"]

_MAX_CONFIGURATION_BYTES: Final = 1 << 20


def preset_of(name: str | None, command: Command, *, is_instrumented: bool) -> Preset | None:
    """What switches on the command's own telemetry; None for a Python that is recorded from inside.

    Raises:
        UsageError: for a preset that there is not.
    """
    if name is not None:
        if name not in PRESETS:
            message = f"--preset {name}: there are {', '.join(sorted(PRESETS))}"
            raise UsageError(message)
        return PRESETS[name]
    return matching(command.arguments) or (None if is_instrumented else PRESETS["otel"])


def folder_of(trace: str) -> Path:
    """Where requests wait until the command has ended."""
    return Path(f"{trace}.otlp")


class Receiving:
    """``with Receiving(preset, arguments, env, plan) as receiving``: start ``argv`` in ``environment``.

    Without a preset, or when nothing can be received, these are what was given.
    """

    __slots__ = ("_folder", "_preset", "_reception", "_remarks", "_stack", "argv", "environment")

    def __init__(
        self, preset: Preset | None, arguments: Sequence[str], environment: Mapping[str, str], plan: Plan
    ) -> None:
        self._preset = preset
        self._folder = folder_of(plan.trace)
        self._stack = ExitStack()
        self._reception: Reception | None = None
        self._remarks: list[str] = []
        self.argv = list(arguments)
        self.environment = environment

    def __enter__(self) -> Self:
        if self._preset is None:
            return self
        try:
            with Unsignalled():  # signals are the main thread's, which passes them on
                self._reception = self._stack.enter_context(self._reception_of(self._preset))
        except (TurntraceError, OSError) as error:
            self._remarks.append(f"what the command sends is not received: {error}")
        else:
            self.argv = list(self._reception.prepared.argv)
            self.environment = self._reception.prepared.environment
            self._remarks += self._reception.prepared.notes
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _reception_of(self, preset: Preset) -> Reception:
        path = configuration_path(preset, self.environment)
        return Reception(
            preset,
            self.argv,
            self.environment,
            self._folder,
            configuration="" if path is None else _text(Path(path)),
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be said before the command starts."""
        return tuple(self._remarks)

    def settle(self, timeout_s: float) -> tuple[str, ...]:
        """Wait for what is still being sent; what a person must know of it."""
        if self._reception is None:
            return ()
        self._reception.settle(timeout_s)
        return self._reception.remarks

    def forget(self) -> None:
        """Delete the requests: what they told stands in the trace."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _text(path: Path) -> str:
    """The start of a file; nothing of one that cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_CONFIGURATION_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
