"""The log of a live turn: what a turn needs of the thing that keeps its spans."""

from pathlib import Path
from typing import Protocol

from turntrace.core.model import Mark, Turn, Usage, Warn
from turntrace.otel.ended_span import EndedSpan
from turntrace.otel.open_span import OpenSpan

__all__ = ["TurnLog"]


class TurnLog(Protocol):
    """Told by the spans' threads, read by the writer. Nothing here raises."""

    out: Path | None
    """The file that gets the block; None when no block is wanted."""

    def opened(self) -> None:
        """The turn opened: its header."""
        ...

    def started(self, opened: OpenSpan) -> None:
        """A span started."""
        ...

    def ended(self, ended: EndedSpan) -> None:
        """A span ended."""
        ...

    def counter(self, name: str, total: int) -> None:
        """A counter's running total."""
        ...

    def mark(self, mark: Mark) -> None:
        """A moment."""
        ...

    def usage(self, usage: Usage) -> None:
        """What a model call consumed."""
        ...

    def warning(self, warning: Warn) -> None:
        """Something a reader must know."""
        ...

    def flush(self) -> None:
        """Write what was gathered."""
        ...

    def record(self) -> Turn:
        """The turn as far as it was told."""
        ...

    def has_turn_elsewhere(self) -> bool:
        """Whether another live process beside this file holds the turn's root."""
        ...

    def discard(self) -> None:
        """Forget what was kept: the block is written, or the local root was no turn."""
        ...

    def close(self) -> None:
        """Give back the descriptor."""
        ...

    def forget(self) -> None:
        """In a forked child: give back the descriptor and write nothing; the turn is the parent's."""
        ...
