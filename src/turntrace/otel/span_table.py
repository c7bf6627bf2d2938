"""Ended spans in 48 bytes each: what is kept of a turn that has no file."""

import struct
from collections.abc import Iterator
from typing import Final

from turntrace.core.model import Outcome, Span, SpanStatus
from turntrace.otel.live_turn import OpenSpan

__all__ = ["MAX_SPANS", "SpanTable"]

MAX_SPANS: Final = 1_000_000
"""Spans of one turn that are kept; beyond it the turn has no record, only live values."""

_ROW: Final = struct.Struct("<QQqqHHHHHBBx")
_MAX_NAMES: Final = 0xFFFF
_STATUSES: Final[tuple[SpanStatus, ...]] = ("unset", "ok", "error")
_OUTCOMES: Final[tuple[Outcome, ...]] = ("ok", "error", "cancelled", "abandoned", "incomplete")
_INFERRED: Final = 0x80


class SpanTable:
    """Packed rows and one table of names; names beyond 65,535 distinct ones are lost, spans are not."""

    __slots__ = ("_index", "_names", "_rows", "agents", "count")

    def __init__(self) -> None:
        self._rows = bytearray()
        self._names: list[str | None] = [None]
        self._index: dict[str | None, int] = {None: 0}
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
        flags = _OUTCOMES.index(opened.outcome) | (_INFERRED if opened.inferred else 0)
        self._rows += _ROW.pack(
            opened.span_id,
            opened.parent_id or 0,
            opened.start_ns,
            opened.end_ns,
            self._name(opened.name),
            self._name(opened.phase),
            self._name(opened.tool),
            self._name(opened.model),
            min(opened.round or 0, _MAX_NAMES),
            _STATUSES.index(opened.status),
            flags,
        )

    def _name(self, name: str | None) -> int:
        found = self._index.get(name)
        if found is None:
            if len(self._names) > _MAX_NAMES:
                return 0
            found = self._index[name] = len(self._names)
            self._names.append(name)
        return found

    def spans(self) -> Iterator[Span]:
        """The spans that were kept, in order of ending."""
        for row in _ROW.iter_unpack(bytes(self._rows)):
            yield self._span(row)

    def _span(self, row: tuple[int, ...]) -> Span:
        span_id, parent_id, start_ns, end_ns, name, phase, tool, model, round_number, status, flags = row
        agent, run_id = self.agents.get(span_id, (None, None))
        return Span(
            span_id=f"{span_id:016x}",
            parent_id=f"{parent_id:016x}" if parent_id else None,
            name=self._names[name] or "",
            phase=self._names[phase],
            start_ns=start_ns,
            end_ns=end_ns,
            parent_source="inferred" if flags & _INFERRED else "otel",
            status=_STATUSES[status],
            outcome=_OUTCOMES[flags & ~_INFERRED],
            round=round_number or None,
            tool=self._names[tool],
            model=self._names[model],
            agent=agent,
            run_id=run_id,
        )
