"""The few words beside a row: what explains its figure best."""

from turntrace.core.contract import PHASES
from turntrace.core.results import PhaseTotals
from turntrace.report.case import Case, name_of
from turntrace.report.evidence import waits
from turntrace.report.rounding import Unit, quotient
from turntrace.report.strings import Data, Words

__all__ = ["phase_note", "unattributed_note"]

_NS_A_SECOND = 1_000_000_000


def phase_note(case: Case, totals: PhaseTotals) -> Words:
    """The note of a phase: tokens a second, overlap, the human, the reasons of a wait."""
    if totals.name == "generation":
        return _rate(case, totals)
    if totals.name in {"retry_wait", "reconnect_wait"}:
        found = waits(case, totals.name)
        return (*found.why(), " " if found.reasons and found.rounds else "", found.where())
    if totals.name in PHASES and PHASES[totals.name].kind == "human":
        return ("human",)
    concurrent = case.attribution.max_concurrency.get(totals.name, 1)
    return (f"up to {concurrent} at once",) if concurrent > 1 else ()


def _rate(case: Case, totals: PhaseTotals) -> Words:
    output = case.usage.output_tokens
    if output is None or not totals.busy_ns:
        return ()
    return (f"{quotient(output * _NS_A_SECOND, totals.busy_ns)} tokens/s",)


def unattributed_note(case: Case, unit: Unit) -> Words:
    """Where the unattributed time lies: in the structure that holds most of it, or after which span."""
    attribution = case.attribution
    structure = max(attribution.unattributed, key=lambda part: part.ns, default=None)
    gap = max(attribution.gaps, key=lambda gap: gap.end_ns - gap.start_ns, default=None)
    gap_ns = gap.end_ns - gap.start_ns if gap is not None else 0
    if structure is not None and structure.ns >= gap_ns:
        return (f"{unit.of(structure.ns)} in ", Data(structure.name))
    if gap is None:
        return ()
    for word, span_id in (("after", gap.after), ("before", gap.before)):
        if span_id is not None and span_id in case.by_id:
            return (f"{unit.of(gap_ns)} {word} ", *name_of(case.by_id[span_id]))
    return ()
