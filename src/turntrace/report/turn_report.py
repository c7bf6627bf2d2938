"""The report of a turn as an object: figures to compute with, a table to print, HTML in a notebook."""

from collections.abc import Mapping
from typing import Self

from turntrace.core.model import Turn
from turntrace.core.results import Attribution, PhaseTotals, SpanTimes
from turntrace.core.usage import UsageTotals
from turntrace.report.case import Case, examine, turn_name
from turntrace.report.json_report import json_report
from turntrace.report.page.static_table import static_html
from turntrace.report.strings import printable
from turntrace.report.text import text
from turntrace.report.view import turn_view

__all__ = ["TurnReport"]


class TurnReport:
    """Where one turn's wall time went. All times are integer nanoseconds; None is unknown.

    ``print(report)`` is the table of the command line; alone in a notebook cell it is the same as a table of HTML.
    """

    __slots__ = ("_case",)

    def __init__(self, turn: Turn, attribution: Attribution) -> None:
        self._case = examine(turn, attribution)

    @classmethod
    def of(cls, turn: Turn) -> Self:
        """The report of a turn whose times are not attributed yet."""
        return cls(turn, examine(turn).attribution)

    @property
    def case(self) -> Case:
        """The record that the renderers read."""
        return self._case

    @property
    def turn(self) -> Turn:
        """The turn as it was recorded."""
        return self._case.turn

    @property
    def attribution(self) -> Attribution:
        """Everything that was computed from the turn's spans."""
        return self._case.attribution

    @property
    def wall_ns(self) -> int | None:
        """The length of the turn."""
        return self.attribution.wall_ns

    @property
    def active_ns(self) -> int | None:
        """The wall without the time in which only a person was waited for."""
        return self.attribution.active_ns

    @property
    def attributed_ns(self) -> int | None:
        """The part of the wall that phases cover."""
        return self.attribution.attributed_ns

    @property
    def unattributed_ns(self) -> int | None:
        """The part of the wall that no phase covers."""
        return self.attribution.unattributed_ns

    @property
    def coverage(self) -> float | None:
        """Attributed / wall."""
        return self.attribution.coverage

    @property
    def phases(self) -> Mapping[str, PhaseTotals]:
        """The sums of each phase by its name, the largest wall share first."""
        return {totals.name: totals for totals in self.attribution.phases}

    @property
    def spans(self) -> tuple[SpanTimes, ...]:
        """Every span with its times, in order of start."""
        return self.attribution.spans

    @property
    def usage(self) -> UsageTotals:
        """The turn's tokens; a total is None unless every model call reported it."""
        return self._case.usage

    def json(self) -> bytes:
        """The turn as a JSON report, schema 1."""
        return b"".join(json_report([self._case]))

    def __str__(self) -> str:
        return text(turn_view(self._case)).rstrip("\n")

    def __repr__(self) -> str:
        wall = "no end" if self.wall_ns is None else f"{self.wall_ns} ns"
        return f"<TurnReport {printable(turn_name(self.turn))!r}: {wall}, {len(self.spans)} spans>"

    def _repr_html_(self) -> str:
        return static_html(turn_view(self._case))
