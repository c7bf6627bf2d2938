"""Live attribution against the final one, and its promises when times are back-dated."""

import gc
import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.forests import make
from turntrace.core.attribution import attribute
from turntrace.core.live import LiveAttribution, LiveSpan

PHASES = ("generation", "tool_execution", "permission_wait", "stream_consume", "memory", None)


@dataclass
class Step:
    """One event: time passes, then the ``pick``-th candidate starts a child or ends."""

    gap_ns: int
    starts: bool
    pick: int
    phase: str | None


steps = st.lists(
    st.builds(
        Step,
        gap_ns=st.integers(0, 10**6),
        starts=st.booleans(),
        pick=st.integers(0, 10**6),
        phase=st.sampled_from(PHASES),
    ),
    max_size=40,
)


class Replay:
    """Drives a live turn and writes down the spans that the final attribution would see."""

    def __init__(self, started_ns=1_000):
        self.live = LiveAttribution(started_ns)
        self.started_ns = self.now_ns = started_ns
        self.handles = {}
        self.spans = {}
        self.open = []
        self.exclusive = {}

    def start(self, parent, phase, at_ns=None, **fields):
        key = f"{len(self.spans):05d}"
        at_ns = self.now_ns if at_ns is None else at_ns
        self.handles[key] = self.live.start(self.handles.get(parent), at_ns, phase, **fields)
        self.spans[key] = make(key, at_ns, at_ns, parent=parent, phase=phase)
        self.open.append(key)
        return key

    def end(self, key, phase=..., at_ns=None):
        at_ns = self.now_ns if at_ns is None else at_ns
        phase = self.spans[key].phase if phase is ... else phase
        handle = self.handles[key]
        foreseen = self.live.exclusive_ns(handle, at_ns)
        self.exclusive[key] = self.live.end(handle, at_ns, phase)
        assert self.exclusive[key] == foreseen == self.live.end(handle, at_ns, phase)
        self.spans[key] = replace(self.spans[key], end_ns=at_ns, phase=phase)
        self.open.remove(key)

    def play(self, steps, *, detached):
        """Follow ``steps``; without ``detached`` a span ends after its children and before its parent."""
        for step in steps:
            self.now_ns += step.gap_ns
            parents = [None, *(list(self.spans)[-12:] if detached else self.open)]
            ends = self.open if detached else [key for key in self.open if not self.has_open_child(key)]
            if step.starts or not ends:
                self.start(parents[step.pick % len(parents)], step.phase)
            else:
                self.end(ends[step.pick % len(ends)])
        while self.open:
            self.now_ns += 7
            self.end(self.open[-1])

    def has_open_child(self, key):
        return any(self.spans[other].parent_id == key for other in self.open)

    def final(self):
        return attribute(
            list(self.spans.values()), started_ns=self.started_ns, completed_ns=self.now_ns, root_id=None
        )


def check_sums(totals):
    """Phases and unattributed sum exactly to the duration, and nothing is negative."""
    assert sum(totals.wall_ns_by_phase.values()) + totals.unattributed_ns == totals.wall_ns
    assert totals.attributed_ns + totals.unattributed_ns == totals.wall_ns
    assert min([totals.unattributed_ns, totals.active_ns, *totals.wall_ns_by_phase.values()]) >= 0
    assert totals.active_ns <= totals.wall_ns
    assert 0 <= totals.coverage <= 1


def check_against_final(replay):
    """Exclusive times are the definition's, wall by phase is within nanoseconds, sums are exact."""
    totals, final = replay.live.totals(replay.now_ns), replay.final()
    check_sums(totals)
    for times in final.spans:
        assert replay.exclusive[times.span.span_id] == times.exclusive_ns
    assert replay.live.exclusive_ns(replay.live.root, replay.now_ns) == final.root_exclusive_ns
    assert totals.unattributed_ns == final.unattributed_ns
    assert totals.active_ns == final.active_ns
    assert totals.coverage == final.coverage
    for phase in final.phases:
        # What rounding has taken is one nanosecond a span in the final values, one a phase here.
        live_ns = totals.wall_ns_by_phase.get(phase.name, 0)
        assert abs(live_ns - phase.wall_share_ns) <= len(final.spans) + 2


@given(steps, st.booleans())
def test_live_equals_final(steps, detached):
    """Live and final values agree for every order of starts and ends.

    Detached spans, and spans that start after their parent has ended, included.
    """
    replay = Replay()
    replay.play(steps, detached=detached)
    check_against_final(replay)


@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_live_equals_final_in_long_turns(seed, detached):
    """Live and final values agree after hundreds of spans, up to a dozen of them open at once."""
    rng = random.Random(seed)
    replay = Replay()
    replay.play(
        [
            Step(rng.randrange(10**6), rng.random() < 0.52, rng.randrange(10**6), rng.choice(PHASES))
            for _ in range(400)
        ],
        detached=detached,
    )
    check_against_final(replay)


