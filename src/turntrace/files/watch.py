"""A trace while it is written: turns that run, by the journals beside it, and turns that were closed since.

The file may appear later, be cut short or be rotated; nothing is told twice and nothing that was closed
between two looks is missed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from turntrace.core.codec.decode import read_blocks
from turntrace.core.model import Turn
from turntrace.errors import TraceReadError
from turntrace.files.fragments import Part, is_dead, parts_in
from turntrace.files.out import parts_of
from turntrace.files.trace import read_trace

__all__ = ["Look", "Watch"]

_BACKLOG_BYTES: Final = 4 << 20
"""Of a file that was there before, so much of its end is searched for its last turn."""

_ABSENT: Final = (0, 0)


@dataclass(frozen=True, slots=True)
class Look:
    """What there is now: turns that run, turns whose process is gone, and those closed since the last look."""

    running: tuple[Turn, ...] = ()
    dead: tuple[Turn, ...] = ()
    closed: tuple[Turn, ...] = ()


@dataclass(slots=True)
class _Place:
    """How far a file was read."""

    identity: tuple[int, int] | None = None
    offset: int = 0
    told: set[str] = field(default_factory=set)


class Watch:
    """``Watch(out).look()``, again and again. The last turn that was closed before is told by the first look."""

    __slots__ = ("_out", "_parts", "_place")

    def __init__(self, out: Path) -> None:
        self._out = out
        self._place = _Place()
        self._parts: dict[Path, tuple[tuple[int, int], list[Part]]] = {}

    @property
    def path(self) -> Path:
        """The trace."""
        return self._out

    def look(self) -> Look:
        """What there is now."""
        # journals first: a turn that closes meanwhile stands in both, and is then told as closed
        parts = self._read_parts()
        turns, dead_ids = self._live(parts)
        closed = tuple(self._closed())
        live = [turn for turn in turns if turn.parent_run_id is None and turn.run_id not in self._place.told]
        return Look(
            running=tuple(turn for turn in live if turn.run_id not in dead_ids),
            dead=tuple(turn for turn in live if turn.run_id in dead_ids),
            closed=closed,
        )

    def _live(self, parts: list[Part]) -> tuple[list[Turn], set[str]]:
        if not parts:
            return [], set()
        try:
            turns, _ = read_trace((), str(self._out), parts)
        except TraceReadError:  # a file of requests that is being written
            return [], set()
        dead = {part.journal.turn.run_id for part in parts if is_dead(part)}
        return turns, dead

    def _read_parts(self) -> list[Part]:
        """The journals; one that did not grow is not read again."""
        known, self._parts = self._parts, {}
        for path in parts_of(self._out):
            try:
                stat = path.stat()
            except FileNotFoundError:  # its turn was closed meanwhile
                continue
            state = stat.st_size, stat.st_mtime_ns
            before = known.get(path)
            self._parts[path] = (
                before if before is not None and before[0] == state else (state, parts_in(path))
            )
        return [part for _, parts in self._parts.values() for part in parts]

    def _closed(self) -> Iterator[Turn]:
        try:
            stat = self._out.stat()
        except FileNotFoundError:
            # what appears later is new from its first byte on, even if it gets the number of the one that is gone
            self._place.identity, self._place.offset = _ABSENT, 0
            return
        identity = stat.st_dev, stat.st_ino
        if self._place.identity is None:
            yield from self._last_before(stat.st_size, identity)
            return
        if identity != self._place.identity:
            yield from self._rest_of_rotated()
            self._place.identity, self._place.offset = identity, 0
        elif stat.st_size < self._place.offset:
            self._place.offset = 0
        if stat.st_size > self._place.offset:
            yield from self._new_in(self._out)

    def _last_before(self, size_bytes: int, identity: tuple[int, int]) -> Iterator[Turn]:
        """The last whole turn of a file that was there before; all of its turns are known from now on."""
        self._place.identity = identity
        self._place.offset = max(0, size_bytes - _BACKLOG_BYTES)
        found = list(self._new_in(self._out))
        yield from found[-1:]

    def _rest_of_rotated(self) -> Iterator[Turn]:
        """What was appended to the file before it was renamed."""
        for path in self._out.parent.glob(f"{self._out.name}.[0-9]*"):
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            if (stat.st_dev, stat.st_ino) == self._place.identity:
                yield from self._new_in(path)

    def _new_in(self, path: Path) -> Iterator[Turn]:
        """The turns of whole blocks from the offset on, each once; a block that is being written is left."""
        try:
            with path.open("rb") as file:
                file.seek(self._place.offset)
                lines = file.read().splitlines(keepends=True)
        except FileNotFoundError:
            return
        for block in self._blocks(lines):
            for found in read_blocks(block, strict=False, path=str(path)):
                turn = found.turn
                if turn is not None and turn.parent_run_id is None and turn.run_id not in self._place.told:
                    self._place.told.add(turn.run_id)
                    yield turn

    def _blocks(self, lines: list[bytes]) -> Iterator[list[bytes]]:
        """Whole blocks; the offset moves past them and past what belongs to none."""
        at = 0
        while at < len(lines) and lines[at].endswith(b"\n"):
            count = _lines_of(lines[at])
            block = lines[at : at + 1 + (count or 0)]
            if count is not None and (len(block) <= count or not block[-1].endswith(b"\n")):
                return
            self._place.offset += sum(map(len, block))
            at += len(block)
            if count is not None:
                yield block


def _lines_of(line: bytes) -> int | None:
    """How many lines the block of a header has; None when the line is no header."""
    if b'"type":"trace"' not in line:
        return None
    try:
        count = orjson.loads(line).get("lines")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    return count if isinstance(count, int) else None
