"""Wall share: every instant of the window goes to the innermost phases that are active in it.

Between two boundaries the frontier is the set of active phase spans with no active phase descendant.
In the order of a depth-first visit that is a question between neighbours only: an active span is in the
frontier unless the next active span lies in its subtree. So a boundary changes the frontier at one span
and at its predecessor, whatever the depth and whatever has ended or has not begun yet.

An instant is shared in units of 2^-16 ns by a running sum (what one member got since the beginning), of
which a span needs the difference between its entry and its exit: no loop over the frontier.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from turntrace.core.tree import Forest

__all__ = ["PERMISSION_WAIT", "STREAM_CONSUME", "UNIT_BITS", "Frontier", "sweep"]

UNIT_BITS = 16
"""Time is shared in units of 2^-16 ns."""

PERMISSION_WAIT = "permission_wait"
STREAM_CONSUME = "stream_consume"

_FOREGROUND, _CONSUME, _STRUCTURE = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """How the window is shared out; ``shares_ns`` sums to ``attributed_ns`` + ``structure_ns``.

    The share of a structure row is its part of ``structure_ns``: time in which only structure was
    active. In ``human_ns`` permission_wait alone was the frontier.
    """

    shares_ns: list[int]
    attributed_ns: int
    structure_ns: int
    human_ns: int


def sweep(forest: Forest, starts: Sequence[int], ends: Sequence[int]) -> Frontier:
    """Share out the time that the rows of ``forest`` cover; ``starts`` ascends, both are clipped."""
    state = _Sweep(forest)
    opening = [row for row in range(len(forest)) if starts[row] < ends[row]]
    closing = sorted(opening, key=ends.__getitem__)
    opened, count = 0, len(opening)
    for closed in closing:
        end = ends[closed]
        while opened < count and starts[opening[opened]] < end:
            row = opening[opened]
            state.open(row, starts[row])
            opened += 1
        state.close(closed, end)
    return state.result()


class _Lane:
    """Spans of one rank in the frontier, and what each of them would have got from the beginning on."""

    __slots__ = ("served_ns", "size", "units")

    def __init__(self) -> None:
        self.size = 0
        self.units = 0
        self.served_ns = 0

    def serve(self, elapsed_ns: int) -> None:
        """Share ``elapsed_ns`` among the members."""
        self.served_ns += elapsed_ns
        self.units += (elapsed_ns << UNIT_BITS) // self.size


class _Sweep:
    """The state between two boundaries: who is active, who is in the frontier, since when."""

    def __init__(self, forest: Forest) -> None:
        size = len(forest)
        self._positions = forest.positions
        self._order = forest.order
        # By place, as ``active`` is: a span is in the frontier when the next active one is behind its last.
        self._lasts = [forest.lasts[row] for row in forest.order]
        self._ranks = [_rank(phase) for phase in forest.phases]
        self._waits = [phase == PERMISSION_WAIT for phase in forest.phases]
        self._lanes = (_Lane(), _Lane(), _Lane())
        phases = _Places(size)
        self._active = (phases, phases, _Places(size))
        self._now_ns = 0
        self._waiting = 0
        self._human_ns = 0
        self._entered = [(0, 0)] * size
        self._units = [0] * size
        self._served = [False] * size

    def open(self, row: int, now_ns: int) -> None:
        """Let ``row`` become active."""
        rank, place = self._ranks[row], self._positions[row]
        self._advance(now_ns, rank)
        active = self._active[rank]
        before, after = active.before(place), active.after(place)
        active.add(place)
        if before >= 0 and place <= self._lasts[before] < after:
            self._leave(self._order[before])
        if self._lasts[place] < after:
            self._enter(row)

    def close(self, row: int, now_ns: int) -> None:
        """Let ``row`` stop being active."""
        rank, place = self._ranks[row], self._positions[row]
        self._advance(now_ns, rank)
        active = self._active[rank]
        active.discard(place)
        before, after = active.before(place), active.after(place)
        if self._lasts[place] < after:
            self._leave(row)
        if before >= 0 and place <= self._lasts[before] < after:
            self._enter(self._order[before])

    def result(self) -> Frontier:
        """What was shared out, exact in sum."""
        foreground, consume, structure = self._lanes
        attributed_ns = foreground.served_ns + consume.served_ns
        phases = [row for row, served in enumerate(self._served) if served and self._ranks[row] < _STRUCTURE]
        others = [row for row, served in enumerate(self._served) if served and self._ranks[row] == _STRUCTURE]
        shares_ns = [units >> UNIT_BITS for units in self._units]
        _hand_out(shares_ns, phases, attributed_ns)
        _hand_out(shares_ns, others, structure.served_ns)
        return Frontier(
            shares_ns=shares_ns,
            attributed_ns=attributed_ns,
            structure_ns=structure.served_ns,
            human_ns=self._human_ns,
        )

    def _advance(self, now_ns: int, rank: int) -> None:
        """Give the time since the last boundary to the first lane that has members."""
        foreground, consume, structure = self._lanes
        elapsed_ns = now_ns - self._now_ns
        if not elapsed_ns or (rank == _STRUCTURE and (foreground.size or consume.size)):
            # A boundary of structure only is none for the phases that are active over it.
            return
        self._now_ns = now_ns
        if foreground.size:
            foreground.serve(elapsed_ns)
            if foreground.size == self._waiting:
                self._human_ns += elapsed_ns
        elif consume.size:
            consume.serve(elapsed_ns)
        elif structure.size:
            structure.serve(elapsed_ns)

    def _enter(self, row: int) -> None:
        lane = self._lanes[self._ranks[row]]
        lane.size += 1
        self._waiting += self._waits[row]
        self._entered[row] = lane.units, lane.served_ns

    def _leave(self, row: int) -> None:
        lane = self._lanes[self._ranks[row]]
        lane.size -= 1
        self._waiting -= self._waits[row]
        units, served_ns = self._entered[row]
        if lane.served_ns > served_ns:
            self._units[row] += lane.units - units
            self._served[row] = True


def _rank(phase: str | None) -> int:
    if phase is None:
        return _STRUCTURE
    return _CONSUME if phase == STREAM_CONSUME else _FOREGROUND


def _hand_out(shares_ns: list[int], rows: Sequence[int], total_ns: int) -> None:
    """Raise the shares of ``rows`` to ``total_ns`` in sum: one ns each in turn, in order."""
    missing = total_ns - sum(shares_ns[row] for row in rows)
    if missing:
        each, first = divmod(missing, len(rows))
        for index, row in enumerate(rows):
            shares_ns[row] += each + (index < first)


class _Places:
    """A set of small integers that knows the neighbours of a place.

    Bits of words, and above them bits that say which words are not empty, up to a single word: adding,
    removing and asking cost one step a level, two levels for a million places.
    """

    __slots__ = ("_levels",)

    END = 1 << 62
    """Behind every place."""

    _BITS = 10
    _MASK = (1 << _BITS) - 1

    def __init__(self, size: int) -> None:
        self._levels: list[list[int]] = []
        while True:
            size = (size >> self._BITS) + 1
            self._levels.append([0] * size)
            if size == 1:
                return

    def add(self, place: int) -> None:
        """Put ``place`` in; it must not be in."""
        for words in self._levels:
            word = place >> self._BITS
            was_empty = not words[word]
            words[word] |= 1 << (place & self._MASK)
            if not was_empty:
                return
            place = word

    def discard(self, place: int) -> None:
        """Take ``place`` out; it must be in."""
        for words in self._levels:
            word = place >> self._BITS
            words[word] ^= 1 << (place & self._MASK)
            if words[word]:
                return
            place = word

    def before(self, place: int) -> int:
        """The next smaller member, -1 if there is none."""
        for level, words in enumerate(self._levels):
            word = place >> self._BITS
            lower = words[word] & ((1 << (place & self._MASK)) - 1)
            if lower:
                place = (word << self._BITS) + lower.bit_length() - 1
                for below in reversed(self._levels[:level]):
                    place = (place << self._BITS) + below[place].bit_length() - 1
                return place
            place = word
        return -1

    def after(self, place: int) -> int:
        """The next larger member, ``END`` if there is none."""
        for level, words in enumerate(self._levels):
            word = place >> self._BITS
            higher = words[word] >> (place & self._MASK) >> 1
            if higher:
                place += (higher & -higher).bit_length()
                for below in reversed(self._levels[:level]):
                    place = (place << self._BITS) + (below[place] & -below[place]).bit_length() - 1
                return place
            place = word
        return self.END