@given(steps)
def test_open_spans_count_up_to_now(steps):
    """At any moment the totals are those of a turn whose open spans end now."""
    replay = Replay()
    for index in range(len(steps)):
        replay = Replay()
        for step in steps[: index + 1]:
            replay.now_ns += step.gap_ns
            replay.start(([None, *replay.open])[step.pick % (len(replay.open) + 1)], step.phase)
        totals = replay.live.totals(replay.now_ns + 5)
        check_sums(totals)
        spans = [replace(span, end_ns=replay.now_ns + 5) for span in replay.spans.values()]
        final = attribute(spans, started_ns=replay.started_ns, completed_ns=replay.now_ns + 5, root_id=None)
        assert totals.unattributed_ns == final.unattributed_ns
        assert totals.active_ns == final.active_ns
        for times in final.spans:
            handle = replay.handles[times.span.span_id]
            assert replay.live.exclusive_ns(handle, replay.now_ns + 5) == times.exclusive_ns
        if index > 6:
            break


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.integers(-50, 150),
            st.booleans(),
            st.integers(0, 10**6),
            st.sampled_from((*PHASES, "leaf")),
            st.sampled_from((*PHASES, "other")),
        ),
        max_size=40,
    ),
    st.integers(-50, 150),
)
def test_any_times_keep_the_sums(events, end_ns):
    """Whatever the times, phases and order of ends: no error, nothing negative, exact sums."""
    live = LiveAttribution(0)
    handles = []
    for at_ns, starts, pick, phase, end_phase in events:
        if starts or not handles:
            parent = ([None, *handles])[pick % (len(handles) + 1)]
            leaf = phase == "leaf"
            handles.append(live.start(parent, at_ns, None if leaf else phase, leaf=leaf))
        else:
            assert live.end(handles[pick % len(handles)], at_ns, end_phase) >= 0
    check_sums(live.totals(end_ns))
    check_sums(live.totals(end_ns + 1000))


def test_a_phase_takes_the_time_of_the_one_above():
    """The innermost phase has the time; the outer one the rest."""
    replay = Replay(0)
    outer = replay.start(None, "generation")
    replay.now_ns = 10
    inner = replay.start(outer, "provider_connect")
    replay.now_ns = 40
    replay.end(inner)
    replay.now_ns = 100
    replay.end(outer)
    replay.now_ns = 120
    totals = replay.live.totals(120)
    assert totals.wall_ns_by_phase == {"generation": 70, "provider_connect": 30}
    assert (totals.attributed_ns, totals.unattributed_ns, totals.coverage) == (100, 20, 100 / 120)
    assert replay.exclusive == {inner: 30, outer: 70}


def test_thirds_are_handed_out():
    """What rounding takes is handed out again, the largest remainder first."""
    live = LiveAttribution(0)
    for phase in ("generation", "generation", "memory"):
        live.start(None, 0, phase)
    assert live.totals(100).wall_ns_by_phase == {"generation": 67, "memory": 33}
    assert live.totals(101).wall_ns_by_phase == {"generation": 67, "memory": 34}


def test_a_leaf_is_other_until_it_has_a_child():
    """A span that maps to nothing is `other` as a leaf; with a child its time goes to the phase above."""
    replay = Replay(0)
    outer = replay.start(None, "generation")
    leaf = replay.start(outer, None, leaf=True)
    node = replay.start(outer, None, at_ns=0, leaf=True)
    replay.now_ns = 60
    replay.end(leaf, None)
    assert replay.live.totals(60).wall_ns_by_phase == {"other": 60}
    child = replay.start(node, "memory")
    replay.now_ns = 80
    replay.end(child)
    replay.now_ns = 90
    replay.end(node, None)
    replay.end(outer)
    assert replay.live.totals(90).wall_ns_by_phase == {"generation": 40, "other": 30, "memory": 20}


def test_the_time_of_structure_without_a_phase_above_is_unattributed():
    """What a leaf had before it became structure is unattributed when no phase is above it."""
    replay = Replay(0)
    node = replay.start(None, None, leaf=True)
    replay.now_ns = 30
    replay.start(node, None)
    replay.now_ns = 50
    replay.end(node, None)
    totals = replay.live.totals(50)
    assert (totals.wall_ns_by_phase, totals.unattributed_ns) == ({}, 50)


@pytest.mark.parametrize(
    ("end_phase", "expected"),
    [
        ("verification", {"verification": 30, "generation": 20}),
        (None, {"generation": 50}),
        ("memory", {"memory": 30, "generation": 20}),
    ],
)
def test_time_is_booked_under_the_phase_known_at_the_end(end_phase, expected):
    """The phase found when a span ends has all its time; as structure it gives it to the one above."""
    replay = Replay(0)
    outer = replay.start(None, "generation")
    replay.now_ns = 20
    inner = replay.start(outer, "memory")
    replay.now_ns = 50
    replay.end(inner, end_phase)
    assert replay.live.totals(50).wall_ns_by_phase == expected
    replay.end(outer, "plan")
    renamed = {"plan" if phase == "generation" else phase: ns for phase, ns in expected.items()}
    assert replay.live.totals(50).wall_ns_by_phase == renamed


