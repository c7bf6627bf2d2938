"""What is kept of a span while it is open."""

from typing import TYPE_CHECKING

from turntrace.core.dialects import Verdict
from turntrace.core.live import LiveSpan
from turntrace.core.model import Usage

if TYPE_CHECKING:
    from turntrace.otel.live_turn import LiveTurn, NestedTurn

__all__ = ["OpenSpan"]


class OpenSpan:
    """An open span: ids, live times, and what its dialect said at the start.

    ``model_call`` and ``tool_call`` are the outermost open generation and named tool at or above it:
    what lies below one is the same call seen again and is not counted. ``usage`` is the richest report
    found below a model call. ``verdict`` is set on spans of other instrumentations only.
    """

    __slots__ = (
        "agent", "inferred", "live", "model", "model_call", "name", "parent_id", "phase", "round", "run_id",
        "sink", "span_id", "start_ns", "tool", "tool_call", "turn", "usage", "verdict",
    )  # fmt: skip

    def __init__(
        self,
        sink: "LiveTurn | NestedTurn",
        span_id: int,
        parent_id: int | None,
        name: str,
        phase: str | None,
        start_ns: int,
    ) -> None:
        self.sink = sink
        self.turn: LiveTurn = sink.turn
        self.span_id = span_id
        self.parent_id = parent_id
        self.name = name
        self.phase = phase
        self.start_ns = start_ns
        self.live: LiveSpan
        self.round: int | None = None
        self.agent: str | None = None
        self.run_id: str | None = None
        self.inferred = False
        self.tool: str | None = None
        self.model: str | None = None
        self.model_call: OpenSpan | None = None
        self.tool_call: OpenSpan | None = None
        self.usage: Usage | None = None
        self.verdict: Verdict
