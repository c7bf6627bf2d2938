"""The reading end of a queue on disk. It polls: the writer is another process, which may be killed."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from turntrace.collect.sink import MAX_FRAME_BYTES, ContentKind, Signal
from turntrace.collect.spool import Segment, segments

__all__ = ["Message", "SpoolReader"]

_LENGTH_BYTES: Final = 4


class Message(NamedTuple):
    """A request, the segment it stands in and the offset in bytes after it."""

    number: int
    end: int
    signal: Signal
    kind: ContentKind
    body: bytes


class SpoolReader:
    """Reads every record once; a segment is deleted when it was read and ``release`` says it may go."""

    __slots__ = ("_done", "_ends", "_folder")

    def __init__(self, folder: Path, *, start: tuple[int, int] = (0, 0)) -> None:
        """Read from ``start`` on: the number of a segment and an offset in it; earlier ones count as read."""
        self._folder = folder
        self._ends: dict[int, int] = {start[0]: start[1]}
        self._done: dict[int, Path] = {
            segment.number: segment.path for segment in segments(folder) if segment.number < start[0]
        }

    def messages(self, *, is_last: bool) -> Iterator[Message]:
        """What was appended since; ``is_last`` says that the writer is gone and every segment is whole."""
        found = segments(self._folder)
        newest = {(one.signal, one.kind): one.number for one in found}
        for segment in found:
            if segment.number in self._done:
                continue
            # what was there when a later one was listed is all: a segment is left before the next is begun
            is_whole = is_last or segment.number < newest[segment.signal, segment.kind]
            try:
                with segment.path.open("rb") as file:
                    yield from self._messages(file, segment)
            except FileNotFoundError:  # dropped by the writer, which counted it
                is_whole = True
            if is_whole:
                self._done[segment.number] = segment.path

    def _messages(self, file: BinaryIO, segment: Segment) -> Iterator[Message]:
        end = self._ends.get(segment.number, 0)
        file.seek(end)
        bodies = _frames(file) if segment.kind == "protobuf" else _lines(file)
        for body, size_bytes in bodies:
            end += size_bytes
            self._ends[segment.number] = end
            yield Message(segment.number, end, segment.signal, segment.kind, body)

    def release(self, keep: Collection[int] = ()) -> None:
        """Delete the segments that were read, but for those whose numbers are in ``keep``."""
        for number in [number for number in self._done if number not in keep]:
            self._done.pop(number).unlink(missing_ok=True)
            self._ends.pop(number, None)


def _frames(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    while len(head := file.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
        length = int.from_bytes(head, "big")
        body = file.read(length) if length <= MAX_FRAME_BYTES else b""
        if len(body) < length:  # still being written, or torn by a kill: nobody was told that it is safe
            return
        yield body, _LENGTH_BYTES + length


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    for line in file:
        if not line.endswith(b"\n"):
            return
        yield line, len(line)