def test_a_leaf_may_turn_out_to_be_a_phase():
    """A leaf whose phase is known at its end has its time there, with children and without."""
    replay = Replay(0)
    first = replay.start(None, None, leaf=True)
    replay.now_ns = 10
    replay.end(first, "retrieval")
    second = replay.start(None, None, leaf=True)
    replay.now_ns = 30
    replay.end(replay.start(second, None), None)
    replay.end(second, "memory")
    assert replay.live.totals(30).wall_ns_by_phase == {"retrieval": 10, "memory": 20}


def test_a_turn_that_ends_before_its_spans_did():
    """The excess is taken from unattributed time, then from the largest phase."""
    live = LiveAttribution(0)
    span = live.start(None, 10, "generation")
    live.end(span, 100, "generation")
    live.end(live.start(None, 100, "memory"), 110, "memory")
    assert live.totals(105).wall_ns_by_phase == {"generation": 90, "memory": 10}
    assert live.totals(105).unattributed_ns == 5
    assert live.totals(30).wall_ns_by_phase == {"generation": 20, "memory": 10}
    assert live.totals(5).wall_ns_by_phase == {"memory": 5}
    check_sums(live.totals(-5))


def test_more_spans_at_once_than_units():
    """A hundred thousand spans that share one nanosecond lose nothing."""
    live = LiveAttribution(0)
    for _ in range(70_000):
        live.start(None, 0, "tool_execution")
    live.start(None, 0, "memory")
    totals = live.totals(1)
    check_sums(totals)
    assert totals.attributed_ns == 1


def alive():
    gc.collect()
    return sum(type(thing) is LiveSpan for thing in gc.get_objects())


def test_memory_is_for_open_spans_only():
    """A relay of spans, each started under the one that ends next, keeps no chain of the ended ones."""
    before = alive()
    live = LiveAttribution(0)
    for phase in ("generation", None):
        runner = live.start(None, 0, phase)
        for now_ns in range(1, 2_000):
            follower = live.start(runner, now_ns, phase)
            live.end(runner, now_ns, phase)
            runner = follower
        assert alive() - before <= 5
        live.end(runner, 2_000, phase)
    del runner, follower
    assert alive() - before == 1


def test_a_late_child_leaves_its_ended_ancestors_alone():
    """A child that ends after its parent changes nothing in it, nor in what is above."""
    replay = Replay(0)
    top = replay.start(None, None)
    parent = replay.start(top, None)
    replay.now_ns = 4
    child = replay.start(parent, "memory")
    replay.now_ns = 10
    replay.end(parent)
    early = replay.start(parent, None, at_ns=5)
    replay.end(early, None, at_ns=7)
    replay.now_ns = 25
    late = replay.start(parent, "generation")
    replay.now_ns = 30
    replay.end(child)
    replay.now_ns = 40
    replay.end(late)
    replay.end(top)
    assert replay.exclusive == {parent: 4, early: 2, child: 26, late: 15, top: 30}
    assert replay.live.exclusive_ns(replay.handles[parent], 10) == 4
    assert replay.live.totals(40).wall_ns_by_phase == {"memory": 24, "generation": 12}


def test_a_child_that_ended_late_cannot_be_counted_in_its_parent_twice():
    """A back-dated start takes nothing from its parent that was covered already."""
    replay = Replay(0)
    parent = replay.start(None, None)
    first = replay.start(parent, None)
    replay.end(first, at_ns=10)
    second = replay.start(parent, None, at_ns=5)
    replay.end(second, at_ns=20)
    replay.end(parent, at_ns=30)
    assert replay.exclusive[parent] == 10


def test_an_ended_parent_is_not_changed_by_a_back_dated_child():
    """What starts under an ended span, whenever it says it did, leaves that span's value alone."""
    replay = Replay(0)
    parent = replay.start(None, None)
    replay.end(parent, at_ns=10)
    replay.start(parent, None, at_ns=5)
    assert replay.live.exclusive_ns(replay.handles[parent], 10) == 10


def test_structure_gives_its_time_to_the_phase_that_is_still_active():
    """When the phase directly above has ended the one above that gets the time."""
    replay = Replay(0)
    first = replay.start(None, "retrieval")
    replay.now_ns = 10
    replay.end(first)
    top = replay.start(None, "plan")
    middle = replay.start(top, "generation")
    inner = replay.start(middle, "memory")
    replay.now_ns = 20
    replay.end(middle)
    replay.now_ns = 40
    replay.end(inner, None)
    replay.end(top)
    assert replay.live.totals(40).wall_ns_by_phase == {"retrieval": 10, "plan": 30}


def test_what_cannot_be_divided_is_not_lost():
    """Instants too short for so many spans still go to them, not to others."""
    live = LiveAttribution(0)
    outer = live.start(None, 0, "generation")
    for _ in range(70_000):
        live.start(outer, 100, "tool_execution")
    for now_ns in range(101, 300):
        live.end(live.start(outer, now_ns, "stream_consume"), now_ns, "stream_consume")
    assert live.totals(300).wall_ns_by_phase == {"generation": 100, "tool_execution": 200}
