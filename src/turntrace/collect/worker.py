"""Reads the queue of received requests and makes turns of them, in a process beside the receiver's.

So a request is acknowledged while a turn is being computed, on another core, and nothing that comes in can
take the receiver down with it.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from turntrace.collect.agents import AgentWaits
from turntrace.collect.closing import Closing
from turntrace.collect.enrichment import enriched_requests
from turntrace.collect.forwarder import Forwarder
from turntrace.collect.gathering import Gathering, Trace, Waits
from turntrace.collect.request_spans import arrived, told
from turntrace.collect.spool import segments
from turntrace.collect.spool_reader import Message, SpoolReader
from turntrace.collect.turn_writer import TurnWriter
from turntrace.core.attribution import attributed
from turntrace.core.turn_roots import Rule
from turntrace.files.append import Rotation
from turntrace.otel.turn_facts import facts_of_turns

__all__ = ["Outcome", "Work", "Worker", "requests_folder"]

_POLL_S: Final = 0.05
_SLICE_S: Final = 0.25
_FULL_DISK_S: Final = 1.0
_LAST_TRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a worker is to do. ``folder`` has the queues; ``out`` None writes no turns."""

    folder: Path
    out: Path | None
    rotation: Rotation
    waits: Waits
    agent_waits: AgentWaits = field(default_factory=AgentWaits)
    exit_s: float = 5.0


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a worker did, in numbers."""

    turns: int = 0
    spans: int = 0
    unreadable: int = 0
    late_refused: int = 0
    late_events: int = 0
    sent_requests: int = 0
    given_up_requests: int = 0
    forward_dropped_bytes: int = 0
    is_written: bool = True
    is_delivered: bool = True

    def as_dict(self) -> dict[str, int | bool]:
        """The numbers by name."""
        return asdict(self)


def requests_folder(folder: Path) -> Path:
    """Where the queue of received requests lies."""
    return folder / "requests"


class Worker:
    """``with Worker(work, rule, forwarder) as worker: worker.run(is_over)``."""

    def __init__(self, work: Work, rule: Rule | None, forwarder: Forwarder | None) -> None:
        self._work = work
        self._gathering = Gathering(work.waits)
        self._closing = Closing(rule, work.agent_waits)
        self._forwarder = forwarder
        self._writer = None if work.out is None else TurnWriter(work.out, work.rotation)
        self._unsent: list[bytes] = []
        self.outcome = Outcome()

    def __enter__(self) -> Self:
        """Open the queue; what an earlier process left in it may stand in the file already.

        Raises:
            OSError: when the queue or the trace cannot be read.
        """
        folder = requests_folder(self._work.folder)
        if self._writer is not None and segments(folder):
            self._writer.remember_file()
        self._reader = SpoolReader(folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing: what is open is the caller's."""

    def run(self, is_over: Callable[[], bool]) -> Outcome:
        """Work until ``is_over`` says that nothing more is written to the queue and all of it is read."""
        while True:
            was_over = is_over()
            read = self._read(is_last=was_over)
            is_stored = self._close(self._gathering.due(time.monotonic()), is_last=False)
            if not is_stored and not self._wait_for_room(is_over):
                break
            if was_over and not read:
                break
            if not read:
                time.sleep(_POLL_S)
        return self._finish()

    def _read(self, *, is_last: bool) -> bool:
        """Take what is queued, for a slice of time; whether there was anything."""
        until_s = time.monotonic() + _SLICE_S
        found = False
        for message in self._reader.messages(is_last=is_last):
            found = True
            self._take(message)
            if time.monotonic() > until_s:
                break
        return found

    def _take(self, message: Message) -> None:
        now_s = time.monotonic()
        try:
            if message.signal != "traces":
                self._closing.agents.hear(told(message.body, message.kind), message.number, now_s)
                return
            spans = list(arrived(message.body, message.kind, with_origin=self._forwarder is not None))
        except Exception:  # noqa: BLE001 - what one request holds must not cost the others
            self.outcome.unreadable += 1
            return
        self.outcome.spans += len(spans)
        self._gathering.add(spans, message.number, now_s, len(message.body))

    def _close(self, traces: Iterable[Trace], *, is_last: bool) -> bool:
        """Make turns of ``traces``; False when the disk did not take all of what followed."""
        turns, closed = self._closing.turns(
            traces, time.monotonic(), is_last=is_last, open_processes=self._gathering.processes
        )
        known = [(turn, attributed(turn) if turn.parent_run_id is None else None) for turn in turns]
        if self._writer is not None:
            self._writer.add((turn, found) for turn, found in known if found is not None)
        if self._forwarder is not None:
            with_times = ((turn, attributed(turn) if found is None else found) for turn, found in known)
            self._unsent += enriched_requests(closed, facts_of_turns(with_times))
        return self._store()

    def _store(self) -> bool:
        """Write what was made; then the requests it was made of may go."""
        is_written = self._writer is None or self._writer.flush()
        while self._unsent and self._forwarder is not None:
            try:
                self._forwarder.add(self._unsent[0])
            except OSError:
                return False
            del self._unsent[0]
        if is_written:
            self._reader.release(self._gathering.numbers | self._closing.numbers)
        return is_written

    def _wait_for_room(self, is_over: Callable[[], bool]) -> bool:
        """Wait for a full disk to take what waits; False when it does not before the end."""
        tries = 0
        while not self._store():
            if is_over():
                tries += 1
            if tries > _LAST_TRIES:
                return False
            time.sleep(_FULL_DISK_S)
        return True

    def _finish(self) -> Outcome:
        outcome = self.outcome
        outcome.is_written = self._close(self._gathering.all(), is_last=True) or self._wait_for_room(
            lambda: True
        )
        outcome.unreadable += self._closing.unreadable
        outcome.late_events = self._closing.agents.late_events
        if self._writer is not None:
            outcome.turns = self._writer.turns
            outcome.late_refused += self._writer.fragments_refused
        if self._forwarder is not None:
            outcome.is_delivered = self._forwarder.stop(self._work.exit_s)
            outcome.sent_requests = self._forwarder.sent_requests
            outcome.given_up_requests = self._forwarder.given_up
            outcome.forward_dropped_bytes = self._forwarder.dropped_bytes
        return outcome
