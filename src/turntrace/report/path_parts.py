"""What of the critical path lies in given spans and all that is below them."""

from collections.abc import Collection, Mapping, Sequence

from turntrace.core.results import PathSection
from turntrace.report.case import Case

__all__ = ["held_by", "length_ns"]


def held_by(case: Case, span_ids: Collection[str]) -> Mapping[str, Sequence[PathSection]]:
    """The sections of the critical path inside each of the spans: its own, and those of its descendants.

    A section that lies in several of them, one in the other, is the innermost one's. Each parent link is
    followed once.
    """
    wanted = set(span_ids)
    owners: dict[str, str | None] = {}
    held: dict[str, list[PathSection]] = {span_id: [] for span_id in wanted}
    for section in case.attribution.critical_path:
        owner = _owner(case, section.span_id, wanted, owners)
        if owner is not None:
            held[owner].append(section)
    return held


def _owner(
    case: Case, span_id: str | None, wanted: Collection[str], owners: dict[str, str | None]
) -> str | None:
    """The innermost of the wanted spans that ``span_id`` is or lies in."""
    chain: list[str] = []
    at = span_id
    found: str | None = None
    while at is not None and at in case.by_id:
        if at in owners:
            found = owners[at]
            break
        owners[at] = None  # an end for the walk, should the parents form a ring
        chain.append(at)
        if at in wanted:
            found = at
            break
        at = case.by_id[at].parent_id
    owners.update(dict.fromkeys(chain, found))
    return found


def length_ns(sections: Sequence[PathSection], start_ns: int | None = None, end_ns: int | None = None) -> int:
    """The length of the sections, of what lies between two moments where those are given."""
    total = 0
    for section in sections:
        low = section.start_ns if start_ns is None else max(section.start_ns, start_ns)
        high = section.end_ns if end_ns is None else min(section.end_ns, end_ns)
        total += max(high - low, 0)
    return total
