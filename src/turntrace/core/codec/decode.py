"""Lines of a trace file to turns, in one pass with the memory of one block.

A file is a sequence of blocks, one for each turn. Nothing here raises for what a line holds: what is
wrong is an issue with its line and byte offset, and the verdict on the block follows from the issues.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, Literal

from turntrace.core.attribution import attributed
from turntrace.core.codec.checks import (
    check_exclusive,
    check_header,
    check_parents,
    check_places,
    expected_numbers,
    zero_numbers,
)
from turntrace.core.codec.facts import Facts
from turntrace.core.codec.fields import Fields
from turntrace.core.codec.headers import is_block_header, read_header
from turntrace.core.codec.issues import IssueLog
from turntrace.core.codec.records import MAX_LINE_BYTES, Record, read_records
from turntrace.core.codec.spans import SpanLine, Unplaced, read_span_line
from turntrace.core.containment import contain
from turntrace.core.model import Issue, Span, Turn, Warn
from turntrace.core.results import Attribution
from turntrace.errors import ContractError

__all__ = ["Block", "Verdict", "read_blocks", "read_strict", "verdict_on"]

Verdict = Literal["accept", "accept_drop", "reject"]
"""``accept_drop``: the turn is there, and a line of it was lost."""

_DERIVED: Final = frozenset({"gap"})  # recomputed, so nothing is read from them


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One turn of a file and what is wrong with its lines.

    ``turn`` and ``attribution`` are None when nothing usable was left. ``complete`` is False for a torn
    block: lines are missing, and a journal of the same turn is the better source. ``unplaced`` are spans
    whose place in the window is unknown; they are not among the turn's. ``first_line`` is 1-based, 0 for
    an empty input. ``issues_omitted`` counts the issues beyond those that are kept.
    """

    turn: Turn | None
    attribution: Attribution | None
    verdict: Verdict
    issues: tuple[Issue, ...] = ()
    issues_omitted: int = 0
    complete: bool = True
    dropped_lines: int = 0
    unplaced: tuple[Unplaced, ...] = ()
    first_line: int = 0
    path: str = ""


