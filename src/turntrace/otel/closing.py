"""When a turn ends: its journal becomes a block, its metrics are told, its file is whole.

Runs on the writer's thread, or on the exiting main thread. Nothing here grows with the number of turns.
"""

import math
import time

from turntrace.core.attribution import attributed
from turntrace.core.codec.encode import encode_block
from turntrace.core.model import Turn
from turntrace.core.results import Attribution
from turntrace.otel.blocks import Blocks
from turntrace.otel.live_turn import LiveTurn, NestedTurn, OpenSpan, TurnLog
from turntrace.otel.logs import open_log
from turntrace.otel.measuring import attributed_point, turn_point, untold_retries
from turntrace.otel.recording import Recording
from turntrace.otel.run_ids import new_run_id

__all__ = ["Closer"]


class Closer:
    """Decides when turns are over and writes their blocks."""

    __slots__ = ("_blocks", "_lingering", "_recording")

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._blocks = Blocks(recording.guard, recording.options.rotation, recording.calls)
        self._lingering: dict[LiveTurn, int] = {}

    # -- told by spans ----------------------------------------------------------------------------------

    def left(self, opened: OpenSpan) -> None:
        """A span of a turn whose root has ended, ended: close the turn when it was the last, else let it linger."""
        turn = opened.turn
        if turn.closed or turn.who.turn_source == "run":
            return
        writer = self._recording.writer
        if not turn.open_spans:
            writer.submit_later(self._leave if writer.is_behind else self._close_idle, turn)
        elif opened.span_id == turn.root_id:
            self._lingering[turn] = turn.now_ns() + int(self._recording.options.linger_s * 1e9)
            writer.wake()

    def opened_remotely(self, turn: LiveTurn) -> None:
        """A local root below a span of another process opened: look whether the turn of that is live."""
        self._recording.writer.submit(self._look_for_root, turn)

    def _look_for_root(self, turn: LiveTurn) -> None:
        turn.is_fragment = self._is_fragment(turn)

    def tick(self) -> bool:
        """Close turns whose time is up; True while some still linger or wait for their file."""
        for turn, deadline_ns in tuple(self._lingering.items()):
            if turn.closed or turn.now_ns() >= deadline_ns:
                self._lingering.pop(turn, None)
                self._recording.writer.submit_later(self.close, turn)
        if self._blocks.is_waiting:
            self._blocks.flush()
        return bool(self._lingering) or self._blocks.is_waiting

    def renew(self) -> None:
        """In a forked child: the parent's turns are closed by the parent; their descriptors are not ours."""
        self._lingering = {}
        self._blocks = Blocks(self._recording.guard, self._recording.options.rotation, self._recording.calls)
        for turn in self._recording.table.inherited:
            turn.log.forget()

    # -- closing ----------------------------------------------------------------------------------------

    def close_all(self, until_s: float = math.inf) -> None:
        """Close every live turn: the process or the recording ends.

        Turns that are not closed by the monotonic second ``until_s`` stay in their journals, whole, for the
        next process that opens the file.
        """
        writer = self._recording.writer
        with writer.paused():
            writer.drain(until_s)
            for turn in tuple(self._recording.table.live):
                (self.close if time.monotonic() < until_s else self._leave)(turn)
            self.finish()
            if self._recording.intake is not None:
                self._recording.intake.end()

    def finish(self) -> None:
        """Write every line and every block that waits."""
        with self._recording.writer.paused():
            self._recording.writer.drain()
            self._blocks.finish()

    def _close_idle(self, turn: LiveTurn) -> None:
        """Close a turn, unless another span of its trace began meanwhile: the end of that one closes it."""
        if not turn.open_spans:
            self.close(turn)

    def close(self, turn: LiveTurn) -> None:
        """Write the turn's block and delete its journal; a local root that was no turn is forgotten."""
        with turn.lock:
            if turn.closed:
                return
            turn.closed = True
        self._lingering.pop(turn, None)
        self._recording.table.remove(turn)
        self._end_open_spans(turn)
        if turn.candidate and not turn.has_phase:
            turn.log.discard()
        elif turn.who.is_remote and (turn.is_fragment or self._is_fragment(turn)):
            turn.log.flush()
            turn.log.close()
        else:
            if turn.log.out is not None:
                turn.result = self._publish(turn.log)
            self._measure(turn)

    def measure_live(self) -> None:
        """Tell the metrics of turns that the end of the process will close: afterwards nobody sends them."""
        for turn in tuple(self._recording.table.live):
            if not turn.who.is_remote and (turn.has_phase or not turn.candidate):
                self._measure(turn)

    def _measure(self, turn: LiveTurn) -> None:
        """One point for a turn that its root's end did not tell: no root of its own, or none that ended."""
        metrics = turn.metrics
        if metrics is None or turn.is_measured:
            return
        turn.is_measured = True
        metrics.retried(turn.who.agent, turn.model, "unknown", untold_retries(turn))
        record, found = turn.result or (None, None)
        point = None
        if found is not None:
            point = attributed_point(turn, found, turn.rounds)
        elif turn.end_ns is not None:
            point = turn_point(turn, turn.live.totals(turn.end_ns), turn.rounds)
        if point is not None:
            metrics.turn_ended(point)
        else:
            metrics.turn_stopped(turn.who.agent, "interrupted" if record is None else record.status)

    def _leave(self, turn: LiveTurn) -> None:
        """Write no block for the turn: there are too many, or there is no time."""
        with turn.lock:
            if turn.closed:
                return
            turn.closed = True
        self._lingering.pop(turn, None)
        self._recording.table.remove(turn)
        self._recording.guard.drop("unclosed")
        turn.log.leave()

    def roll_over(self, turn: LiveTurn) -> None:
        """Close a turn that grew beyond its bounds as interrupted, and go on under a new run id."""
        with turn.lock:
            if turn.closed:
                return
            before = turn.log
            turn.run_id, turn.since_ns = new_run_id(), turn.now_ns()
            turn.log = open_log(turn, self._recording)
        turn.log.opened()
        for opened in sorted(turn.open_spans.values(), key=lambda span: span.start_ns):
            turn.log.started(opened)
        if before.out is not None:
            self._publish(before)

    def _publish(self, log: TurnLog) -> tuple[Turn, Attribution]:
        """Make the block of a log and queue it for the file."""
        record, attribution = self._result(log)
        self._blocks.add(log, b"".join(encode_block(record, attribution)))
        self._recording.writer.gathered.add(self._blocks)
        return record, attribution

    def _end_open_spans(self, turn: LiveTurn) -> None:
        """What is still open ends now, incomplete; a root that never ended leaves the turn interrupted."""
        now_ns = turn.now_ns()
        for opened in sorted(turn.open_spans.values(), key=lambda span: -span.start_ns):
            if opened.span_id != turn.root_id:
                turn.has_phase = turn.has_phase or opened.phase not in {None, "other"}
                if not opened.is_over:  # else its own thread is about to tell it, which may come too late
                    opened.ended(now_ns, "unset", "incomplete", {})
                turn.log.cut(opened)

    def _is_fragment(self, turn: LiveTurn) -> bool:
        """Whether the root of a remote local root's turn is known to live elsewhere."""
        is_known = turn.who.turn_source == "run" or turn.trace_id in self._recording.table.inherited_traces
        return is_known or turn.log.has_turn_elsewhere()

    def _result(self, log: TurnLog) -> tuple[Turn, Attribution]:
        record = log.record()
        return record, attributed(record)

    # -- asked by report() ------------------------------------------------------------------------------

    def record_of(self, sink: LiveTurn | NestedTurn) -> tuple[Turn, Attribution]:
        """The turn's record and attribution so far; of a closed turn, those of its block."""
        turn = sink.outer if isinstance(sink, NestedTurn) else sink
        self._recording.writer.drain()
        with self._recording.writer.paused():
            return turn.result or self._result(turn.log)
