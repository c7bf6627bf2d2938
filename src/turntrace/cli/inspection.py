"""What ``check`` finds in one file."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO

from turntrace.core.codec.compat import read_compat
from turntrace.core.codec.decode import Block, read_blocks, verdict_on
from turntrace.core.codec.keys import event_keys, missing_keys
from turntrace.core.model import Issue
from turntrace.errors import TraceReadError

__all__ = ["Demands", "Found", "Mode", "inspect_file"]


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
