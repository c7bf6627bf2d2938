"""When a turn ends: its journal becomes a block, its metrics are told, its file is whole.

Runs on the writer's thread, or on the exiting main thread. Nothing here grows with the number of turns.
"""

from turntrace.core.attribution import attribute
from turntrace.core.codec.encode import encode_block
from turntrace.core.model import Turn
from turntrace.core.results import Attribution
from turntrace.otel.blocks import Blocks
from turntrace.otel.live_turn import LiveTurn, NestedTurn, OpenSpan
from turntrace.otel.recording import Recording

__all__ = ["Closer"]


class Closer:
    """Decides when turns are over and writes their blocks."""

    __slots__ = ("_blocks", "_lingering", "_recording")

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._blocks = Blocks(recording.guard, recording.options.rotation)
        self._lingering: dict[LiveTurn, int] = {}

    # -- told by spans ----------------------------------------------------------------------------------

    def left(self, opened: OpenSpan) -> None:
        """A span ended: close its turn when that was the last of it, else let the turn linger."""
        turn = opened.turn
        is_over = turn.end_ns is not None or not turn.root_id
        if turn.closed or not is_over:
            return
        if not turn.open_spans:
            self._recording.writer.submit_later(self.close, turn)
        elif opened.span_id == turn.root_id:
            self._lingering[turn] = turn.now_ns() + int(self._recording.options.linger_s * 1e9)
            self._recording.writer.wake()

    def tick(self) -> bool:
        """Close turns whose time is up; True while some still linger."""
        for turn, deadline_ns in tuple(self._lingering.items()):
            if turn.closed or turn.now_ns() >= deadline_ns:
                self._lingering.pop(turn, None)
                self.close(turn)
        return bool(self._lingering)

    def renew(self) -> None:
        """In a forked child: the parent's turns are closed by the parent; their descriptors are not ours."""
        self._lingering = {}
        self._blocks = Blocks(self._recording.guard, self._recording.options.rotation)
        for turn in self._recording.table.inherited:
            turn.log.forget()

    # -- closing ----------------------------------------------------------------------------------------

    def close_all(self) -> None:
        """Close every live turn: the process or the recording ends."""
        self._recording.writer.drain()
        for turn in tuple(self._recording.table.live):
            self.close(turn)
        self._recording.writer.drain()
        if self._recording.intake is not None:
            self._recording.intake.end()

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
        elif turn.who.is_remote and self._is_fragment(turn):
            turn.log.flush()
            turn.log.close()
        elif turn.log.out is not None:
            turn.result = record, attribution = self._result(turn)
            self._blocks.add(turn.log, b"".join(encode_block(record, attribution)))
            self._recording.writer.gathered.add(self._blocks)

    def _end_open_spans(self, turn: LiveTurn) -> None:
        """What is still open ends now, incomplete; a root that never ended leaves the turn interrupted."""
        now_ns = turn.now_ns()
        for opened in sorted(turn.open_spans.values(), key=lambda span: -span.start_ns):
            if opened.span_id != turn.root_id:
                opened.ended(now_ns, "unset", "incomplete", {})
                turn.log.ended(opened)

    def _is_fragment(self, turn: LiveTurn) -> bool:
        """Whether the root of a remote local root's turn is known to live elsewhere."""
        table = self._recording.table
        return turn.trace_id in table.inherited_traces or turn.log.has_turn_elsewhere()

    def _result(self, turn: LiveTurn) -> tuple[Turn, Attribution]:
        record = turn.log.record()
        return record, attribute(
            record.spans,
            started_ns=record.started_ns,
            completed_ns=record.completed_ns,
            root_id=record.span_id,
        )

    # -- asked by report() ------------------------------------------------------------------------------

    def record_of(self, sink: LiveTurn | NestedTurn) -> tuple[Turn, Attribution]:
        """The turn's record and attribution so far; of a closed turn, those of its block."""
        turn = sink.outer if isinstance(sink, NestedTurn) else sink
        self._recording.writer.drain()
        with self._recording.writer.paused():
            return turn.result or self._result(turn)
