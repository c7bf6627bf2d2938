"""Tokens that an agent only counts: they fill the one model call of a session that reported none.

Counters tell what a session consumed, not what a call did. With one call left they do; with more of them the
split is unknown and stays so, and the turn says what was counted.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from turntrace.core.agent_dialects import CODING_AGENTS
from turntrace.core.model import RawPoint, Turn, Usage, Warn
from turntrace.core.usage import TOKEN_FIELDS

__all__ = ["TOKEN_COUNTERS", "with_counted_tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counter:
    """A counter of tokens: ``parts`` leads from the attribute ``type`` to the fields it adds to."""

    dialect: str
    parts: Mapping[str, tuple[str, ...]]
    session: str = "session.id"


TOKEN_COUNTERS: Final[Mapping[str, _Counter]] = {
    "claude_code.token.usage": _Counter(
        dialect="claude_code",
        parts={  # each counted apart
            "input": ("input_tokens",),
            "cacheRead": ("input_tokens", "cached_input_tokens"),
            "cacheCreation": ("input_tokens", "cache_write_tokens"),
            "output": ("output_tokens",),
        },
    ),
    "gemini_cli.token.usage": _Counter(
        dialect="gemini_cli",
        parts={  # the cache within the input, thoughts beside the output
            "input": ("input_tokens",),
            "cache": ("cached_input_tokens",),
            "output": ("output_tokens",),
            "thought": ("output_tokens", "reasoning_tokens"),
        },
    ),
}
"""The counters by name. Gemini CLI counts the same under a second name, which is not read."""

_Session = tuple[str, str]
"""Dialect and session."""


class _Series(NamedTuple):
    """What tells one series of points from another."""

    name: str
    part: str
    session: str
    said: str
    start_ns: int


def with_counted_tokens(turns: Sequence[Turn], points: Iterable[RawPoint]) -> list[Turn]:
    """``turns``, with what counters tell of calls that reported nothing."""
    counted = _counted(points)
    mine: defaultdict[_Session, list[Turn]] = defaultdict(list)
    for turn in turns:
        if turn.source in CODING_AGENTS and turn.parent_run_id is None:
            mine[turn.source, turn.session_id].append(turn)
    filled: dict[str, Turn] = {}
    for session, counts in counted.items():
        own = mine.get(session, [])
        silent = [(turn, one) for turn in own for one in turn.usage if one.provenance == "missing"]
        if len(silent) == 1:
            turn, silent_one = silent[0]
            filled[turn.run_id] = _filled(turn, silent_one, _left(counts, own))
        elif silent:
            filled |= {turn.run_id: _told(turn, counts) for turn, _ in silent}
    return [filled.get(turn.run_id, turn) if turn.parent_run_id is None else turn for turn in turns]


def _counted(points: Iterable[RawPoint]) -> dict[_Session, dict[str, int]]:
    """The tokens of each session by field."""
    series: dict[_Series, int] = {}
    for point in sorted(points, key=lambda one: one.at_ns):
        counter = TOKEN_COUNTERS.get(point.name)
        part = str(point.attributes.get("type"))
        if counter is None or part not in counter.parts:
            continue
        said = repr(sorted((name, str(value)) for name, value in point.attributes.items()))
        # of a sum since the start the latest counts; deltas add up
        session = str(point.attributes.get(counter.session, ""))
        key = _Series(point.name, part, session, said, 0 if point.is_delta else point.start_ns)
        series[key] = point.value + (series.get(key, 0) if point.is_delta else 0)
    found: defaultdict[_Session, dict[str, int]] = defaultdict(dict)
    for one, value in series.items():
        counter = TOKEN_COUNTERS[one.name]
        counts = found[counter.dialect, one.session]
        for field in counter.parts[one.part]:
            counts[field] = counts.get(field, 0) + value
    return found


def _left(counts: Mapping[str, int], turns: Iterable[Turn]) -> dict[str, int]:
    """What is left of ``counts`` when what calls reported is taken off."""
    left = dict(counts)
    for turn in turns:
        for usage in turn.usage:
            for field in left:
                left[field] -= getattr(usage, field) or 0
    return left


def _filled(turn: Turn, silent: Usage, left: Mapping[str, int]) -> Turn:
    if any(count < 0 for count in left.values()) or not {"input_tokens", "output_tokens"} <= left.keys():
        return turn
    known = replace(
        silent,
        provenance="reported",
        input_tokens=left["input_tokens"],
        cached_input_tokens=left.get("cached_input_tokens"),
        cache_write_tokens=left.get("cache_write_tokens"),
        output_tokens=left["output_tokens"],
        reasoning_tokens=left.get("reasoning_tokens"),
    )
    return replace(turn, usage=tuple(known if one is silent else one for one in turn.usage))


def _told(turn: Turn, counts: Mapping[str, int]) -> Turn:
    said = ", ".join(f"{field} {counts[field]}" for field in TOKEN_FIELDS if field in counts)
    warning = Warn(
        code="counted_by_session", message=f"the agent counted for the whole session, not by call: {said}"
    )
    return replace(turn, warnings=(*turn.warnings, warning))
