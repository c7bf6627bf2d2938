"""Findings: only what the spans prove, on the critical path, and in the author's hands."""

import dataclasses

import pytest

from report.turns import MS, example, span, turn
from turntrace.report.case import examine
from turntrace.report.findings import find
from turntrace.report.rounding import SECONDS
from turntrace.report.strings import plain


def found(record):
    """The findings as (code, label, message, ms)."""
    return [
        (one.code, plain(one.label), plain(one.message), one.saves_ns / MS)
        for one in find(examine(record), SECONDS)
    ]


def test_the_example_has_three():
    """The largest saving comes first, each with its evidence and its spans."""
    assert found(example()) == [
        ("retry", "retry_wait", "one 429 in round 2; nothing else ran while it waited", 1000),
        ("compaction", "compaction", "one compaction kept the turn waiting", 510),
        ("tool_tail", "search", "ran 0.470 s after fetch was done", 470),
    ]
    spans = [one.span_ids for one in find(examine(example()), SECONDS)]
    assert spans == [("rw",), ("co",), ("t1",)]


def test_several_waits_name_their_reasons():
    """Reasons are counted, the most frequent first, and rounds are counted when there are several."""
    waits = [
        span(f"w{n}", "retry_wait", n * 100, n * 100 + 50, round=n, attributes={"turntrace.reason": reason})
        for n, reason in enumerate(["429", "timeout", "429"], start=1)
    ]
    [(code, _, message, saves)] = found(turn(waits, 1000))
    assert (code, saves) == ("retry", 150)
    assert message == "3 waits (429 x2, timeout) in 3 rounds; nothing else ran while they waited"


def test_a_wait_beside_other_work_does_not_claim_to_be_alone():
    """Nothing is said that the spans do not show; without a reason none is invented."""
    spans = [span("a", "tool_execution", 0, 80), span("w", "retry_wait", 0, 100)]
    [(_, label, message, saves)] = found(turn(spans, 200))
    assert (label, message, saves) == ("retry_wait", "one wait", 100)


def test_a_wait_off_the_critical_path_is_no_finding():
    """A retry that the turn never waited for saves nothing."""
    spans = [span("w", "retry_wait", 0, 80), span("a", "tool_execution", 0, 100)]
    assert found(turn(spans, 100)) == []


def test_less_than_a_percent_is_no_finding():
    """What saves under 1 % of the wall is noise."""
    assert found(turn([span("w", "retry_wait", 0, 9.9)], 1000)) == []
    assert len(found(turn([span("w", "retry_wait", 0, 10)], 1000))) == 1


def test_a_turn_without_an_end_has_no_findings():
    """Without a wall nothing can be saved."""
    assert found(dataclasses.replace(example(), completed_ns=None)) == []
    assert found(turn([], 0)) == []


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        ("provider_queue", "one call waited for a free slot in round 1"),
        ("tool_queue", "one call waited for a free slot in round 1"),
        ("compaction", "one compaction in round 1 kept the turn waiting"),
        ("stream_consume", "the caller paused once between two items of a stream"),
        ("reconnect_wait", "one wait in round 1; nothing else ran while it waited"),
    ],
)
def test_other_lost_time(phase, message):
    """Queues, compactions, slow consumers and reconnects are findings when the turn waits for them."""
    assert [one[2] for one in found(turn([span("a", phase, 0, 100, round=1)], 200))] == [message]


@pytest.mark.parametrize("phase", ["permission_wait", "generation", "tool_execution", "plan", "other"])
def test_what_nobody_can_switch_off_is_no_finding(phase):
    """The human, the model and a single tool are not the agent's to remove."""
    assert found(turn([span("a", phase, 0, 100, round=1)], 100)) == []


def test_the_tail_of_the_last_tool_is_counted_once_per_tool():
    """Several tails of one tool are one finding; different neighbours are not named one by one."""
    spans = [
        span("a1", "tool_execution", 0, 300, tool="slow"),
        span("b1", "tool_execution", 0, 100, tool="fast"),
        span("a2", "tool_execution", 500, 900, tool="slow"),
        span("b2", "tool_execution", 500, 800, tool="quick"),
    ]
    [(code, label, message, saves)] = found(turn(spans, 1000))
    assert (code, label, saves) == ("tool_tail", "slow", 300)
    assert message == "ran 0.300 s after the calls beside it were done (2 times in all)"


