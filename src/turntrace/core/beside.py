"""Two lots of turns beside each other: per phase medians, counts and their difference. No verdict.

A median of a phase is over all turns that have an end; a turn without the phase counts with 0, so that
rows of both sides mean the same. A figure that some of the turns do not know is over those that do, and
None where none does.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from turntrace.core.model import Turn
from turntrace.core.results import Attribution
from turntrace.core.rollup import nearest_rank
from turntrace.core.usage import total

__all__ = ["Beside", "Compared", "Side", "beside"]

_HALF = 50

Turns = Sequence[tuple[Turn, Attribution]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One row on one side: its median (ns for times, else a count), its calls, and the turns that have it."""

    median: int | None
    calls: int | None
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One row of both sides. ``tool`` is set on the rows of tools, which are part of tool_execution."""

    name: str
    tool: str | None
    a: Side
    b: Side

    @property
    def difference(self) -> int | None:
        """The median of b less that of a, None where one is unknown."""
        if self.a.median is None or self.b.median is None:
            return None
        return self.b.median - self.a.median


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Both sides. ``phases`` largest first, each followed by its tools; all times in ns.

    ``a_turns`` and ``b_turns`` are all turns, ``a_ended`` and ``b_ended`` those that have an end.
    """

    a_turns: int
    b_turns: int
    a_ended: int
    b_ended: int
    wall: Compared
    active: Compared
    first_token: Compared
    unattributed: Compared
    phases: tuple[Compared, ...]
    counts: tuple[Compared, ...]


def beside(a: Turns, b: Turns) -> Beside:
    """Lay the turns of two runs beside each other; the outermost ones, whose figures hold the others'."""
    ended = [[pair for pair in side if pair[1].wall_ns is not None] for side in (a, b)]
    series = [_series(side) for side in ended]
    names = {key for one in series for key in one}

    def row(name: str, tool: str | None = None) -> Compared:
        left, right = (
            _side(one.get((name, tool), {}), len(side)) for one, side in zip(series, ended, strict=True)
        )
        return Compared(name=name, tool=tool, a=left, b=right)

    def largest(compared: Compared) -> tuple[int, str, str]:
        return -max(compared.a.median or 0, compared.b.median or 0), compared.name, compared.tool or ""

    phases: list[Compared] = []
    for phase in sorted((row(name) for name, tool in names if tool is None), key=largest):
        phases.append(phase)
        phases += sorted((row(*key) for key in names if key[0] == phase.name and key[1]), key=largest)
    times = {
        name: _known(name, *([_moment(pair, name) for pair in side] for side in ended)) for name in _TIMES
    }
    return Beside(
        a_turns=len(a),
        b_turns=len(b),
        a_ended=len(ended[0]),
        b_ended=len(ended[1]),
        **times,
        phases=tuple(phases),
        counts=tuple(
            _known(name, *([_count(pair, name) for pair in side] for side in (a, b))) for name in _COUNTS
        ),
    )


_Key = tuple[str, str | None]
_Found = dict[int, tuple[int, int]]
"""By the number of a turn: wall share and calls."""

_TIMES = ("wall", "active", "first_token", "unattributed")
_COUNTS = ("rounds", "model_requests", "tool_calls", "retry_count", "input_tokens", "output_tokens")


def _series(turns: Turns) -> dict[_Key, _Found]:
    found: dict[_Key, _Found] = {}
    for number, (_, attribution) in enumerate(turns):
        for phase in attribution.phases:
            found.setdefault((phase.name, None), {})[number] = phase.wall_share_ns or 0, phase.count
            for part in phase.by if phase.name == "tool_execution" else ():
                found.setdefault((phase.name, part.name), {})[number] = part.wall_share_ns or 0, part.count
    return found


def _side(found: _Found, turns: int) -> Side:
    shares = [share for share, _ in found.values()] + [0] * (turns - len(found))
    return Side(median=_median(shares), calls=sum(calls for _, calls in found.values()), turns=len(found))


def _known(name: str, a: Iterable[int | None], b: Iterable[int | None]) -> Compared:
    left, right = ([value for value in side if value is not None] for side in (a, b))
    return Compared(
        name=name,
        tool=None,
        a=Side(median=_median(left), calls=None, turns=len(left)),
        b=Side(median=_median(right), calls=None, turns=len(right)),
    )


def _median(values: Iterable[int]) -> int | None:
    ordered = sorted(values)
    return nearest_rank(ordered, _HALF) if ordered else None


def _moment(pair: tuple[Turn, Attribution], name: str) -> int | None:
    turn, attribution = pair
    if name != "first_token":
        found: int | None = getattr(attribution, f"{name}_ns")
        return found
    if turn.first_token_ns is None or turn.started_ns is None:
        return None
    return turn.first_token_ns - turn.started_ns


def _count(pair: tuple[Turn, Attribution], name: str) -> int | None:
    turn, _ = pair
    if name == "rounds":
        return turn.rounds
    if name.endswith("_tokens"):
        found: int | None = getattr(total(turn.usage, turn.counters.get("model_requests", 0)), name)
        return found
    return turn.counters.get(name)
