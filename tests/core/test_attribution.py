"""Attribution of turns: the worked examples, the warnings and the laws that hold for every forest."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.forests import forests, make, moved, nested_turn, windows
from turntrace.core.attribution import MAX_NAMED_SPANS, attribute
from turntrace.core.results import Gap, PathSection
from turntrace.core.zero_attribution import ZeroSpan, zero_attribution

MS = 1_000_000
EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "attribution.json").read_text())


def turn(spans, end=100, start=0):
    return attribute(spans, started_ns=start, completed_ns=end, root_id="root")


def ids(rows):
    return [times.span.span_id for times in rows]


@pytest.mark.parametrize("example", EXAMPLES, ids=[example["id"] for example in EXAMPLES])
def test_worked_examples(example):
    """Parents, exclusive times, wall shares, attributed and coverage of the twelve examples."""
    spans = [
        make(
            str(span["id"]),
            span["start_ms"] * MS,
            span["end_ms"] * MS,
            parent=None if span["otel_parent_id"] is None else str(span["otel_parent_id"]),
            phase=span["name"].split()[0],
        )
        for span in example["spans"]
    ]
    expected = example["better"]
    result = attribute(spans, started_ns=0, completed_ns=example["wall_ms"] * MS, root_id=None)
    by_id = {times.span.span_id: times for times in result.spans}
    for number, span in enumerate(expected["spans"]):
        times = by_id[str(number)]
        assert times.parent_id == (None if span["parent_id"] is None else str(span["parent_id"]))
        assert times.exclusive_ns == span["self_ms"] * MS
        assert times.wall_share_ns == pytest.approx(span["wall_share_ms"] * MS, abs=1)
    assert result.attributed_ns == expected["attributed_ms"] * MS
    assert result.coverage == pytest.approx(expected["coverage"])
    assert sum(times.wall_share_ns for times in result.spans) == result.attributed_ns


@given(forests(), windows())
def test_sums_are_exact(spans, window):
    """Shares sum to attributed, with unattributed to the wall; the path is the window, without a break."""
    low, high = window
    result = turn(spans, high, low)
    assert sum(times.wall_share_ns for times in result.spans) == result.attributed_ns
    assert result.attributed_ns + result.unattributed_ns == result.wall_ns == high - low
    for times in result.spans:
        clipped = min(times.span.end_ns, high) - max(times.span.start_ns, low)
        assert 0 <= times.exclusive_ns <= max(0, clipped)
        assert times.phase is not None or times.wall_share_ns == 0
    now = high
    for section in result.critical_path:
        assert section.end_ns == now > section.start_ns
        now = section.start_ns
    assert now == low
    assert sum(times.critical_ns for times in result.spans) == result.critical_path_ns


@given(forests(), windows(), st.randoms(use_true_random=False))
def test_order_does_not_matter(spans, window, rng):
    """Any order of the input gives the same result."""
    low, high = window
    shuffled = list(spans)
    rng.shuffle(shuffled)
    assert turn(shuffled, high, low) == turn(spans, high, low)


@given(forests(least=1), st.randoms(use_true_random=False))
def test_order_does_not_matter_for_what_is_damaged(spans, rng):
    """Duplicates and cycles are settled without regard to order."""
    damaged = [
        *spans,
        *(replace(span, end_ns=span.end_ns + rng.randint(-1, 1)) for span in spans),
        make("x", 0, 5, parent="y"),
        make("y", 1, 4, parent="x"),
    ]
    shuffled = list(damaged)
    rng.shuffle(shuffled)
    assert turn(shuffled, 12) == turn(damaged, 12)


@given(forests(), windows(), st.integers(-(10**18), 2 * 10**18))
def test_a_shift_of_all_times_changes_nothing(spans, window, offset):
    """Only differences between times matter."""
    low, high = window
    here, there = turn(spans, high, low), turn(moved(spans, 1, offset), high + offset, low + offset)
    assert figures(there) == figures(here)
    assert [part.start_ns - offset for part in there.critical_path] == [
        part.start_ns for part in here.critical_path
    ]


@given(forests(), windows())
def test_names_do_not_matter(spans, window):
    """Ids that are renamed in their order give the same figures."""
    low, high = window
    renamed = [replace(span, span_id=f"z{span.span_id}", parent_id=f"z{span.parent_id}") for span in spans]
    assert figures(turn(renamed, high, low)) == figures(turn(spans, high, low))


@given(forests(), windows(), st.integers(2, 10**9))
def test_scaling_scales(spans, window, factor):
    """All results scale with the times; a wall share within two nanoseconds of the smaller turn."""
    low, high = window
    small, large = turn(spans, high, low), turn(moved(spans, factor), high * factor, low * factor)
    assert large.attributed_ns == small.attributed_ns * factor
    assert large.busy_ns == small.busy_ns * factor
    assert large.active_ns == small.active_ns * factor
    assert large.max_concurrency == small.max_concurrency
    for one, many in zip(small.spans, large.spans, strict=True):
        assert many.exclusive_ns == one.exclusive_ns * factor
        assert many.critical_ns == one.critical_ns * factor
        assert abs(many.wall_share_ns - one.wall_share_ns * factor) <= 2 * factor


@given(forests(phases=("generation", "tool_execution", "stream_consume", None)), windows(), st.data())
def test_another_phase_span_never_lowers_attributed(spans, window, data):
    """A phase span more can only add; a phase that becomes structure can only take away."""
    low, high = window
    parent = data.draw(st.sampled_from([None, *(span.span_id for span in spans)]))
    start, end = data.draw(st.integers(-2, 14)), data.draw(st.integers(-2, 14))
    more = [*spans, make("new", start, end, parent=parent)]
    fewer = [*spans, make("new", start, end, parent=parent, phase=None)]
    assert turn(fewer, high, low).attributed_ns == turn(spans, high, low).attributed_ns
    assert turn(more, high, low).attributed_ns >= turn(spans, high, low).attributed_ns


@given(st.lists(st.integers(0, 9), max_size=8), st.booleans())
def test_strict_sequences_and_nests_equal_zero(steps, nested):
    """For strictly sequential or strictly nested phases the exclusive times are zero's."""
    edges = [sum(steps[:index]) + index for index in range(len(steps) + 1)]
    if nested:
        deepest = len(steps)
        spans = [
            make(str(index), edges[index], 500 - edges[index], parent=str(index - 1) if index else None)
            for index in range(deepest)
        ]
    else:
        spans = [make(str(index), edges[index], edges[index + 1]) for index in range(len(steps))]
    stored = sorted(spans, key=lambda span: span.end_ns)
    zero = zero_attribution(
        [
            ZeroSpan(
                name=span.span_id,
                start_ns=span.start_ns,
                end_ns=span.end_ns,
                duration_ns=span.end_ns - span.start_ns,
            )
            for span in stored
        ],
        wall_ns=500,
    )
    expected = {span.span_id: times.exclusive_ns for span, times in zip(stored, zero.spans, strict=True)}
    result = turn(spans, 500)
    assert {times.span.span_id: times.exclusive_ns for times in result.spans} == expected


