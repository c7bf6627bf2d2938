"""The phases of every turn as tab-separated exact nanoseconds, for spreadsheets and scripts."""

from collections.abc import Iterable, Iterator

from turntrace.core.results import Totals
from turntrace.report.case import Case
from turntrace.report.strings import printable

__all__ = ["cell", "tsv"]

_COLUMNS = (
    "run_id",
    "phase",
    "name",
    "count",
    "wall_share_ns",
    "critical_ns",
    "busy_ns",
    "inclusive_ns",
    "exclusive_p50_ns",
    "exclusive_p95_ns",
)
_FORMULA_STARTS = ("=", "+", "-", "@")


def tsv(cases: Iterable[Case]) -> Iterator[str]:
    """Lines: a header, then for each turn its phases, their tools or models, and ``unattributed``.

    Unknown is an empty cell. The rows with an empty name add up to the wall of their turn.
    """
    yield "\t".join(_COLUMNS) + "\n"
    for case in cases:
        run_id = cell(case.turn.run_id)
        for phase in case.attribution.phases:
            yield _line(run_id, cell(phase.name), "", phase)
            for part in phase.by:
                yield _line(run_id, cell(phase.name), cell(part.name), part)
        if case.attribution.unattributed_ns is not None:
            blanks = [""] * (len(_COLUMNS) - 5)
            yield (
                "\t".join((run_id, "unattributed", "", "", str(case.attribution.unattributed_ns), *blanks))
                + "\n"
            )


def _line(run_id: str, phase: str, name: str, totals: Totals) -> str:
    figures = (
        totals.count,
        totals.wall_share_ns,
        totals.critical_ns,
        totals.busy_ns,
        totals.inclusive_ns,
        totals.exclusive_p50_ns,
        totals.exclusive_p95_ns,
    )
    cells = ("" if figure is None else str(figure) for figure in figures)
    return "\t".join((run_id, phase, name, *cells)) + "\n"


def cell(text: str) -> str:
    """One cell: no tab, no line end, and nothing that a spreadsheet would run as a formula."""
    if text.startswith(_FORMULA_STARTS):
        return f"\\x{ord(text[0]):02x}{printable(text[1:])}"
    return printable(text)
