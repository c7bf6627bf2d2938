"""Turns into the trace file: blocks for whole ones, a fragment for spans that come after their turn's block."""

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from turntrace.core.codec import journal as lines
from turntrace.core.codec.decode import read_blocks
from turntrace.core.codec.encode import encode_block
from turntrace.core.model import Turn
from turntrace.core.results import Attribution
from turntrace.files.append import Rotation, append_aside, append_blocks
from turntrace.files.fragments import read_parts
from turntrace.files.journal import JournalFile
from turntrace.files.out import fragment_path
from turntrace.files.process import started_ticks

__all__ = ["TurnWriter"]

_KNOWN: Final = 200_000
"""Turns that are remembered, so that what comes late finds them."""

_MAX_FRAGMENTS: Final = 1_000

Key = tuple[str, str]


class TurnWriter:
    """Appends turns to ``out``; every turn once, also after a restart that reads its spans again.

    What is interrupted and has the trace of a block came after it: its root stands there.
    """

    __slots__ = (
        "_fragments",
        "_known",
        "_out",
        "_pending",
        "_rotation",
        "_told",
        "_traces",
        "fragments_refused",
        "turns",
    )

    def __init__(self, out: Path, rotation: Rotation) -> None:
        self._out = out
        self._rotation = rotation
        self._known: OrderedDict[Key, bool] = OrderedDict()
        self._traces: OrderedDict[str, bool] = OrderedDict()
        self._told: set[Key] = set()
        self._pending: list[bytes] = []
        self._fragments: set[str] = set()
        self.turns = 0
        self.fragments_refused = 0

    def remember_file(self) -> None:
        """Learn which turns stand in the file: the spans of some of them may come again.

        Raises:
            OSError: when the file cannot be read.
        """
        if self._out.exists():
            with self._out.open("rb") as file:
                for block in read_blocks(file, strict=False):
                    if block.complete and block.turn is not None:
                        self._remember(block.turn, is_old=True)
        for part in read_parts(self._out):
            if part.journal.fragment:
                turn = part.journal.turn
                self._told.update((turn.trace_id, span.span_id) for span in turn.spans)

    def add(self, turns: Iterable[tuple[Turn, Attribution]]) -> None:
        """Take outermost turns; ``flush`` writes them. Late spans are written at once, or counted."""
        for turn, attribution in turns:
            is_interrupted = turn.status == "interrupted"
            if is_interrupted and turn.trace_id in self._traces and not self._is_old(turn):
                self._late(turn)
            elif (turn.trace_id, turn.run_id) not in self._known:
                self._pending.append(b"".join(encode_block(turn, attribution)))
                self._remember(turn, is_old=False)

    def _is_old(self, turn: Turn) -> bool:
        """Whether an earlier process wrote the turn, interrupted as it is."""
        return self._known.get((turn.trace_id, turn.run_id), False)

    def _remember(self, turn: Turn, *, is_old: bool) -> None:
        self._known[turn.trace_id, turn.run_id] = is_old and turn.status == "interrupted"
        self._traces[turn.trace_id] = True
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        if len(self._traces) > _KNOWN:
            self._traces.popitem(last=False)

    def flush(self) -> bool:
        """Write what was taken; False when the disk does not take it, then it is kept for the next time."""
        if not self._pending:
            return True
        try:
            if append_blocks(self._out, self._pending, self._rotation) is None:
                append_aside(self._out, self._pending)
        except OSError:
            return False
        self.turns += len(self._pending)
        self._pending = []
        return True

    def _late(self, turn: Turn) -> None:
        """Spans whose parents stand in a block: a fragment beside the file, which readers join to it."""
        told = self._told
        turn = replace(turn, spans=tuple(s for s in turn.spans if (turn.trace_id, s.span_id) not in told))
        if not turn.spans:
            return
        if turn.trace_id not in self._fragments and len(self._fragments) >= _MAX_FRAGMENTS:
            self.fragments_refused += len(turn.spans)
            return
        self._fragments.add(turn.trace_id)
        journal = JournalFile(fragment_path(self._out, int(turn.trace_id, 16), os.getpid()))
        try:
            journal.write(b"".join(fragment_lines(turn)))
        except OSError:
            self.fragments_refused += len(turn.spans)
        finally:
            journal.close()


def fragment_lines(turn: Turn) -> Sequence[bytes]:
    """What came late, as a process that held a part of a turn journals it."""
    pid = os.getpid()
    told = [lines.header_line(turn, pid=pid, pid_started=started_ticks(pid), fragment=True)]
    told += (
        lines.span_line(
            span.phase,
            span.name,
            int(span.span_id, 16),
            None if span.parent_id is None else int(span.parent_id, 16),
            0,
            span.start_ns,
            span.end_ns,
            status=span.status,
            outcome=span.outcome,
            round_number=span.round,
            tool=span.tool,
            model=span.model,
            agent=span.agent,
            run_id=span.run_id,
            parent_source=span.parent_source,
            attributes=span.attributes,
        )
        for span in turn.spans
    )
    told += (lines.counter_line(name, total) for name, total in turn.counters.items())
    told += map(lines.mark_line, turn.marks)
    told += map(lines.usage_line, turn.usage)
    return told
