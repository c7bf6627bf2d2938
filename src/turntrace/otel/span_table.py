"""Ended spans in 40 bytes each: what is kept of a turn that has no file."""

import struct
from collections.abc import Iterator
from typing import Final

from turntrace.core.model import Outcome, Span, SpanStatus
from turntrace.otel.live_turn import OpenSpan

__all__ = ["MAX_SPANS", "SpanTable"]

MAX_SPANS: Final = 1_000_000
"""Spans of one turn that are kept; beyond it the turn has no record, only live values."""

_ROW: Final = struct.Struct("<QQqqHHxxxx")
_MAX_FACTS: Final = 0xFFFF
_NAMELESS: Final = 1_024
"""More than there are combinations of phase, status, outcome and inferred or not."""

_Facts = tuple[str, str | None, str | None, str | None, SpanStatus, Outcome, bool]
"""Name, phase, tool, model, status, outcome, and whether the parent was inferred: what spans have in common."""


class SpanTable:
    """Packed rows and one table of what spans have in common.

    Names beyond 65,535 distinct combinations are lost, spans are not.
    """

    __slots__ = ("_facts", "_index", "_rows", "agents", "count")

    def __init__(self) -> None:
        self._rows = bytearray()
        self._facts: list[_Facts] = []
        self._index: dict[_Facts, int] = {}
        self.agents: dict[int, tuple[str, str]] = {}
        self.count = 0

    def add(self, opened: OpenSpan) -> None:
        """Keep an ended span; beyond MAX_SPANS it is only counted."""
        self.count += 1
        if self.count > MAX_SPANS:
            self._rows.clear()
            return
        if opened.agent is not None and opened.run_id is not None:
            self.agents[opened.span_id] = (opened.agent, opened.run_id)
        facts = (
            opened.name,
            opened.phase,
            opened.tool,
            opened.model,
            opened.status,
            opened.outcome,
            opened.inferred,
        )
        index = self._index.get(facts)
        if index is None:
            index = self._known(facts)
        round_number = opened.round or 0
        self._rows += _ROW.pack(
            opened.span_id,
            opened.parent_id or 0,
            opened.start_ns,
            opened.end_ns,
            index,
            round_number if round_number < _MAX_FACTS else _MAX_FACTS,  # noqa: FURB136 -- min() costs a call
        )

    def _known(self, facts: _Facts) -> int:
        """The number of facts that are new; of a table that is full, of those without names."""
        if len(self._facts) >= _MAX_FACTS - _NAMELESS:
            _, phase, _, _, status, outcome, inferred = facts
            facts = ("", phase, None, None, status, outcome, inferred)
        index = self._index.setdefault(facts, len(self._facts))
        if index == len(self._facts):
            self._facts.append(facts)
        return index

    def spans(self) -> Iterator[Span]:
        """The spans that were kept, in order of ending."""
        for row in _ROW.iter_unpack(bytes(self._rows)):
            yield self._span(row)

    def _span(self, row: tuple[int, ...]) -> Span:
        span_id, parent_id, start_ns, end_ns, index, round_number = row
        name, phase, tool, model, status, outcome, inferred = self._facts[index]
        agent, run_id = self.agents.get(span_id, (None, None))
        return Span(
            span_id=f"{span_id:016x}",
            parent_id=f"{parent_id:016x}" if parent_id else None,
            name=name,
            phase=phase,
            start_ns=start_ns,
            end_ns=end_ns,
            parent_source="inferred" if inferred else "otel",
            status=status,
            outcome=outcome,
            round=round_number or None,
            tool=tool,
            model=model,
            agent=agent,
            run_id=run_id,
        )