def test_the_longest_neighbour_decides_the_tail():
    """The tail starts when the last call beside the tool ends, in a chain of overlaps too."""
    spans = [
        span("a", "tool_execution", 0, 100, tool="a"),
        span("b", "tool_execution", 50, 200, tool="b"),
        span("c", "tool_execution", 150, 500, tool="c"),
    ]
    assert found(turn(spans, 500)) == [("tool_tail", "c", "ran 0.300 s after b was done", 300)]


def test_tools_that_end_together_have_no_tail():
    """Equal ends save nothing."""
    spans = [span("a", "tool_execution", 0, 100, tool="a"), span("b", "tool_execution", 20, 100, tool="b")]
    assert found(turn(spans, 100)) == []


def test_a_tail_is_cut_to_the_turn():
    """A tool that outlives the turn saves at most what the turn waited."""
    spans = [span("a", "tool_execution", 0, 9000, tool="a"), span("b", "tool_execution", 0, 60, tool="b")]
    assert [one[3] for one in found(turn(spans, 100))] == [40]


def test_calls_of_one_round_one_after_another():
    """Calls that one answer asked for could have run side by side."""
    spans = [span(f"t{n}", "tool_execution", n * 100, n * 100 + 90, round=1, tool=f"t{n}") for n in range(3)]
    assert found(turn(spans, 300)) == [
        (
            "serial_tools",
            "tool_execution",
            "3 calls of round 1 ran one after another; the longest takes 0.090 s",
            180,
        )
    ]


@pytest.mark.parametrize("rounds", [(1, 2), (None, None)])
def test_calls_of_different_or_unknown_rounds_may_depend_on_each_other(rounds):
    """Without the proof of one round nothing is claimed."""
    spans = [span(f"t{n}", "tool_execution", n * 100, n * 100 + 90, round=rounds[n]) for n in range(2)]
    assert found(turn(spans, 300)) == []


def test_calls_that_abut_do_not_overlap():
    """Half-open: a call that starts where another ends did not run beside it."""
    spans = [span("a", "tool_execution", 0, 100, tool="a"), span("b", "tool_execution", 100, 300, tool="b")]
    assert found(turn(spans, 300)) == []


@pytest.mark.parametrize("second", [(0, 100), (320, 400)])
def test_calls_off_the_critical_path_save_nothing(second):
    """Beside a longer generation neither a tail nor a sequence of calls is worth anything."""
    spans = [
        span("g", "generation", 0, 1000),
        span("a", "tool_execution", 0, 300, tool="a", round=1),
        span("b", "tool_execution", *second, tool="b", round=1),
    ]
    assert found(turn(spans, 1000)) == []


def test_a_batch_is_not_a_call_and_its_calls_are_siblings():
    """The span around parallel calls is left out; its calls are compared with each other."""
    spans = [
        span("batch", "tool_execution", 0, 500, round=1),
        span("a", "tool_execution", 0, 500, "batch", tool="a"),
        span("b", "tool_execution", 0, 200, "batch", tool="b"),
    ]
    assert found(turn(spans, 500)) == [("tool_tail", "a", "ran 0.300 s after b was done", 300)]


def test_a_call_that_waited_for_a_person_is_left_out():
    """How long a person takes is not the agent's to change."""
    spans = [
        span("a", "tool_execution", 0, 500, tool="a", round=1),
        span("p", "permission_wait", 0, 400, "a"),
        span("b", "tool_execution", 0, 100, tool="b", round=1),
    ]
    assert found(turn(spans, 500)) == []


def test_the_round_of_an_ancestor_counts():
    """A wait inside a generation is in the generation's round."""
    spans = [
        span("g", "generation", 0, 200, round=7),
        span("w", "retry_wait", 50, 150, "g", attributes={"turntrace.reason": "5xx"}),
    ]
    assert found(turn(spans, 200))[0][2] == "one 5xx in round 7; nothing else ran while it waited"


def test_the_nearest_round_counts():
    """A span with a round of its own keeps it, whatever lies above."""
    spans = [span("n", None, 0, 200, round=1), span("w", "retry_wait", 50, 150, "n", round=2)]
    assert found(turn(spans, 200))[0][2] == "one wait in round 2; nothing else ran while it waited"
