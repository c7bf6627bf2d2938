"""Journals of processes that no longer live become blocks of interrupted turns."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from turntrace.core.attribution import attributed
from turntrace.core.codec.encode import encode_block
from turntrace.core.model import Turn
from turntrace.files.append import Rotation, append_block
from turntrace.files.fragments import Part, is_dead, read_parts
from turntrace.files.journal_record import finished_record, rootless_records
from turntrace.files.lock import claimed
from turntrace.files.out import requests_folder
from turntrace.files.run_record import record_run, stands_in, turns_in

__all__ = ["finish_dead"]


def finish_dead(out: Path, rotation: Rotation, *, ended: str | None = None) -> int:
    """Write a block for each turn beside ``out`` whose process is gone; returns how many.

    The journal, and the fragments joined to it, are deleted after the block stands in the file. A
    journal that holds no readable line is left where it is. Fragments of the trace ``ended``, the one
    of a run that has ended, are a turn where there is nothing else of it, neither a journal nor a block.

    Raises:
        OSError: when the disk does not take a block; its journal stays.
    """
    parts = read_parts(out)
    fragments = [part for part in parts if part.journal.fragment]
    by_path: dict[Path, list[Part]] = {}
    for part in parts:
        if not part.journal.fragment and is_dead(part):
            by_path.setdefault(part.path, []).append(part)
    written = 0
    for path, turns in by_path.items():
        with claimed(path) as is_mine:
            if is_mine:
                written += sum(_finish(out, part, fragments, rotation) for part in turns)
                path.unlink(missing_ok=True)
    left = [part for part in parts if part.journal.turn.trace_id == ended]
    return written + (_finish_rootless(out, left, rotation) if left else 0)


def _finish_rootless(out: Path, parts: Sequence[Part], rotation: Rotation) -> int:
    """Write the turns of fragments whose root nobody recorded; returns how many."""
    is_over = all(part.journal.fragment and is_dead(part) for part in parts)
    trace_id = parts[0].journal.turn.trace_id
    if not is_over or any(turn.trace_id == trace_id for turn in turns_in(out)):
        return 0
    with ExitStack() as locks:
        if not all(locks.enter_context(claimed(part.path)) for part in parts):
            return 0  # somebody else is writing them
        records = [
            record for record in rootless_records([part.journal for part in parts]) if _is_turn(record)
        ]
        for record in records:
            append_block(out, encode_block(record, attributed(record)), rotation)
        for part in parts:
            part.path.unlink(missing_ok=True)
    return len(records)


def _finish(out: Path, part: Part, fragments: list[Part], rotation: Rotation) -> int:
    """Write the turn of a dead journal unless it stands in the file or was none; say how many were."""
    turn = part.journal.turn
    if requests_folder(out, turn.run_id).is_dir():
        return len(record_run(out, part.journal, rotation).turns)
    joined = [fragment for fragment in fragments if fragment.journal.turn.trace_id == turn.trace_id]
    record = finished_record(part.journal, [fragment.journal for fragment in joined])
    is_due = _is_turn(record) and not stands_in(out, record.run_id)
    if is_due:
        append_block(out, encode_block(record, attributed(record)), rotation)
        for fragment in joined:
            if is_dead(fragment):
                fragment.path.unlink(missing_ok=True)
    return is_due


def _is_turn(record: Turn) -> bool:
    """A local root becomes a turn only when one of its spans is a phase that has a name of its own."""
    return record.turn_source not in {"local_root", "run"} or any(
        span.phase not in {None, "other"} for span in record.spans
    )
