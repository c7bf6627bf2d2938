"""Checks of a block against itself: what was written beside what follows from the spans."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from turntrace.core.codec.encode import measured_fields, usage_totals
from turntrace.core.codec.fields import Fields
from turntrace.core.codec.issues import IssueLog
from turntrace.core.codec.spans import TOLERANCE_NS, SpanLine, Unplaced
from turntrace.core.intervals import union_ns
from turntrace.core.model import Turn
from turntrace.core.results import Attribution

__all__ = [
    "Expected",
    "check_exclusive",
    "check_header",
    "check_parents",
    "check_places",
    "expected_numbers",
    "zero_numbers",
]

Expected = Mapping[str, tuple[float | None, ...]]
"""The numbers that a header may hold, by key; any of several is right."""

_RATIO_TOLERANCE: Final = 0.0015
_MS_TOLERANCE: Final = TOLERANCE_NS / 1e6 + 1e-9


def expected_numbers(turn: Turn, attribution: Attribution) -> Expected:
    """The numbers of a header that turntrace wrote."""
    totals = usage_totals(turn)
    numbers = measured_fields(attribution) | {
        "usage_complete": totals.complete,
        "usage_reports": totals.reports,
        "usage_missing": totals.missing,
    }
    return {key: (value,) for key, value in numbers.items()}


def zero_numbers(turn: Turn, lines: Sequence[SpanLine], unplaced: Iterable[Unplaced]) -> Expected:
    """The numbers of a header that zero wrote.

    Attributed is a sum over the spans without a parent's name, which its writer has derived in an order
    that the file no longer has; coverage is a union that is not cut to the window. The first revision
    wrote their quotient with the wall as ``attribution``.
    """
    if turn.started_ns is None or turn.completed_ns is None:
        return {}
    wall_ns = turn.completed_ns - turn.started_ns
    attributed_ns = sum(line.duration_ns for line in lines if line.parent is None)
    attributed_ns += sum(part.duration_ns for part in unplaced if part.parent is None)
    covered_ns = union_ns((line.span.start_ns, line.span.end_ns) for line in lines)
    coverage = min(1.0, covered_ns / wall_ns) if wall_ns else 0.0
    return {
        "wall_ms": (wall_ns / 1e6,),
        "attributed_ms": (attributed_ns / 1e6,),
        "coverage": (coverage,),
        "attribution": (coverage, attributed_ns / wall_ns if wall_ns else 0.0),
    }


def check_header(header: Fields, expected: Expected, *, slack_us: int) -> None:
    """Report each number of the header that is off by more than its rounding.

    ``slack_us``: what a sum over the lengths of spans may have lost when each was cut to microseconds.
    """
    for key, values in expected.items():
        if key not in header.values:
            continue
        written = header.values[key]
        if written is not None and not isinstance(written, int | float):
            header.wrong(key, "a number")
            continue
        tolerance = _MS_TOLERANCE + slack_us / 1000 if key.endswith("_ms") else _RATIO_TOLERANCE
        if not any(_agrees(written, value, tolerance) for value in values):
            header.issue("header_mismatch", f"{key} is {written}; the lines give {values[0]}")


def _agrees(written: float | None, value: float | None, tolerance: float) -> bool:
    if written is None or value is None:
        return written is value
    return abs(written - value) <= tolerance


def check_exclusive(lines: Iterable[SpanLine], attribution: Attribution, log: IssueLog) -> None:
    """Report each written exclusive time that differs from the one that follows from the spans."""
    computed = {times.span.span_id: times for times in attribution.spans}
    for line in lines:
        times = computed[line.span.span_id]
        if line.exclusive_ns is None or times.span is not line.span:  # the other of two with one id
            continue
        off_ns = line.exclusive_ns - times.exclusive_ns
        if abs(off_ns) > TOLERANCE_NS:
            message = f"exclusive_ms is off by {off_ns} ns"
            log.add("span_exclusive_invalid", message, line.line, line.offset)


def check_places(lines: Iterable[SpanLine], turn: Turn, log: IssueLog) -> None:
    """Report spans that reach out of the window, and ids that come twice."""
    seen: set[str] = set()
    for line in lines:
        if _outside(line, turn):
            log.add("span_outside_window", "the span reaches out of the turn", line.line, line.offset)
        if line.span.span_id in seen:
            log.add("duplicate_span", f"span_id {line.span.span_id} comes twice", line.line, line.offset)
        seen.add(line.span.span_id)


def _outside(line: SpanLine, turn: Turn) -> bool:
    if turn.started_ns is None or turn.completed_ns is None:
        return False
    return line.span.start_ns < turn.started_ns or line.span.end_ns > turn.completed_ns


def check_parents(
    lines: Sequence[SpanLine], unplaced: Sequence[Unplaced], log: IssueLog, *, by_name: bool, whole: bool
) -> None:
    """Report parents' names that no span has, and, where names are all there is, ones that several have.

    In a block that is not ``whole`` the line of the parent may be the one that was lost.
    """
    counts = Counter((*(line.span.phase for line in lines), *(part.name for part in unplaced)))
    ambiguous: set[str] = set()
    parts: list[SpanLine | Unplaced] = [*lines, *unplaced]
    for part in parts:
        if part.parent is None:
            continue
        count = counts[part.parent]
        if not count and whole:
            log.add("parent_unknown", f"no span is named {part.parent}", part.line, part.offset)
        elif count > 1 and by_name and part.parent not in ambiguous:
            ambiguous.add(part.parent)
            message = f"{count} spans are named {part.parent}; which one is the parent is guessed"
            log.add("parent_ambiguous", message, part.line, part.offset)
