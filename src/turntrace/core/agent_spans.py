"""Spans of coding agents made ready to be read: their events beside them, ended where they end, their plumbing taken out."""

from collections.abc import Sequence
from typing import Final

from turntrace.core.agent_dialects import AGENT_ROWS
from turntrace.core.agent_plumbing import without_plumbing
from turntrace.core.continued_turns import with_continuations
from turntrace.core.event_matching import with_events
from turntrace.core.event_spans import Told
from turntrace.core.model import RawSpan

__all__ = ["agent_spans"]

_SCOPES: Final = tuple({scope for row in AGENT_ROWS for scope in row.scopes})


def agent_spans(spans: Sequence[RawSpan], told: Told) -> Sequence[RawSpan]:
    """``spans`` as they are where no coding agent is among them; else with what its events tell."""
    if not told.candidates and not any(span.scope.startswith(_SCOPES) for span in spans):
        return spans
    return without_plumbing(with_events(with_continuations(spans), told))
