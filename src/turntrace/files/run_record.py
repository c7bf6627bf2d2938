"""Writes the turns of a run that received telemetry: at its end, or when it was killed before."""

import mmap
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turntrace.core.attribution import attributed
from turntrace.core.codec.decode import read_blocks
from turntrace.core.codec.encode import encode_block
from turntrace.core.codec.journal import Journal
from turntrace.core.model import Turn
from turntrace.files.append import Rotation, append_block
from turntrace.files.fragments import parts_with_trace, remove_joined
from turntrace.files.out import requests_folder
from turntrace.files.read_result import ReadResult
from turntrace.files.run_turns import run_turns, spans_of

__all__ = ["record_run", "stands_in", "turns_in"]


def record_run(out: Path, journal: Journal, rotation: Rotation) -> ReadResult:
    """Append the turns of a run to the trace, and delete its requests and the fragments that are in them.

    Returns what was written, with what was wrong. The caller deletes the journal.

    Raises:
        OSError: when the disk does not take them; what they are made of stays.
        TraceReadError: when a file of requests cannot be read.
    """
    run = journal.turn
    parts = [part for part in parts_with_trace(out, run.trace_id) if part.journal.fragment]
    before = turns_in(out)
    found = run_turns(out, journal, [part.journal.turn for part in parts], spans_of(before))
    if found is None:
        return ReadResult()
    written = [turn for turn in found.turns if not stands_in(out, turn.run_id)]
    for turn in written:
        append_block(out, encode_block(turn, attributed(turn)), rotation)
    remove_joined(parts, *before, *found.turns)
    shutil.rmtree(requests_folder(out, run.run_id), ignore_errors=True)
    return ReadResult(turns=written, issues=found.issues)


def turns_in(out: Path) -> list[Turn]:
    """The turns of the whole blocks of a trace; none where there is no file."""
    if not out.exists():
        return []
    with out.open("rb") as file:
        return [block.turn for block in read_blocks(file, strict=False) if block.turn and block.complete]


def stands_in(out: Path, run_id: str) -> bool:
    """Whether a complete block of the run is in the file: its process died before it deleted the journal."""
    if not out.exists():
        return False
    with _mapped(out) as data:
        if data is None or data.find(run_id.encode()) < 0:
            return False
    with out.open("rb") as file:
        return any(
            block.complete and block.turn is not None and block.turn.run_id == run_id
            for block in read_blocks(file, strict=False)
        )


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | None]:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield None
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
