"""Who a live turn is: what is known when its root starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turntrace.core.model import TurnSource

__all__ = ["TurnIdentity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnIdentity:
    """Ids, source and names. ``root_id`` 0: the turn has no root span. ``is_remote``: its parent is elsewhere."""

    run_id: str
    trace_id: int
    root_id: int
    root_name: str = ""
    turn_source: TurnSource = "api"
    source: str = "native"
    agent: str | None = None
    session_id: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    sampled: bool = True
    is_remote: bool = False
