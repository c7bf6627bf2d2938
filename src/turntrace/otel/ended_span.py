"""A span that just ended, as the turn's log takes it."""

from collections.abc import Mapping
from typing import Any

from turntrace.core.model import Outcome, SpanStatus
from turntrace.otel.open_span import OpenSpan

__all__ = ["EndedSpan"]


class EndedSpan:
    """The open span with its end. ``attributes`` are the instrumentation's own, not yet filtered."""

    __slots__ = ("attributes", "end_ns", "name", "opened", "outcome", "status")

    def __init__(  # noqa: PLR0913 - one record, made where a span ends
        self,
        opened: OpenSpan,
        *,
        end_ns: int,
        name: str,
        status: SpanStatus,
        outcome: Outcome,
        attributes: Mapping[str, Any],
    ) -> None:
        self.opened = opened
        self.end_ns = end_ns
        self.name = name
        self.status = status
        self.outcome = outcome
        self.attributes = attributes
