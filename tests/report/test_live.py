"""A running turn as a screen and as lines."""

import dataclasses

from report.turns import HOSTILE, MS, START_NS, example, span, turn
from turntrace.core.model import Usage
from turntrace.core.running import running
from turntrace.report.live import Changes, live_view
from turntrace.report.text import text


def half_way():
    """The example as it is at 5 s: a person is being asked."""
    now_ns = START_NS + 5000 * MS
    spans = tuple(
        dataclasses.replace(one, end_ns=now_ns, outcome="incomplete") if one.end_ns > now_ns else one
        for one in example().spans
        if one.start_ns < now_ns
    )
    return dataclasses.replace(
        example(), spans=spans, completed_ns=None, status="interrupted", usage=example().usage[:2]
    )


def shown(record, rows=50):
    """The screen as text."""
    return text(live_view(running(record, START_NS + 5500 * MS), rows))


def test_the_screen_says_what_the_turn_does_now():
    """Elapsed time, the current phase and for how long, time by phase so far, tokens so far."""
    screen = shown(half_way())
    assert "5.500 s wall" in screen
    assert "now: permission_wait for 1.135 s" in screen
    [row] = [line for line in screen.splitlines() if line.startswith("permission_wait ")][:1]
    assert "1.135" in row
    assert "8,500 from 2 of 4 calls" in screen
    assert "TREE" in screen


def test_the_newest_spans_keep_what_they_lie_in():
    """With little room the tree has the newest spans and their parents; with none there is no tree."""
    screen = shown(half_way(), rows=3)
    tree = screen[screen.index("TREE") :]
    assert "edit" in tree
    assert "permission_wait" in tree
    assert "search" not in tree
    assert "TREE" not in shown(half_way(), rows=0)


def test_nothing_with_a_phase_and_several_at_once():
    """Between phases it is said so; of several the first three are named."""
    assert "now: nothing that has a phase" in shown(turn([span("a", "plan", 0, 5)], 0))
    tools = [span(f"t{n}", "tool_execution", n, n, tool=f"tool-{n}", outcome="incomplete") for n in range(6)]
    assert "tool-3" in shown(turn(tools, 0), rows=0).split("WHERE")[0]
    assert "tool-4" not in shown(turn(tools, 0), rows=0).split("WHERE")[0]
    other = span("o", "made_up", 0, 0, outcome="incomplete")
    assert "now: made_up" in shown(turn([other], 0))


def test_a_ring_of_parents_ends():
    """The newest spans are found though their parents are each other's."""
    spans = [span("a", "plan", 0, 5, "b"), span("b", "plan", 0, 6, "a")]
    assert "TREE" in shown(turn(spans, 0))


def lines_of(changes, record, *, is_over=False):
    """The lines of a turn without their runs of blanks."""
    return [" ".join(line.split()) for line in changes.of(record, is_over=is_over)]


def test_a_line_for_each_change_and_none_twice():
    """Begins, ends, the end of the turn; what was told is not told again."""
    changes = Changes()
    first = dataclasses.replace(half_way(), spans=half_way().spans[:3])
    assert lines_of(changes, first) == [
        "0.000 demo-agent turn run-1 begins",
        "0.016 demo-agent prompt_build took 0.016 s (round 1)",
        "0.020 demo-agent tool_partition took 0.004 s (round 1)",
        "1.020 demo-agent generation took 1.000 s (round 1)",
    ]
    assert lines_of(changes, first) == []
    later = lines_of(changes, half_way())
    assert "4.323 demo-agent edit begins (round 2)" in later
    assert later[-1] == "4.365 demo-agent permission_wait begins"
    end = lines_of(changes, example(), is_over=True)
    assert "6.195 demo-agent edit took 1.872 s (round 2)" in end
    assert end[-1] == "8.420 demo-agent turn run-1 ok after 8.420 s, 18,240 tokens in, 214 out"
    assert lines_of(changes, example(), is_over=True) == []


def test_what_failed_and_what_never_ended_is_said():
    """Outcomes other than ok; a turn whose writer is gone has no length."""
    failed = span("t", "tool_execution", 0, 5, tool="x", outcome="error")
    cut = span("o", "plan", 5, 6, outcome="incomplete")
    usage = (Usage(span_id="g", provenance="missing"),)
    record = dataclasses.replace(turn([failed, cut], 9, usage=usage), completed_ns=None, status="interrupted")
    told = lines_of(Changes(), record, is_over=True)
    assert told[1:] == [
        "0.005 demo-agent x took 0.005 s, error",
        "0.005 demo-agent plan begins",
        "demo-agent turn run-1 interrupted",
    ]
    unknown = dataclasses.replace(record, run_id="r2", started_ns=None)
    assert lines_of(Changes(), unknown)[0] == "demo-agent turn r2 begins"


def test_spans_of_turns_that_are_over_are_forgotten():
    """Memory does not grow with the turns of a service."""
    changes = Changes()
    lines_of(changes, example(), is_over=True)
    changes.forget([example()])
    assert (changes._opened, changes._ended) == (set(), set())


def test_names_from_data_cannot_act():
    """Control characters are escaped in lines too."""
    record = turn([span("t", "tool_execution", 0, 1, tool=HOSTILE)], 2, agent=HOSTILE, run_id=HOSTILE)
    assert "\x1b" not in "".join(Changes().of(record, is_over=True))
    assert "\n" not in "".join(Changes().of(record, is_over=True))


def test_structure_is_no_change():
    """Only phases are told."""
    assert len(lines_of(Changes(), turn([span("n", None, 0, 5)], 9))) == 1
