"""Turns from paths: our file with the journals beside it, or what other tools wrote; recognised by content."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from turntrace.core.model import Issue, RawSpan, Turn
from turntrace.core.turns import assemble
from turntrace.errors import ContractError, TraceReadError
from turntrace.files.divided import Divided
from turntrace.files.documents import MAX_DOCUMENT_BYTES
from turntrace.files.foreign import is_foreign, is_own, is_record, is_text, read_binary, read_json
from turntrace.files.fragments import Part, read_parts
from turntrace.files.raw_spans import RawSpans
from turntrace.files.read_result import ReadResult
from turntrace.files.source import bounded_lines, plain
from turntrace.files.trace import read_trace

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
            own, issues = read_trace(divided.others(), path, parts)
    else:
        divided = Divided(bounded_lines(source, MAX_DOCUMENT_BYTES), is_record)
        own, issues = read_trace(divided.mine(), path, parts)
        read_json(divided.others(), spans)
    if not own and not spans.spans and not spans.events and not is_text(head):
        raise TraceReadError(NO_FORMAT, path=path)
    turns = assemble(
        spans.spans, rule=how.rule, events=spans.events, points=spans.points, whole_run=how.whole_run
    )
    return own + turns, issues + spans.issues


def _raise_first(path: str, issues: Iterable[Issue]) -> None:
    for issue in issues:
        if issue.severity == "error":
            raise ContractError(issue.code, issue.message, path=path, line=issue.line, offset=issue.offset)
