"""How a processor records: where, how soon, how much."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turntrace.config import JournalMode, Settings
from turntrace.files.append import Rotation

__all__ = ["RecordingOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOptions:
    """Settings of one TurnSpanProcessor. ``out`` None records without a file; ``-`` is stderr.

    ``agent`` names turns that name no agent themselves. ``run_trace``: local roots of this trace are one
    turn, which lasts until the process ends; with ``is_inside`` they are part of one that lives elsewhere.
    """

    out: str | None = None
    journal: JournalMode = "thread"
    max_bytes: int = 256 * 1024 * 1024
    keep: int = 4
    linger_s: float = 1.0
    exit_timeout_s: float = 1.5
    labels: Mapping[str, str] = field(default_factory=dict)
    keep_attributes: frozenset[str] = frozenset()
    metric_labels: frozenset[str] = frozenset()
    strict: bool = False
    agent: str | None = None
    run_trace: int | None = None
    is_inside: bool = False

    @property
    def rotation(self) -> Rotation:
        """When the file is rotated."""
        return Rotation(self.max_bytes, self.keep)

    @classmethod
    def of(cls, settings: Settings, *, out: str | None, journal: JournalMode) -> "RecordingOptions":
        """The options that ``settings`` ask for."""
        return cls(
            out=out,
            journal=settings.journal or journal,
            max_bytes=settings.trace_max_bytes,
            keep=settings.trace_keep,
            linger_s=settings.linger_s,
            exit_timeout_s=settings.exit_timeout_s,
            labels=settings.labels,
            keep_attributes=settings.keep_attributes,
            metric_labels=settings.metric_labels,
            strict=settings.strict,
        )
