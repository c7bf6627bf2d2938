"""Fragments: journals of spans whose turn is rooted in another process."""

from collections.abc import Iterable
from pathlib import Path

from turntrace.core.codec.journal import Journal, read_journal
from turntrace.core.model import Turn
from turntrace.errors import TraceReadError
from turntrace.files.intake import runs_of
from turntrace.files.lock import claimed, is_locked
from turntrace.files.out import parts_of
from turntrace.files.process import is_alive

__all__ = [
    "Part",
    "is_dead",
    "parts_in",
    "parts_with_trace",
    "read_parts",
    "remove_joined",
    "turn_lives_elsewhere",
]


class Part:
    """A journal or fragment beside a trace, as it was when it was read."""

    __slots__ = ("journal", "path", "size_bytes")

    def __init__(self, path: Path, journal: Journal, size_bytes: int) -> None:
        self.path = path
        self.journal = journal
        self.size_bytes = size_bytes


def read_parts(out: Path) -> list[Part]:
    """Every turn and fragment in the journals beside ``out``."""
    return [part for path in parts_of(out) for part in parts_in(path)]


def parts_in(path: Path) -> list[Part]:
    """What ``path`` holds; nothing when it is gone (its turns were closed meanwhile) or has no line yet."""
    try:
        with path.open("rb") as file:
            runs, size_bytes = list(runs_of(file)), file.tell()
    except FileNotFoundError:
        return []
    return [part for run in runs if (part := _part(path, run, size_bytes)) is not None]


def _part(path: Path, run: list[bytes], size_bytes: int) -> Part | None:
    try:
        return Part(path, read_journal(run, path=str(path)), size_bytes)
    except TraceReadError:  # killed before the header was written: nothing is lost
        return None


def parts_with_trace(out: Path, trace_id: str) -> list[Part]:
    """The fragments beside ``out`` that belong to a trace, told by their names."""
    prefix = f"{out.name}.{trace_id}."
    return [part for path in parts_of(out) if path.name.startswith(prefix) for part in parts_in(path)]


def remove_joined(parts: Iterable[Part], *turns: Turn) -> None:
    """Delete the fragments all of whose spans stand in ``turns``, unless their processes still write to them.

    A span that is still open where it is made does not stand in the turn yet.
    """
    known = {span.span_id for turn in turns for span in turn.spans}
    for part in parts:
        spans = part.journal.turn.spans
        is_whole = all(span.outcome != "incomplete" for span in spans) or is_dead(part)
        if part.journal.fragment and is_whole and known.issuperset(span.span_id for span in spans):
            with claimed(part.path) as is_mine:
                if is_mine and part.path.stat().st_size == part.size_bytes:
                    part.path.unlink()


def is_dead(part: Part) -> bool:
    """Whether the process that wrote ``part`` no longer lives.

    The kernel's lock on the file decides where there is one; the pid, with the time its process started,
    decides where the file was closed in between.
    """
    pid = part.journal.pid
    if pid is None:
        return not is_locked(part.path)
    return not is_locked(part.path) and not is_alive(pid, part.journal.pid_started)


def turn_lives_elsewhere(out: Path, trace_id: int, pid: int) -> bool:
    """Whether a journal beside ``out``, of another process, holds the root of a trace."""
    wanted = f"{trace_id:032x}"
    return any(
        part.journal.turn.trace_id == wanted and not part.journal.fragment and part.journal.pid != pid
        for path in parts_of(out)
        if _names(path, wanted)
        for part in parts_in(path)
    )


def _names(path: Path, text: str) -> bool:
    """Whether a journal names ``text``; without parsing it."""
    try:
        return text.encode() in path.read_bytes()
    except FileNotFoundError:
        return False
