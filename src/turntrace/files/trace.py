"""The turns of our own file: whole blocks, what the journals beside it still hold, and torn blocks."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from turntrace.core.codec.decode import Block, read_blocks
from turntrace.core.codec.fragments import merge_fragments
from turntrace.core.codec.journal import Journal
from turntrace.core.model import Issue, Turn
from turntrace.core.nested import nested_turns
from turntrace.files.fragments import Part
from turntrace.files.journal_record import finished_record, rootless_records
from turntrace.files.run_turns import run_turns, spans_of

__all__ = ["read_trace"]


def read_trace(lines: Iterable[bytes], path: str, parts: Sequence[Part]) -> tuple[list[Turn], list[Issue]]:
    """The turns of ``lines`` as they stand there, then those that only journals tell; each turn once.

    Args:
        lines: of the file.
        path: the file, for issues and for what lies beside it.
        parts: the journals beside it.

    Raises:
        TraceReadError: when a file of requests that a run received cannot be read.
    """
    blocks = list(_blocks(lines, path, is_expected=not parts))
    whole = [block.turn for block in blocks if block.turn is not None and block.complete]
    journaled, fragments, issues = _journaled(path, parts, whole)
    told = {turn.run_id for turn in (*whole, *journaled)}
    kept = _without_copies(blocks, told)
    found = [block.turn for block in kept if block.turn is not None]
    turns = _joined([*found, *journaled], fragments)
    issues = [issue for block in kept for issue in block.issues] + issues
    return [inner for turn in turns for inner in (turn, *nested_turns(turn))], issues


def _blocks(lines: Iterable[bytes], path: str, *, is_expected: bool) -> Iterator[Block]:
    """The blocks of a file; that it is empty is no issue while a journal tells the first turn."""
    for block in read_blocks(lines, strict=False, path=path):
        if is_expected or block.turn is not None or not block.issues or block.issues[0].code != "empty":
            yield block


def _journaled(
    path: str, parts: Iterable[Part], whole: Sequence[Turn]
) -> tuple[list[Turn], list[Journal], list[Issue]]:
    """The turns that no whole block tells, the fragments that no run took, and what was wrong with both."""
    fragments = [part.journal for part in parts if part.journal.fragment]
    known = {turn.run_id for turn in whole}
    found: list[Turn] = []
    issues: list[Issue] = []
    for part in _last_of_each(parts):
        turn = part.journal.turn
        if turn.run_id in known:
            continue
        issues += part.journal.issues
        told = spans_of([*whole, *found])
        run = run_turns(Path(path), part.journal, [one.turn for one in fragments], told)
        if run is not None:
            found += run.turns
            issues += [issue for _, issue in run.issues]
            fragments = [one for one in fragments if one.turn.trace_id != turn.trace_id]
        elif turn.turn_source != "run" or turn.spans:  # else its run was killed after its turns were written
            found.append(finished_record(part.journal, ()))
    return found, fragments, issues


def _last_of_each(parts: Iterable[Part]) -> Iterable[Part]:
    """The journals of turns, one a turn."""
    return {part.journal.turn.run_id: part for part in parts if not part.journal.fragment}.values()


def _without_copies(blocks: Sequence[Block], told: Collection[str]) -> list[Block]:
    """The blocks without the torn ones of which a whole one, a journal or another torn one tells more.

    Args:
        blocks: as they stand in the file.
        told: the ids of the turns that are told whole.
    """
    torn = [(block.turn, block) for block in blocks if block.turn is not None and not block.complete]
    most = {turn.run_id: block for turn, block in sorted(torn, key=lambda one: len(one[0].spans))}
    left_out = {id(block) for turn, block in torn if turn.run_id in told or most[turn.run_id] is not block}
    return [block for block in blocks if id(block) not in left_out]


def _joined(turns: list[Turn], fragments: Sequence[Journal]) -> list[Turn]:
    """``turns`` with the fragments of their traces; fragments of no known turn are a turn of their own."""
    by_trace: dict[str, list[Journal]] = {}
    for one in fragments:
        by_trace.setdefault(one.turn.trace_id, []).append(one)
    joined = [
        merge_fragments(turn, [one.turn for one in by_trace.get(turn.trace_id, ())]) if by_trace else turn
        for turn in turns
    ]
    known = {turn.trace_id for turn in turns}
    apart = [rootless_records(found) for trace_id, found in by_trace.items() if trace_id not in known]
    return joined + [turn for found in apart for turn in found]