def figures(result):
    """The numbers of a result, by place."""
    return (
        [
            (times.phase, times.exclusive_ns, times.wall_share_ns, times.critical_ns, times.detached)
            for times in result.spans
        ],
        [(totals.name, totals.count, totals.inclusive_ns, totals.busy_ns) for totals in result.phases],
        (result.attributed_ns, result.unattributed_ns, result.busy_ns, result.active_ns),
        (result.critical_path_ns, result.root_exclusive_ns, result.root_critical_ns),
        dict(result.max_concurrency),
        [part.ns for part in result.unattributed],
    )


def test_wrappers_alone_cover_nothing():
    """With every model and tool span gone the wrappers that are left say so: coverage <= 0.05."""
    wrappers = [
        make("agent", 1, 99, phase=None),
        make("graph", 2, 98, parent="agent", phase=None),
        make("node", 3, 97, parent="graph", phase="other"),
        make("step", 4, 50, parent="node", phase=None),
    ]
    work = [make("chat", 5, 45, parent="step"), make("tool", 50, 90, parent="node", phase="tool_execution")]
    assert turn(wrappers + work).coverage == 0.8
    result = turn(wrappers)
    assert result.coverage <= 0.05
    assert [(part.span_id, part.name, part.ns) for part in result.unattributed] == [
        ("node", "nnode", 48),
        ("step", "nstep", 46),
        ("agent", "nagent", 2),
        ("graph", "ngraph", 2),
    ]
    assert result.unattributed_ns == 100


def test_overlapping_siblings_cover_their_parent_once():
    """A parent's exclusive time is what no child covers, however much the children overlap."""
    spans = [
        make("p", 0, 100, phase=None),
        make("a", 10, 60, parent="p"),
        make("b", 40, 90, parent="p"),
        make("c", 20, 30, parent="p"),
    ]
    assert [times.exclusive_ns for times in turn(spans).spans] == [20, 50, 10, 50]


def test_stream_consume_gives_way_to_everything_else():
    """A pause of the consumer has the time in which nothing else is in the frontier; its parent has none."""
    spans = [
        make("g", 0, 100),
        make("pause", 20, 80, parent="g", phase="stream_consume"),
        make("tool", 40, 60, phase="tool_execution"),
    ]
    shares = {times.span.span_id: times.wall_share_ns for times in turn(spans).spans}
    assert shares == {"g": 40, "pause": 40, "tool": 20}


def test_active_time_is_without_the_human_alone():
    """Waiting for a person is not active time, unless something else is in the frontier meanwhile."""
    spans = [
        make("tool", 0, 50, phase="tool_execution"),
        make("wait", 10, 40, parent="tool", phase="permission_wait"),
        make("other-wait", 20, 30, phase="permission_wait"),
        make("fetch", 35, 60, phase="tool_execution"),
    ]
    assert turn(spans).active_ns == 100 - 25


def test_parents_that_had_not_started_and_parents_that_had_ended():
    """A span counts for the nearest phase above that is active, whatever lies between."""
    spans = [
        make("top", 0, 100),
        make("mid", 40, 60, parent="top"),
        make("leaf", 20, 80, parent="mid"),
    ]
    shares = {times.span.span_id: times.wall_share_ns for times in turn(spans).spans}
    assert shares == {"top": 40, "mid": 0, "leaf": 60}


