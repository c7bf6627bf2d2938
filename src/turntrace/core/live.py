"""Live attribution: the same numbers while a turn runs, O(1) a span, memory for open spans only.

Everything here is on the hot path of a span processor: slotted mutable classes, integers, no allocation
beyond one object a span. Times may be back-dated; then the values are no longer exact, but never
negative, and the sums are exact always. One turn's calls must be serialised by the caller.

Who is in the frontier follows from counts: an active phase span is in it while no phase span below it is
active. What it gets is the difference of a running sum between its entry and its exit, and a phase's total
is the sum of those, kept as one number: units so far, plus the running sum for each span now in it.
"""

from dataclasses import dataclass

from turntrace.core.frontier import PERMISSION_WAIT, STREAM_CONSUME, UNIT_BITS
from turntrace.core.tree import OTHER

__all__ = ["LiveAttribution", "LiveSpan", "LiveTotals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTotals:
    """Where the turn's time went so far, in ns; phases and unattributed sum to ``wall_ns`` exactly."""

    wall_ns: int
    wall_ns_by_phase: dict[str, int]
    unattributed_ns: int
    active_ns: int

    @property
    def attributed_ns(self) -> int:
        """Time in which a phase was active."""
        return self.wall_ns - self.unattributed_ns

    @property
    def coverage(self) -> float:
        """Attributed / wall, 0.0 for a turn without length."""
        return self.attributed_ns / self.wall_ns if self.wall_ns else 0.0


class _Lane:
    """Spans of one rank in the frontier, and what each of them would have got from the beginning on.

    ``rest_units`` is what could not be divided; it goes into the next division.
    """

    __slots__ = ("rest_units", "size", "units")

    def __init__(self) -> None:
        self.size = 0
        self.units = 0
        self.rest_units = 0


class _Clock:
    """The units of one phase: ``units`` + ``size`` x the lane's; ``size`` spans of it are in the frontier."""

    __slots__ = ("lane", "phase", "size", "units")

    def __init__(self, phase: str, lane: _Lane) -> None:
        self.phase = phase
        self.lane = lane
        self.size = 0
        self.units = 0


_STRUCTURE = _Clock("", _Lane())
"""The clock of what is no active phase span; it never runs."""


class LiveSpan:
    """An open span. Only ``LiveAttribution`` changes it.

    ``parent`` is the direct parent until the span ends, ``clock`` its phase's while it is an active phase
    span, ``above`` a way to the nearest active phase above it.
    """

    __slots__ = (
        "above", "clock", "covered_from_ns", "covered_ns", "entered_units", "is_leaf", "is_open",
        "open_children", "parent", "phases_below", "start_ns", "units",
    )  # fmt: skip

    def __init__(self, parent: "LiveSpan | None", start_ns: int) -> None:
        self.parent = parent
        self.above: LiveSpan | None = None
        self.clock = _STRUCTURE
        self.start_ns = start_ns
        self.is_open = True
        self.is_leaf = False
        # While children are open: since when they cover the span. Else: until when they have covered it.
        self.covered_from_ns = start_ns
        self.covered_ns = 0
        self.open_children = 0
        self.phases_below = 0
        self.entered_units = 0
        self.units = 0


class LiveAttribution:
    """The running figures of one turn, from its start on.

    ``root`` stands for the turn's own span: the parent of what has none.

    >>> live = LiveAttribution(0)
    >>> outer = live.start(None, 0, "generation")
    >>> inner = live.start(outer, 10, "provider_connect")
    >>> live.end(inner, 40, "provider_connect"), live.end(outer, 90, "generation")
    (30, 60)
    >>> totals = live.totals(100)
    >>> totals.wall_ns_by_phase, totals.unattributed_ns
    ({'generation': 60, 'provider_connect': 30}, 10)
    """

    __slots__ = (
        "_clocks", "_consume", "_foreground", "_human_ns", "_idle_ns", "_moved_units", "_now_ns", "_wait",
        "root",
    )  # fmt: skip

    def __init__(self, started_ns: int) -> None:
        self.root = LiveSpan(None, started_ns)
        self._now_ns = started_ns
        self._foreground = _Lane()
        self._consume = _Lane()
        self._wait = _Clock(PERMISSION_WAIT, self._foreground)
        self._clocks = {
            PERMISSION_WAIT: self._wait,
            STREAM_CONSUME: _Clock(STREAM_CONSUME, self._consume),
        }
        self._idle_ns = 0
        self._human_ns = 0
        self._moved_units = 0

    def start(
        self, parent: LiveSpan | None, start_ns: int, phase: str | None, *, leaf: bool = False
    ) -> LiveSpan:
        """Open a span under ``parent``, None being the root; ``phase`` None is structure.

        With ``leaf`` the span maps to nothing: it is ``other`` until its first child starts, then
        structure. ``parent`` may have ended.
        """
        if parent is None:
            parent = self.root
        if parent.is_leaf:
            self._become_structure(parent, start_ns)
        span = LiveSpan(parent, start_ns)
        if not parent.is_open:
            span.parent = None
        elif parent.open_children:
            parent.open_children += 1
        else:
            parent.open_children = 1
            if start_ns > parent.covered_from_ns:  # noqa: PLR1730 -- max() costs a call on the hot path
                parent.covered_from_ns = start_ns
        span.above = _active_phase(parent) if parent.clock is _STRUCTURE else parent
        if leaf and phase is None:
            span.is_leaf = True
            phase = OTHER
        if phase is not None:
            self._open(span, start_ns, phase)
        return span

    def exclusive_ns(self, span: LiveSpan, end_ns: int) -> int:
        """The exclusive time in ns that ``span`` has if it ends at ``end_ns``; changes nothing."""
        exclusive_ns = end_ns - span.start_ns - span.covered_ns
        if span.open_children and end_ns > span.covered_from_ns:
            exclusive_ns -= end_ns - span.covered_from_ns
        return exclusive_ns if exclusive_ns > 0 else 0  # noqa: FURB136 -- max() costs a call on the hot path

    def end(self, span: LiveSpan, end_ns: int, phase: str | None) -> int:
        """Close ``span``, book its time under ``phase`` and return its exclusive time in ns.

        ``phase`` is the one known at the end; None is structure, and for a leaf still without children
        ``other``. The time of structure goes to the nearest phase above, else it is unattributed. To end
        a span again changes nothing.
        """
        exclusive_ns = self.exclusive_ns(span, end_ns)
        if not span.is_open:
            return exclusive_ns
        span.is_open = False
        parent, span.parent = span.parent, None
        if parent is not None and parent.is_open:
            parent.open_children -= 1
            if not parent.open_children and end_ns > parent.covered_from_ns:
                parent.covered_ns += end_ns - parent.covered_from_ns
                parent.covered_from_ns = end_ns
        if phase is None and span.is_leaf:
            phase = OTHER
        span.is_leaf = False
        clock = span.clock
        if clock is _STRUCTURE:
            span.above = _active_phase(span.above)
        else:
            self._close(span, end_ns)
        if span.units:
            # Structure has units only where it was a leaf.
            self._book(span, self._clocks[OTHER] if clock is _STRUCTURE else clock, phase)
        return exclusive_ns

    def totals(self, end_ns: int) -> LiveTotals:
        """The turn's sums if it ends at ``end_ns``: spans still open count up to then.

        Where the turn ends before something in it did, the excess is taken from unattributed, then from
        the largest phase.
        """
        self._advance(end_ns)
        wall_ns = max(end_ns - self.root.start_ns, 0)
        units = {
            phase: clock.units + clock.size * clock.lane.units
            for phase, clock in self._clocks.items()
            if clock.units or clock.size
        }
        by_phase = {phase: share >> UNIT_BITS for phase, share in units.items()}
        unattributed_ns = self._idle_ns + (self._moved_units >> UNIT_BITS)
        missing = wall_ns - unattributed_ns - sum(by_phase.values())
        if missing < 0:
            cut = min(-missing, unattributed_ns)
            unattributed_ns -= cut
            _take(by_phase, -missing - cut)
        elif by_phase:
            _give(by_phase, units, missing)
        else:
            unattributed_ns += missing
        return LiveTotals(
            wall_ns=wall_ns,
            wall_ns_by_phase={phase: share for phase, share in by_phase.items() if share},
            unattributed_ns=unattributed_ns,
            active_ns=max(wall_ns - self._human_ns, 0),
        )

    def _advance(self, now_ns: int) -> None:
        """Give the time since the last event to the spans in the frontier."""
        elapsed_ns = now_ns - self._now_ns
        if elapsed_ns <= 0:
            return
        self._now_ns = now_ns
        lane = self._foreground
        if lane.size:
            if lane.size == self._wait.size:
                self._human_ns += elapsed_ns
        else:
            lane = self._consume
            if not lane.size:
                self._idle_ns += elapsed_ns
                return
        if lane.size == 1:
            lane.units += elapsed_ns << UNIT_BITS
            return
        units, lane.rest_units = divmod((elapsed_ns << UNIT_BITS) + lane.rest_units, lane.size)
        lane.units += units

    def _open(self, span: LiveSpan, start_ns: int, phase: str) -> None:
        """Make ``span`` an active phase span: in the frontier, in place of the one above."""
        self._advance(start_ns)
        span.clock = self._clocks.get(phase) or self._clock(phase)
        above = span.above
        if above is not None:
            if not above.phases_below:
                _leave(above)
            above.phases_below += 1
        _enter(span)

    def _close(self, span: LiveSpan, end_ns: int) -> None:
        """Make ``span`` no active phase span; those below it hang on the one above from now on."""
        self._advance(end_ns)
        if not span.phases_below:
            _leave(span)
        span.clock = _STRUCTURE
        above = span.above
        if above is not None and above.clock is _STRUCTURE:
            above = span.above = _active_phase(above)
        if above is not None:
            above.phases_below += span.phases_below - 1
            if not above.phases_below:
                _enter(above)

    def _become_structure(self, leaf: LiveSpan, now_ns: int) -> None:
        leaf.is_leaf = False
        self._close(leaf, now_ns)

    def _book(self, span: LiveSpan, booked: _Clock, phase: str | None) -> None:
        """Move the units of ``span`` from the clock they are on to the one of ``phase``."""
        if phase == booked.phase:
            return
        booked.units -= span.units
        if phase is not None:
            self._clock(phase).units += span.units
        elif span.above is not None:
            span.above.clock.units += span.units
            span.above.units += span.units
        else:
            self._moved_units += span.units

    def _clock(self, phase: str) -> _Clock:
        clock = self._clocks.get(phase)
        if clock is None:
            clock = self._clocks[phase] = _Clock(phase, self._foreground)
        return clock


def _active_phase(span: LiveSpan | None) -> LiveSpan | None:
    """The nearest active phase span at or above ``span``; shortens the way for whoever asks next."""
    found = span
    while found is not None and found.clock is _STRUCTURE:
        found = found.above
    while span is not None and span is not found:
        span.above, span = found, span.above
    return found


def _enter(span: LiveSpan) -> None:
    """Put ``span`` into the frontier."""
    clock = span.clock
    lane = clock.lane
    lane.size += 1
    clock.size += 1
    clock.units -= lane.units
    span.entered_units = lane.units


def _leave(span: LiveSpan) -> None:
    """Take ``span`` out of the frontier."""
    clock = span.clock
    lane = clock.lane
    lane.size -= 1
    clock.size -= 1
    clock.units += lane.units
    span.units += lane.units - span.entered_units


def _give(by_phase: dict[str, int], units: dict[str, int], missing_ns: int) -> None:
    """Hand out what rounding down has lost: one ns each in turn, the largest remainder first."""
    each, first = divmod(missing_ns, len(by_phase))
    mask = (1 << UNIT_BITS) - 1
    ordered = sorted(by_phase, key=lambda phase: -(units[phase] & mask))
    for index, phase in enumerate(ordered):
        by_phase[phase] += each + (index < first)


def _take(by_phase: dict[str, int], excess_ns: int) -> None:
    """Take ``excess_ns`` away, the largest phases first."""
    for phase in sorted(by_phase, key=lambda phase: -by_phase[phase]):
        cut = min(excess_ns, by_phase[phase])
        by_phase[phase] -= cut
        excess_ns -= cut
