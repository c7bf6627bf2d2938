"""The turn that a journal tells, with the fragments of it that other processes wrote."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from turntrace.core.codec.fragments import merge_fragments
from turntrace.core.codec.journal import Journal, read_journal
from turntrace.core.counted import counted
from turntrace.core.model import Turn
from turntrace.files.fragments import Part

__all__ = ["finished_record", "journal_record", "rootless_records"]


def journal_record(lines: Iterable[bytes], parts: Iterable[Part], *, sampled: bool) -> Turn:
    """The turn of a journal's ``lines``; the fragments among ``parts`` are joined."""
    fragments = [part.journal for part in parts if part.journal.fragment]
    return replace(finished_record(read_journal(lines), fragments), sampled=sampled)


def finished_record(journal: Journal, fragments: Iterable[Journal]) -> Turn:
    """The turn of a journal with its ``fragments``, calls counted once."""
    turns = [fragment.turn for fragment in fragments]
    turn = merge_fragments(journal.turn, turns) if turns else journal.turn
    return counted(_closed(turn) if turn.span_id is None and not _has_open(journal) else turn)


def rootless_records(fragments: Sequence[Journal]) -> list[Turn]:
    """The turns of fragments of one trace whose root nobody recorded: one of all that hang together."""
    first, *rest = sorted(
        fragments, key=lambda one: min((span.start_ns for span in one.turn.spans), default=0)
    )
    record = finished_record(first, rest)
    told = {span.span_id for span in record.spans}
    apart = [one for one in rest if not told.issuperset(span.span_id for span in one.turn.spans)]
    return [record, *(finished_record(one, ()) for one in apart)]


def _has_open(journal: Journal) -> bool:
    """Whether a span never ended, or was cut when its turn was closed."""
    return bool(journal.open_span_ids) or any(span.outcome == "incomplete" for span in journal.turn.spans)


def _closed(turn: Turn) -> Turn:
    """A turn without a root, all of whose spans ended: its window runs over its phases."""
    phases = [span for span in turn.spans if span.phase is not None]
    if not phases:
        return turn
    failed = any(span.outcome == "error" for span in phases)
    return replace(
        turn,
        started_ns=min(span.start_ns for span in phases),
        completed_ns=max(span.end_ns for span in phases),
        status="error" if failed and len(phases) == 1 else "ok",
    )
