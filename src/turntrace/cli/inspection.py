"""What ``check`` finds in one file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO, BinaryIO

from turntrace.core.codec.compat import read_compat
from turntrace.core.codec.decode import Block, read_blocks, verdict_on
from turntrace.core.codec.keys import event_keys, missing_keys
from turntrace.core.model import Issue
from turntrace.core.turns import assemble
from turntrace.errors import TraceReadError
from turntrace.files.documents import MAX_DOCUMENT_BYTES
from turntrace.files.foreign import is_text, read_binary, read_json
from turntrace.files.raw_spans import RawSpans
from turntrace.files.read import NO_FORMAT
from turntrace.files.source import bounded_lines

__all__ = ["Demands", "Found", "Mode", "inspect_file", "inspect_foreign"]


class Mode(StrEnum):
    """How strictly a file is read; ``compat`` is zero's own reader."""

    STRICT = "strict"
    LENIENT = "lenient"
    COMPAT = "compat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What a file has to fulfil."""

    mode: Mode = Mode.STRICT
    required: tuple[str, ...] = ()
    min_coverage: float | None = None


@dataclass(slots=True, kw_only=True)
class Found:
    """What was found in one file so far; ``ok`` is the answer."""

    path: str
    ok: bool = True
    turns: int = 0
    keys: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    issues_omitted: int = 0

    def cut(self, lost: Iterable[str]) -> None:
        """Note that compressed data ended early."""
        for what in lost:
            self.ok = False
            self.issues.append(Issue(code="truncated_tail", message=what))


def inspect_foreign(path: str, file: BinaryIO, head: bytes, lost: Iterable[str]) -> Found:
    """What is damaged in OTLP or Jaeger's JSON; a format that nobody knows is an error too."""
    spans = RawSpans()
    if is_text(head):
        read_json(bounded_lines(file, MAX_DOCUMENT_BYTES), spans)
    else:
        read_binary(file, head, spans)
    found = Found(path=path, turns=len(assemble(spans.spans, events=spans.events)), issues=spans.issues)
    found.cut(lost)
    if not spans.spans and not spans.events:
        found.issues.append(Issue(code="no_header", message=NO_FORMAT))
    found.ok = not any(issue.severity == "error" for issue in found.issues)
    return found


def inspect_file(path: str, file: IO[bytes], demands: Demands) -> Found:
    """Check ``file``, which can be read from its start more than once."""
    found = Found(path=path)
    if demands.mode is Mode.COMPAT:
        _inspect_compat(found, file, demands.min_coverage)
    else:
        _inspect_blocks(found, file, demands)
    file.seek(0)
    found.keys = event_keys(file)
    if demands.required:
        file.seek(0)
        found.missing = missing_keys(demands.required, file)
    found.ok = found.ok and not found.missing
    return found


def _inspect_compat(found: Found, file: IO[bytes], min_coverage: float | None) -> None:
    try:
        trace = read_compat(file.read())
    except TraceReadError as error:
        found.ok = False
        found.issues.append(
            Issue(code="unreadable", message=str(error), line=error.line, offset=error.offset)
        )
    else:
        found.turns = 1
        _demand_coverage(found, trace.coverage, min_coverage, 1)


def _inspect_blocks(found: Found, file: IO[bytes], demands: Demands) -> None:
    strict = demands.mode is Mode.STRICT
    blocks = _noted(found, read_blocks(file, strict=strict, path=found.path), demands.min_coverage)
    found.ok = verdict_on(blocks, strict=strict) != "reject" and found.ok


def _noted(found: Found, blocks: Iterator[Block], min_coverage: float | None) -> Iterator[Block]:
    """The blocks, each noted as it passes."""
    for block in blocks:
        found.turns += block.turn is not None
        found.issues.extend(block.issues)
        found.issues_omitted += block.issues_omitted
        if block.attribution is not None:
            _demand_coverage(found, block.attribution.coverage, min_coverage, block.first_line)
        yield block


def _demand_coverage(found: Found, coverage: float | None, least: float | None, line: int) -> None:
    """Note a turn that fails the coverage gate; a turn without an end has no coverage to fail it."""
    if least is not None and coverage is not None and coverage < least:
        message = f"{coverage:.3f} of the turn is accounted for, {least:g} was asked for"
        found.issues.append(Issue(code="coverage_low", message=message, line=line))
        found.ok = False
