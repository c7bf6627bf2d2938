"""What a template makes of a seed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from turntrace.bench.tasks import ParallelProbe

__all__ = ["Attempt", "Variant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Something an agent might leave: changed files by path (None is a deleted one), and its last words."""

    files: Mapping[str, str | None] = field(default_factory=dict)
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One task. ``facts`` are what the oracle functions find under FACTS; ``wrong`` has two by name."""

    prompt: str
    files: Mapping[str, str]
    solution: Attempt
    wrong: Mapping[str, Attempt]
    facts: Mapping[str, Any]
    probe: ParallelProbe | None = None
    equivalent: Mapping[str, str] = field(default_factory=dict)
