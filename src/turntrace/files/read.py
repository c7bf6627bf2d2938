"""Turns from paths: our file with the journals beside it, or what other tools wrote; recognised by content."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from turntrace.core.codec.decode import read_blocks
from turntrace.core.codec.fragments import merge_fragments
from turntrace.core.model import Issue, RawSpan, Turn
from turntrace.core.nested import nested_turns
from turntrace.core.turns import assemble
from turntrace.errors import ContractError, TraceReadError
from turntrace.files.divided import Divided
from turntrace.files.documents import MAX_DOCUMENT_BYTES
from turntrace.files.foreign import is_foreign, is_own, is_record, is_text, read_binary, read_json
from turntrace.files.fragments import Part, read_parts
from turntrace.files.journal_record import finished_record
from turntrace.files.raw_spans import RawSpans
from turntrace.files.read_result import ReadResult
from turntrace.files.run_turns import run_turns, spans_of
from turntrace.files.source import bounded_lines, plain

__all__ = ["NO_FORMAT", "STDIN", "ReadResult", "read_paths"]

STDIN: Final = "-"
NO_FORMAT: Final = (
    "no trace is found in it; turntrace reads its own NDJSON, OTLP as JSON or protobuf, and Jaeger's JSON, "
    "each as it is or compressed by gzip or zstd"
)

Rule = Callable[[RawSpan], bool]


class _How(NamedTuple):
    """How foreign spans become turns."""

    rule: Rule | None
    whole_run: bool


def read_paths(
    paths: Sequence[str], *, strict: bool = False, rule: Rule | None = None, whole_run: bool = False
) -> ReadResult:
    """The turns of ``paths`` (``-`` is standard input), in order.

    Args:
        paths: files to read; the journals beside a file are read before it.
        strict: whether the first issue of severity error is raised.
        rule: which span of a foreign trace is a turn, instead of what its dialect says.
        whole_run: each foreign trace is of one process and its children: roots are joined to one turn.

    Raises:
        TraceReadError: when a path cannot be opened or holds nothing that can be read.
        ContractError: with ``strict``.
    """
    result = ReadResult()
    for path in paths:
        turns, issues = _read(path, _How(rule, whole_run))
        if strict:
            _raise_first(path, issues)
        result.turns.extend(turns)
        result.issues.extend((path, issue) for issue in issues)
    return result


def _read(path: str, how: _How) -> tuple[list[Turn], list[Issue]]:
    if path == STDIN:
        return _read_stream(sys.stdin.buffer, path, [], how)
    try:
        # journals first: a turn that closes meanwhile stands in both, one that closed before in the file
        parts = read_parts(Path(path))
        with Path(path).open("rb") as file:
            return _read_stream(file, path, parts, how)
    except OSError as error:
        raise TraceReadError(error.strerror or str(error), path=path) from error


def _read_stream(file: BinaryIO, path: str, parts: list[Part], how: _How) -> tuple[list[Turn], list[Issue]]:
    spans = RawSpans()
    source, head = plain(file, lambda what: spans.issue("truncated_tail", what, None, None))
    own: list[Turn] = []
    issues: list[Issue] = []
    if not is_text(head):
        read_binary(source, head, spans)
    elif is_foreign(head):
        divided = Divided(bounded_lines(source, MAX_DOCUMENT_BYTES), is_own)
        read_json(divided.mine(), spans)
        if divided.is_mixed or parts:
            own, issues = _read_trace(divided.others(), path, parts)
    else:
        divided = Divided(bounded_lines(source, MAX_DOCUMENT_BYTES), is_record)
        own, issues = _read_trace(divided.mine(), path, parts)
        read_json(divided.others(), spans)
    if not own and not spans.spans and not spans.events and not is_text(head):
        raise TraceReadError(NO_FORMAT, path=path)
    turns = assemble(
        spans.spans, rule=how.rule, events=spans.events, points=spans.points, whole_run=how.whole_run
    )
    return own + turns, issues + spans.issues


def _read_trace(lines: Iterable[bytes], path: str, parts: list[Part]) -> tuple[list[Turn], list[Issue]]:
    found: list[Turn] = []
    issues: list[Issue] = []
    torn: list[tuple[Turn, Sequence[Issue]]] = []
    journals = {part.journal.turn.run_id: part for part in parts if not part.journal.fragment}
    for block in read_blocks(lines, strict=False, path=path):
        if block.turn is None and block.issues and block.issues[0].code == "empty" and parts:
            continue
        if block.turn is not None and not block.complete:
            torn.append((block.turn, block.issues))
            continue
        issues += block.issues
        if block.turn is not None:
            found.append(block.turn)
            journals.pop(block.turn.run_id, None)
    fragments = [part.journal.turn for part in parts if part.journal.fragment]
    for part in journals.values():
        issues += part.journal.issues
        run = run_turns(Path(path), part.journal, fragments, spans_of(found))
        if run is None:
            if (
                part.journal.turn.turn_source != "run" or part.journal.turn.spans
            ):  # else its turns are written
                found.append(finished_record(part.journal, ()))
        else:
            found += run.turns
            issues += [issue for _, issue in run.issues]
            fragments = [one for one in fragments if one.trace_id != part.journal.turn.trace_id]
    left = _told_nowhere_else(torn, found)
    found += [turn for turn, _ in left]
    issues += [issue for _, told in left for issue in told]
    turns = _joined(found, fragments)
    return [inner for turn in turns for inner in (turn, *nested_turns(turn))], issues


def _journaled(part: Part) -> list[Turn]:
    """The turn of a journal; none where its run received spans, wrote its turns and was killed then."""
    turn = part.journal.turn
    return [finished_record(part.journal, ())] if turn.turn_source != "run" or turn.spans else []


def _told_nowhere_else(
    torn: Iterable[tuple[Turn, Sequence[Issue]]], turns: Iterable[Turn]
) -> list[tuple[Turn, Sequence[Issue]]]:
    """The torn blocks that are all there is of a turn: neither its journal nor another block knows more."""
    told = {turn.run_id for turn in turns}
    most = {turn.run_id: (turn, issues) for turn, issues in sorted(torn, key=lambda one: len(one[0].spans))}
    return [block for run_id, block in most.items() if run_id not in told]


def _joined(turns: list[Turn], fragments: list[Turn]) -> list[Turn]:
    """``turns`` with the fragments of their traces; a fragment of no known turn is a turn of its own."""
    if not fragments:
        return turns
    known = {turn.trace_id for turn in turns}
    joined = [
        merge_fragments(turn, [part for part in fragments if part.trace_id == turn.trace_id])
        for turn in turns
    ]
    return joined + [part for part in fragments if part.trace_id not in known]


def _raise_first(path: str, issues: Iterable[Issue]) -> None:
    for issue in issues:
        if issue.severity == "error":
            raise ContractError(issue.code, issue.message, path=path, line=issue.line, offset=issue.offset)