def read_blocks(
    lines: Iterable[bytes], *, strict: bool, path: str = "", max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[Block]:
    r"""The blocks of raw ``lines``, each line with its LF (as a binary file gives them).

    Strict and lenient reading see the same issues; strict rejects a block with any error, lenient only
    one of which nothing usable is left.

    >>> header = b'{"type":"trace","name":"run","run_id":"r1"}\n'
    >>> [block] = read_blocks([header, b'{"type":"counter","name":"tool_calls","value":2}\n'], strict=True)
    >>> block.verdict, block.turn.run_id, block.turn.counters
    ('accept', 'r1', {'tool_calls': 2})
    """
    block: _BlockReader | None = None
    headless = False
    for record in read_records(lines, max_line_bytes):
        values = record.fields or {}
        is_header = values.get("type") == "trace"
        if is_header and (is_block_header(values) or not headless):
            if block is not None:
                yield block.close(strict=strict, path=path)
            block = _BlockReader(record, values, again=block is not None)
            headless = False
        elif block is not None:
            block.read(record)
        elif not headless:
            headless = True
            message = "the first line that is not blank is no header"
            yield _nothing("no_header", message, record.line, record.offset, path)
    if block is not None:
        yield block.close(strict=strict, path=path)
    elif not headless:
        yield _nothing("empty", "the input has no lines", 0, 0, path)


def read_strict(lines: Iterable[bytes], *, path: str = "") -> Iterator[Block]:
    """The blocks of ``lines`` as long as they are without errors.

    Raises:
        ContractError: at the first block with an issue of severity error, for the first such issue.
    """
    for block in read_blocks(lines, strict=True, path=path):
        for issue in block.issues:
            if issue.severity == "error":
                raise ContractError(
                    issue.code, issue.message, path=path, line=issue.line, offset=issue.offset
                )
        yield block


def verdict_on(blocks: Iterable[Block], *, strict: bool) -> Verdict:
    """The verdict on a file: strict asks that every block is accepted, lenient that one is."""
    verdicts = [block.verdict for block in blocks]
    if all(verdict == "reject" for verdict in verdicts) or (strict and "reject" in verdicts):
        return "reject"
    return "accept" if set(verdicts) == {"accept"} else "accept_drop"


def _nothing(code: str, message: str, line: int, offset: int, path: str) -> Block:
    issue = Issue(code=code, message=message, line=line or None, offset=offset)
    return Block(
        turn=None,
        attribution=None,
        verdict="reject",
        issues=(issue,),
        complete=False,
        first_line=line,
        path=path,
    )


class _BlockReader:
    """A block while its lines come in."""

    __slots__ = (
        "_dropped",
        "_facts",
        "_header",
        "_known",
        "_lines",
        "_log",
        "_own",
        "_readable",
        "_unplaced",
        "_unreadable",
    )

    def __init__(self, record: Record, values: dict[str, Any], *, again: bool) -> None:
        self._log = IssueLog()
        self._facts = Facts(running=False)
        self._lines: list[SpanLine] = []
        self._unplaced: list[Unplaced] = []
        self._dropped = 0
        self._readable = 0
        self._unreadable = 0
        self._own = is_block_header(values)
        self._header = Fields(record, values, self._log)
        self._report(record)
        if again and not self._own:
            self._header.issue("duplicate_header", "a second header; it is read as another turn")
        self._known = read_header(self._header)

    def _report(self, record: Record) -> None:
        for code, message in record.problems:
            self._log.add(code, message, record.line, record.offset)

    def read(self, record: Record) -> None:
        """Take a line after the header."""
        self._report(record)
        if record.fields is None:
            self._unreadable += 1
            return
        self._readable += 1
        fields = Fields(record, record.fields, self._log)
        kind = record.fields.get("type")
        if kind == "span" or kind == "structure":  # noqa: PLR1714 - the type may be unhashable
            self._span(fields, phase=kind == "span")
        elif not isinstance(kind, str) or not (kind in _DERIVED or self._facts.read(kind, fields)):
            fields.issue("unknown_type", "the type of the line is unknown; the line is skipped")

    def _span(self, fields: Fields, *, phase: bool) -> None:
        line = read_span_line(fields, phase=phase)
        if isinstance(line, SpanLine):
            self._lines.append(line)
        elif line is not None:
            self._unplaced.append(line)
        else:
            self._dropped += 1

    def close(self, *, strict: bool, path: str) -> Block:
        """The block, now that all its lines are known."""
        torn = self._torn()
        lines = _with_ids(self._lines, self._log)
        turn = self._turn(lines, torn=torn)
        attribution = attributed(turn)
        dropped = self._dropped + self._facts.dropped + self._unreadable
        self._check(turn, lines, attribution, torn=torn)
        usable = bool(lines or self._unplaced or self._facts.counters or self._facts.events)
        if not usable:
            self._header.issue("no_events", "a header, and no span, counter or event")
        rejected = not usable or (strict and self._log.errors > 0)
        return Block(
            turn=turn if usable else None,
            attribution=attribution if usable else None,
            verdict="reject" if rejected else "accept_drop" if dropped or torn else "accept",
            issues=self._log.sorted(),
            issues_omitted=self._log.omitted,
            complete=not torn,
            dropped_lines=dropped,
            unplaced=tuple(self._unplaced),
            first_line=self._header.line,
            path=path,
        )

    def _torn(self) -> bool:
        declared = self._header.integer("lines") if self._own else None
        if declared is None:
            return self._unreadable > 0
        if self._readable < declared:
            self._header.issue("block_torn", f"{self._readable} of the block's {declared} lines are there")
        elif self._readable > declared:
            self._header.issue("header_mismatch", f"lines is {declared}; {self._readable} lines follow")
        return self._readable < declared

    def _turn(self, lines: Sequence[SpanLine], *, torn: bool) -> Turn:
        facts = self._facts
        turn = Turn(
            **self._known,
            spans=tuple(line.span for line in lines),
            counters=facts.counters,
            usage=tuple(facts.usage),
            marks=tuple(facts.marks),
            events=tuple(facts.events),
            warnings=(*facts.warnings, *map(_placeless, self._unplaced)),
        )
        return replace(turn, status="interrupted") if torn and self._own else turn

    def _check(self, turn: Turn, lines: Sequence[SpanLine], attribution: Attribution, *, torn: bool) -> None:
        whole = not torn and not self._dropped and not self._unreadable
        check_places(lines, turn, self._log)
        by_name = not self._own and all(line.span.parent_source == "containment" for line in lines)
        check_parents(lines, self._unplaced, self._log, by_name=by_name, whole=whole)
        for warn in attribution.warnings:
            if warn.code == "cycle":
                self._header.issue("cycle", warn.message)
        if not whole or self._window_is_damaged(turn):
            return  # what was lost may be what the header counted
        if not self._own:
            check_header(self._header, zero_numbers(turn, lines, self._unplaced), slack_us=len(lines))
            return
        check_exclusive(lines, attribution, self._log)
        if not self._facts.dropped:
            check_header(self._header, expected_numbers(turn, attribution), slack_us=0)

    def _window_is_damaged(self, turn: Turn) -> bool:
        """Whether the header states a bound of the window that could not be read."""
        stated = self._header.values
        return (turn.started_ns is None and bool(stated.get("started_at"))) or (
            turn.completed_ns is None and bool(stated.get("completed_at"))
        )


def _placeless(part: Unplaced) -> Warn:
    length = f"{part.duration_ns / 1e6:.3f} ms"
    return Warn(
        code="span_interval_missing", message=f"{part.name}: {length} at an unknown time, not counted"
    )


def _with_ids(lines: Sequence[SpanLine], log: IssueLog) -> list[SpanLine]:
    """The lines with ids for spans that have none; in a file without any, containment gives the parents."""
    used = {line.span.span_id for line in lines} - {""}
    free = (span_id for number in count(1) if (span_id := f"{number:016x}") not in used)
    spans: list[Span] = []
    for line in lines:
        if used and not line.span.span_id:
            log.add("id_invalid", "the span has no id", line.line, line.offset)
        spans.append(line.span if line.span.span_id else replace(line.span, span_id=next(free)))
    if not used:
        spans = contain(spans)
    return [line._replace(span=span) for line, span in zip(lines, spans, strict=True)]
