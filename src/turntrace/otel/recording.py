"""What the parts of one processor share: options, clocks, live turns, the writer, the guard."""

import os
import sys
from pathlib import Path
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import get_current_span

from turntrace.files.brief_calls import BriefCalls
from turntrace.files.intake import Intake
from turntrace.files.process import started_ticks
from turntrace.otel.blocks import STDERR
from turntrace.otel.clock import Clock
from turntrace.otel.guard import Guard
from turntrace.otel.live_turn import LiveTurn, NestedTurn
from turntrace.otel.metrics import TurnMetrics
from turntrace.otel.options import RecordingOptions
from turntrace.otel.turns import TurnTable
from turntrace.otel.writer import Writer

__all__ = ["Recording"]

_SLOW_WRITES: Final = 2


class Recording:
    """One per processor. ``exclusive_of`` is filled for an exporter made by wrap(), else None."""

    __slots__ = (
        "_slow_writes",
        "calls",
        "clock",
        "enriches",
        "exclusive_of",
        "guard",
        "intake",
        "is_inside",
        "metrics",
        "options",
        "pid",
        "pid_started",
        "slow_disk",
        "table",
        "writer",
    )

    def __init__(self, options: RecordingOptions, clock: Clock) -> None:
        self.options = options
        self.clock = clock
        self.calls = BriefCalls()
        self.intake = self._new_intake()
        self.metrics: TurnMetrics | None = None
        self.enriches = False
        self.is_inside = options.is_inside
        self.slow_disk = False
        self._slow_writes = 0
        self.guard = Guard()
        self.pid = os.getpid()
        self.pid_started = started_ticks(self.pid)
        self.table = TurnTable()
        self.writer: Writer
        self.exclusive_of: dict[int, int] | None = None

    def _new_intake(self) -> Intake | None:
        out = self.options.out
        if self.options.journal != "thread" or out is None or out == STDERR:
            return None
        return Intake(Path(out), self.calls)

    def flush_intake(self) -> None:
        """Write the lines that turns gathered; a disk that takes none costs the lines, not the agent."""
        if self.intake is not None:
            try:
                self.intake.flush()
            except OSError as error:
                self.guard.lost(str(self.options.out), error, 1)

    def sink(self, context: Context) -> LiveTurn | NestedTurn | None:
        """The live turn that ``context`` lies in: of its current span, carried by it, or the only one."""
        current = get_current_span(context).get_span_context()
        found = self.table.in_context(context)
        if not current.is_valid:
            return self.table.only_turn() if found is None else found
        opened = self.table.open_spans.get(current.span_id)
        if opened is not None:
            return opened.sink
        if found is not None and found.turn.trace_id == current.trace_id:
            return found
        return self.table.of_trace(current.trace_id)

    def homeless(self, name: str) -> None:
        """Count a span that no turn could be found for while several were live; warn each of them once."""
        live = [turn for turn in tuple(self.table.live) if not turn.candidate and turn.end_ns is None]
        if live:
            self.guard.drop("no_turn")
        for turn in live:
            if not turn.is_warned:
                turn.is_warned = True
                turn.warn("no_turn", f"a span ({name}) had no turn: configure(threads=True) carries it", None)

    def keep_exclusive(self) -> dict[int, int]:
        """The exclusive times (ns) that wait for an exporter made by wrap(), by span id."""
        if self.exclusive_of is None:
            self.exclusive_of = {}
        return self.exclusive_of

    def disk_was_slow(self) -> None:
        """Note a journal write beyond 100 ms; the second moves sync journals to the writer's thread."""
        self._slow_writes += 1
        if self._slow_writes == _SLOW_WRITES and not self.slow_disk:
            self.slow_disk = True
            self.guard.drop("slow_disk")
            sys.stderr.write("turntrace: the disk is slow; the journal is written by a thread from now on\n")

    def renew(self) -> None:
        """In a forked child: the parent's turns stay the parent's."""
        self.table.after_fork()
        self.is_inside = True
        self.pid = os.getpid()
        self.pid_started = started_ticks(self.pid)
        if self.intake is not None:
            self.intake.forget()
            self.intake = self._new_intake()
        if self.exclusive_of is not None:
            self.exclusive_of = {}
