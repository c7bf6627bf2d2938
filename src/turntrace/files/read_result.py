"""What reading gives: turns, and what was wrong."""

from dataclasses import dataclass, field

from turntrace.core.model import Issue, Turn

__all__ = ["ReadResult"]


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The turns of one or more inputs, each followed by those inside it, and what was wrong, by path."""

    turns: list[Turn] = field(default_factory=list)
    issues: list[tuple[str, Issue]] = field(default_factory=list)
