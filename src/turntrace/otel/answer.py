"""The attributes of a turn's span: the whole answer, from live totals.

They reach every backend of every provider; None is never an attribute.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from turntrace.core.attributes import (
    AGGREGATED_PREFIX,
    FLAG_PREFIX,
    RUN_ID,
    TURN_PREFIX,
    WALL_PREFIX,
    Scalar,
)
from turntrace.core.live import LiveTotals
from turntrace.core.model import TurnStatus

__all__ = ["COUNTED", "LiveFacts", "answer"]

_NS_PER_MS: Final = 1_000_000
_LOW_COVERAGE: Final = 0.95
COUNTED: Final[Mapping[str, str]] = {
    "reconnects": "reconnect_count",
    "compaction_attempts": "compaction_attempts",
    "completion_nudges": "completion_nudges",
    "acceptance_checks": "acceptance_checks",
    "model_switches": "model_switches",
}
"""Counters of a turn that its span carries when they are not 0: name there, name in the file."""

_TOKEN_NAMES: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_input_tokens": "cache_read.input_tokens",
    "cache_write_tokens": "cache_write.input_tokens",
    "reasoning_tokens": "reasoning.output_tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFacts:
    """What a turn counted besides times. ``tokens`` holds complete totals only; times are offsets."""

    run_id: str
    status: TurnStatus
    rounds: int
    model_requests: int
    tool_calls: int
    retries: int
    compactions: int
    usage_complete: bool | None
    tokens: Mapping[str, int | None]
    first_token_ns: int | None
    max_tools_at_once: int
    detached: bool
    counters: Mapping[str, int]


def answer(totals: LiveTotals, facts: LiveFacts) -> dict[str, Scalar]:
    """Wall time by phase in ms (with unattributed: the duration), counts, tokens, flags."""
    attributes: dict[str, Scalar] = {RUN_ID: facts.run_id}
    for phase, wall_ns in totals.wall_ns_by_phase.items():
        if wall_ns:
            attributes[f"{WALL_PREFIX}{phase}_ms"] = wall_ns / _NS_PER_MS
    attributes[f"{WALL_PREFIX}unattributed_ms"] = totals.unattributed_ns / _NS_PER_MS
    attributes.update({f"{TURN_PREFIX}{name}": value for name, value in _turn(totals, facts).items()})
    attributes.update({f"{FLAG_PREFIX}{name}": value for name, value in _flags(totals, facts).items()})
    for name, value in facts.tokens.items():
        if value is not None:
            attributes[AGGREGATED_PREFIX + _TOKEN_NAMES[name]] = value
    return attributes


def _turn(totals: LiveTotals, facts: LiveFacts) -> dict[str, Scalar]:
    found: dict[str, Scalar | None] = {
        "active_ms": totals.active_ns / _NS_PER_MS,
        "coverage": totals.coverage,
        "rounds": facts.rounds,
        "model_requests": facts.model_requests,
        "tool_calls": facts.tool_calls,
        "retries": facts.retries,
        "compactions": facts.compactions,
        "first_token_ms": None if facts.first_token_ns is None else facts.first_token_ns / _NS_PER_MS,
        "usage_complete": facts.usage_complete,
        "status": facts.status,
        "dominant_phase": max(totals.wall_ns_by_phase, key=totals.wall_ns_by_phase.__getitem__, default=None),
    }
    counted = {name: facts.counters.get(counter) for name, counter in COUNTED.items()}
    return {
        **{name: value for name, value in found.items() if value is not None},
        **{name: value for name, value in counted.items() if value},
    }


def _flags(totals: LiveTotals, facts: LiveFacts) -> dict[str, bool]:
    return {
        "retry": facts.retries > 0,
        "compaction": facts.compactions > 0,
        "low_coverage": totals.coverage < _LOW_COVERAGE,
        "serial_tools": facts.tool_calls > 1 and facts.max_tools_at_once <= 1,
        "detached": facts.detached,
        "interrupted": facts.status == "interrupted",
    }
