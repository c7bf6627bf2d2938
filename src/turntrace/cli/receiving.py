"""The private receiver of a run: which command gets one, and how the command is started with it."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from turntrace.cli.launch import Command
from turntrace.cli.output import UsageError
from turntrace.cli.supervision import Unsignalled
from turntrace.collect.preparation import configuration_path, matching
from turntrace.collect.presets import PRESETS, Preset
from turntrace.collect.reception import Reception
from turntrace.core.codec.journal import header_line, read_journal
from turntrace.core.model import Turn
from turntrace.errors import TraceReadError, TurntraceError
from turntrace.files.append import Rotation
from turntrace.files.journal import JournalFile
from turntrace.files.out import journal_path, requests_folder
from turntrace.files.process import started_ticks
from turntrace.files.run_record import record_run
from turntrace.otel.launch import Plan
from turntrace.otel.run_ids import new_run_id

__all__ = ["Receiving", "preset_of", "run_of"]

_MAX_CONFIGURATION_BYTES: Final = 1 << 20
_NS_PER_S: Final = 1_000_000_000

Lived = tuple[int, int]
"""When a command was started and when it had ended, in ns since the epoch."""


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


def run_of(plan: Plan) -> Turn:
    """The run as its journal tells of it: who it is, and the parent that its processes are given."""
    _, trace_id, span_id, _ = plan.traceparent.split("-", 3)
    return Turn(
        run_id=new_run_id(),
        trace_id=trace_id,
        span_id=span_id,
        agent=plan.agent,
        labels=plan.labels,
        turn_source="run",
        started_ns=time.time_ns(),
    )


class Receiving:
    """``with Receiving(preset, arguments, env, plan) as receiving``: start ``argv`` in ``environment``.

    Without a preset, or when nothing can be received, these are what was given. The run has a journal while
    it receives: Pythons that it starts find their turn in it, and what came survives a kill.
    """

    __slots__ = (
        "_journal",
        "_out",
        "_preset",
        "_reception",
        "_remarks",
        "_run",
        "_stack",
        "argv",
        "environment",
        "turns",
    )

    def __init__(
        self, preset: Preset | None, arguments: Sequence[str], environment: Mapping[str, str], plan: Plan
    ) -> None:
        self._preset = preset
        self._out = Path(plan.trace)
        self._run = run_of(plan)
        self._journal = JournalFile(journal_path(self._out, self._run.run_id))
        self._stack = ExitStack()
        self._reception: Reception | None = None
        self._remarks: list[str] = []
        self.argv = list(arguments)
        self.environment = environment
        self.turns: Sequence[Turn] = ()

    def __enter__(self) -> Self:
        if self._preset is None:
            return self
        try:
            pid = os.getpid()  # the journal first: requests without one belong to nobody
            self._journal.write(header_line(self._run, pid=pid, pid_started=started_ticks(pid)))
            with Unsignalled():  # signals are the main thread's, which passes them on
                self._reception = self._stack.enter_context(self._reception_of(self._preset))
        except (TurntraceError, OSError) as error:
            self._remarks.append(f"what the command sends is not received: {error}")
            self._journal.delete()
        else:
            self.argv = list(self._reception.prepared.argv)
            self.environment = self._reception.prepared.environment
            self._remarks += self._reception.prepared.notes
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        self._journal.close()

    def _reception_of(self, preset: Preset) -> Reception:
        path = configuration_path(preset, self.environment)
        return Reception(
            preset,
            self.argv,
            self.environment,
            requests_folder(self._out, self._run.run_id),
            configuration="" if path is None else _text(Path(path)),
        )

    @property
    def is_passed_on(self) -> bool:
        """Whether the endpoint of the environment gets the command's spans already, as the command sent them."""
        forward = None if self._reception is None else self._reception.prepared.forward
        return forward is not None and "traces" in forward.endpoints

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

    def record(self, rotation: Rotation, lived: Lived) -> tuple[str, ...]:
        """Write the turns that were received into the trace; what a person must know of it.

        ``lived``: when the command was started and when it had ended. The requests are deleted when what they
        tell stands in the trace; until then a later run into the same trace finds them.
        """
        if self._reception is None:
            return ()
        try:
            found = record_run(self._out, read_journal(self._journal.read()), rotation)
        except (OSError, TraceReadError) as error:
            return (f"what was received is kept beside the trace, which does not take it: {error}",)
        self._journal.delete()
        self.turns = found.turns
        damaged = sum(issue.severity == "error" for _, issue in found.issues)
        remarks = [f"{damaged} records that were received could not be read"] if damaged else []
        return (*remarks, *_around(found.turns, lived))


def _around(turns: Sequence[Turn], lived: Lived) -> Iterator[str]:
    """What of the command's life lay outside of its turns: it is in none of them."""
    started = [turn.started_ns for turn in turns if turn.started_ns is not None]
    completed = [turn.completed_ns for turn in turns if turn.completed_ns is not None]
    if len(started) == len(turns) == len(completed) > 0:
        before_ns, after_ns = max(0, min(started) - lived[0]), max(0, lived[1] - max(completed))
        which = "turn" if len(turns) == 1 else "first turn"
        yield (
            f"it ran {before_ns / _NS_PER_S:.3f} s before the {which} (start-up) "
            f"and {after_ns / _NS_PER_S:.3f} s after {'it' if len(turns) == 1 else 'the last'}"
        )


def _text(path: Path) -> str:
    """The start of a file; nothing of one that cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_CONFIGURATION_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
