"""One journal for all the turns that a process records by its writer's thread.

Hundreds of turns that start together would need hundreds of new files, and a disk may take most of a
millisecond for each; one file takes the lines of all of them in one write(2). A line of type ``journal``
says whose lines follow; one with ``closed`` says that the block of a run stands in the trace. A turn
that outlives its share of a growing file moves to a journal of its own.
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import orjson

from turntrace.files.calls import Calls
from turntrace.files.journal import JournalFile
from turntrace.files.out import journal_path

__all__ = ["Intake", "IntakeJournal", "runs_of"]

_IDLE_BYTES: Final = 256 << 10
"""A file with no live turn is replaced above this size."""

_FULL_BYTES: Final = 16 << 20
"""A file with live turns is replaced above this size, if they are not many."""

_MAX_MOVED: Final = 64

_TOO_FULL_BYTES: Final = 256 << 20
"""A file with live turns is replaced above this size."""

Chunk = tuple[int, int]
"""Offset and length of lines in the file, in bytes."""


class Intake:
    """The shared journal of one process beside one trace. Used by the writer's thread only."""

    __slots__ = ("_calls", "_chunks", "_file", "_holds_left", "_out", "_own", "_waiting")

    def __init__(self, out: Path, calls: Calls) -> None:
        self._out = out
        self._calls = calls
        self._chunks: dict[str, list[Chunk]] = {}
        self._own: dict[str, JournalFile] = {}
        self._waiting: list[tuple[str, bytes]] = []
        self._holds_left = False
        self._file = self._new_file()

    def _new_file(self) -> JournalFile:
        name = f"{self._out.name}.intake-{os.getpid()}-{secrets.token_hex(4)}.part"
        return JournalFile(self._out.with_name(name), self._calls)

    def add(self, run_id: str, lines: bytes) -> None:
        """Take lines of a run; ``flush`` writes them."""
        self._waiting.append((run_id, lines))

    def flush(self) -> None:
        """Write what was taken, all runs at once.

        Raises:
            OSError: when the disk does not take it.
        """
        waiting, self._waiting = self._waiting, []
        parts: list[bytes] = []
        placed: list[tuple[str, Chunk]] = []
        offset = 0
        for run_id, lines in waiting:
            own = self._own.get(run_id)
            if own is not None:
                own.write(lines)
                own.close()
                continue
            head = _switch(run_id, closed=False)
            placed.append((run_id, (offset + len(head), len(lines))))
            offset += len(head) + len(lines)
            parts += (head, lines)
        if parts:
            start = self._file.write(b"".join(parts))
            for run_id, (place, length) in placed:
                self._chunks.setdefault(run_id, []).append((start + place, length))
        if self._is_full():
            self._graduate()

    def read(self, run_id: str) -> list[bytes]:
        """The lines of a run so far, those that wait included."""
        own = self._own.get(run_id)
        if own is not None:
            return [*own.read(), *(line for waits_for, line in self._waiting if waits_for == run_id)]
        waiting = (lines for waits_for, lines in self._waiting if waits_for == run_id)
        return b"".join((*self._written(run_id), *waiting)).splitlines(keepends=True)

    def _written(self, run_id: str) -> Iterator[bytes]:
        """The lines of a run that lie in the shared file, as they were written."""
        return (self._file.part(offset, length) for offset, length in self._chunks.get(run_id, ()))

    def release(self, run_id: str) -> None:
        """Forget a run whose block is written, or that was no turn.

        Raises:
            OSError: when the disk does not take the line that says so.
        """
        self._waiting = [waits for waits in self._waiting if waits[0] != run_id]
        own = self._own.pop(run_id, None)
        if own is not None:
            own.delete()
        if self._chunks.pop(run_id, None) is None:
            return
        if self._chunks or self._file.size_bytes <= _IDLE_BYTES:
            self._file.write(_switch(run_id, closed=True))
        else:
            self._replace()

    def leave(self, run_id: str) -> None:
        """Forget a run whose lines are to stand as they are, for the next process."""
        self.flush()
        self._own.pop(run_id, None)
        self._holds_left = self._chunks.pop(run_id, None) is not None or self._holds_left

    def end(self) -> None:
        """The process or the recording ends: without live turns the file goes."""
        if not self._chunks:
            self._replace()

    def forget(self) -> None:
        """In a forked child: the files are the parent's."""
        for file in (self._file, *self._own.values()):
            file.forget()

    def _replace(self) -> None:
        if self._holds_left:
            self._file.close()
        else:
            self._file.delete()
        self._file, self._holds_left = self._new_file(), False

    def _is_full(self) -> bool:
        size_bytes = self._file.size_bytes
        return size_bytes > _TOO_FULL_BYTES or (size_bytes > _FULL_BYTES and len(self._chunks) <= _MAX_MOVED)

    def _graduate(self) -> None:
        """Move the live turns of a full file to journals of their own."""
        for run_id in self._chunks.keys() - self._own.keys():
            self._own[run_id] = self._moved(run_id)
        self._chunks.clear()
        self._replace()

    def _moved(self, run_id: str) -> JournalFile:
        """A journal with the lines of a run; it takes its name when it is whole.

        Whoever reads it beside the shared file takes it for all there is: a kill may not cut it.
        """
        path = journal_path(self._out, run_id)
        own = JournalFile(path.with_suffix(".moving"), self._calls)
        try:
            own.write(b"".join(self._written(run_id)))  # not split: that would leave the heap in pieces
            own.path = own.path.replace(path)
        except OSError:
            own.delete()
            raise
        own.close()  # opened again for each write: there may be more turns than descriptors
        return own


class IntakeJournal:
    """One run's side of an Intake; as JournalFile to who writes and reads it."""

    __slots__ = ("_intake", "_run_id", "path")

    def __init__(self, intake: Intake, run_id: str, path: Path) -> None:
        self._intake = intake
        self._run_id = run_id
        self.path = path

    def write(self, lines: bytes) -> None:
        """See Intake.add."""
        self._intake.add(self._run_id, lines)

    def read(self) -> list[bytes]:
        """See Intake.read."""
        return self._intake.read(self._run_id)

    def delete(self) -> None:
        """See Intake.release."""
        self._intake.release(self._run_id)

    def leave(self) -> None:
        """See Intake.leave."""
        self._intake.leave(self._run_id)

    def close(self) -> None:
        """Nothing: the file is shared."""

    def forget(self) -> None:
        """Nothing: see Intake.forget."""


def _switch(run_id: str, *, closed: bool) -> bytes:
    line = {"type": "journal", "run_id": run_id, **({"closed": True} if closed else {})}
    return orjson.dumps(line) + b"\n"


def runs_of(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The lines of each run of a journal that is not closed; a journal of one turn is one run."""
    runs: dict[str, list[bytes]] = {}
    current = runs.setdefault("", [])
    for line in lines:
        switch = _read_switch(line)
        if switch is None:
            current.append(line)
        elif switch[1]:
            runs.pop(switch[0], None)
        else:
            current = runs.setdefault(switch[0], [])
    yield from (found for found in runs.values() if found)


def _read_switch(line: bytes) -> tuple[str, bool] | None:
    if not line.startswith(b'{"type":"journal"'):
        return None
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:  # torn: what follows cannot belong to it, there is nothing after a tear
        return None
    return str(fields.get("run_id", "")), bool(fields.get("closed"))