def test_gaps_name_their_neighbours():
    """A stretch of a millisecond without a phase is listed between the outermost spans around it."""
    spans = [
        make("a", 0, 3 * MS),
        make("a1", 1 * MS, 3 * MS, parent="a"),
        make("b", 5 * MS, 8 * MS),
        make("b1", 5 * MS, 6 * MS, parent="b"),
        make("c", 8 * MS + 999_999, 9 * MS),
        make("structure", 0, 10 * MS, phase=None),
    ]
    assert turn(spans, 10 * MS).gaps == (
        Gap(start_ns=3 * MS, end_ns=5 * MS, after="a", before="b"),
        Gap(start_ns=9 * MS, end_ns=10 * MS, after="c", before=None),
    )
    assert turn([], 2 * MS).gaps == (Gap(start_ns=0, end_ns=2 * MS, after=None, before=None),)


def test_the_span_that_starts_after_a_gap_is_the_outermost():
    """Of spans that start together the longest is named."""
    spans = [make("a", 2 * MS, 3 * MS), make("b", 2 * MS, 5 * MS), make("c", 2 * MS, 4 * MS)]
    assert turn(spans, 5 * MS).gaps == (Gap(start_ns=0, end_ns=2 * MS, after=None, before="b"),)


@pytest.mark.parametrize(
    ("spans", "code", "named"),
    [
        ([make("a", 0, 9, parent="b"), make("b", 1, 9, parent="a")], "cycle", ("a", "b")),
        ([make("a", 0, 9), make("a", 0, 9, phase="plan")], "duplicate_span", ("a",)),
        ([make("a", 0, 9), make("b", 1, 10, parent="a"), make("c", 2, 10, parent="b")], "detached", ("b",)),
        ([make("a", 9, 5)], "span_end_before_start", ("a",)),
        ([make("a", -1, 5), make("b", 0, 100)], "span_outside_window", ("a",)),
    ],
)
def test_damage_is_reported_once(spans, code, named):
    """Each kind of damage is one warning that names the spans."""
    warnings = [warning for warning in turn(spans).warnings if warning.code == code]
    assert [warning.span_ids for warning in warnings] == [named]
    assert warnings[0].message.endswith(f": {len(named)}")


def test_a_sound_turn_has_no_warnings():
    """Nothing is reported about spans that nest inside the window, touching its ends included."""
    assert turn([make("a", 0, 100, parent="root"), make("b", 0, 100, parent="a")]).warnings == ()


def test_a_warning_names_a_bounded_number_of_spans():
    """The message has the true number, the list an end."""
    spans = [make(f"{number:04d}", 90, 80) for number in range(MAX_NAMED_SPANS + 50)]
    (warning,) = turn(spans).warnings
    assert len(warning.span_ids) == MAX_NAMED_SPANS
    assert warning.message.endswith(": 150")


def test_a_span_that_outlives_the_turn_is_detached_and_cut():
    """It keeps its true end and is flagged; in the sums only its part of the window counts."""
    result = turn([make("a", 90, 300)])
    (times,) = result.spans
    assert (times.span.end_ns, times.exclusive_ns, times.detached) == (300, 10, True)
    assert [warning.code for warning in result.warnings] == ["detached", "span_outside_window"]


def test_a_span_without_window_keeps_its_time():
    """In an interrupted turn exclusive times and detached flags stand, uncut."""
    spans = [make("a", -50, 20), make("b", 0, 30, parent="a")]
    result = attribute(spans, started_ns=0, completed_ns=None, root_id="absent")
    assert [times.exclusive_ns for times in result.spans] == [50, 30]
    assert [times.detached for times in result.spans] == [False, True]
    assert [times.parent_id for times in result.spans] == ["absent", "a"]
    assert [warning.code for warning in result.warnings] == ["detached"]


def test_a_backward_window_is_empty():
    """A turn that completed before it started has no time, and no division by it."""
    result = turn([make("a", 0, 9)], end=-5)
    assert (result.wall_ns, result.attributed_ns, result.coverage) == (0, 0, 0.0)


def test_a_turn_without_spans():
    """Everything is unattributed, and the whole path is the root's."""
    result = turn([])
    assert (result.unattributed_ns, result.root_exclusive_ns, result.critical_path_ns) == (100, 100, 0)
    assert result.critical_path == (PathSection(span_id="root", start_ns=0, end_ns=100),)
    assert (result.coverage, result.parallelism) == (0.0, None)


def test_a_large_turn_keeps_its_sums():
    """Hundreds of overlapping, detached and parallel spans still add up to the nanosecond."""
    spans = nested_turn(2_000)
    random.Random(1).shuffle(spans)
    result = turn(spans, 1_000_000)
    assert sum(times.wall_share_ns for times in result.spans) == result.attributed_ns
    assert sum(part.end_ns - part.start_ns for part in result.critical_path) == result.wall_ns
    assert sum(part.ns for part in result.unattributed) <= result.unattributed_ns
