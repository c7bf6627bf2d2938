"""What attribution says of a turn: plain records that every renderer, exporter and file reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turntrace.core.model import ParentSource, Span, Warn

__all__ = ["Attribution", "Gap", "PathSection", "PhaseTotals", "SpanTimes", "Totals", "Unattributed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTimes:
    """One span with its times. ``phase`` None: structure. ``parent_id`` is the parent that counted.

    ``wall_share_ns`` is 0 for structure; it and ``critical_ns`` are None without a window.
    """

    span: Span
    parent_id: str | None
    parent_source: ParentSource
    phase: str | None
    phase_parent_id: str | None
    exclusive_ns: int
    wall_share_ns: int | None
    critical_ns: int | None
    detached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over the spans of one phase, tool or model. Medians are nearest-rank."""

    name: str
    count: int
    inclusive_ns: int
    busy_ns: int
    wall_share_ns: int | None
    critical_ns: int | None
    exclusive_p50_ns: int
    exclusive_p95_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTotals(Totals):
    """Totals of a phase, and by tool (tool_execution) or by model (generation) inside it."""

    by: tuple[Totals, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch of the window, 1 ms or longer, that no phase covers."""

    start_ns: int
    end_ns: int
    after: str | None
    before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSection:
    """A stretch of the critical path; the root's own sections carry the root's id."""

    span_id: str | None
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unattributed:
    """Time in which only structure was active, under the innermost structure span."""

    span_id: str
    name: str
    ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Where the wall time of one turn went.

    All times are integer nanoseconds. Fields that need a window are None without one:
    wall, attributed, unattributed, active, critical path, root_critical.
    """

    spans: tuple[SpanTimes, ...] = ()
    wall_ns: int | None = None
    attributed_ns: int | None = None
    unattributed_ns: int | None = None
    busy_ns: int = 0
    active_ns: int | None = None
    critical_path_ns: int | None = None
    root_exclusive_ns: int | None = None
    root_critical_ns: int | None = None
    phases: tuple[PhaseTotals, ...] = ()
    critical_path: tuple[PathSection, ...] = ()
    gaps: tuple[Gap, ...] = ()
    unattributed: tuple[Unattributed, ...] = ()
    max_concurrency: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[Warn, ...] = ()

    @property
    def coverage(self) -> float | None:
        """Attributed / wall, 0.0 for an empty window, None without one."""
        if self.wall_ns is None or self.attributed_ns is None:
            return None
        return self.attributed_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def parallelism(self) -> float | None:
        """Busy / attributed, None when nothing was attributed."""
        return self.busy_ns / self.attributed_ns if self.attributed_ns else None
