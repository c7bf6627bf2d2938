"""Many turns: what is typical, the slowest, sessions, agents inside a turn."""

import dataclasses

from report.turns import MS, example, span, turn
from turntrace.core.model import Usage
from turntrace.report.blocks import Table
from turntrace.report.case import examine
from turntrace.report.many import many_view
from turntrace.report.markdown import markdown
from turntrace.report.session import is_session, nested_table, session_view
from turntrace.report.strings import UNKNOWN
from turntrace.report.text import text
from turntrace.report.view import Choice


def shifted(record, ms):
    """The turn with its window moved; its spans stay where they are."""
    return dataclasses.replace(
        record, started_ns=record.started_ns + ms * MS, completed_ns=record.completed_ns + ms * MS
    )


def plain_turn(wall, generation, **more):
    """A turn that generates for a while and does nothing else."""
    return examine(turn([span("g", "generation", 0, generation, model="m-1")], wall, **more))


def commands(cases):
    """The commands that open the cases."""
    return [f"turntrace report f.ndjson --turn {number}" for number in range(1, len(cases) + 1)]


def test_median_p95_share_and_the_slowest():
    """Nearest-rank median and P95 over the turns, the share of all wall, the slowest with their commands."""
    cases = [plain_turn(100 * n, 50 * n, run_id=f"r{n}") for n in range(1, 8)]
    assert text(many_view(cases, commands(cases)), bars=True) == (
        "demo-agent · 7 turns                                               0.400 s median · 0.700 s P95\n"
        "\n"
        "\n"
        "WHERE THE TURNS WENT              median s    P95 s      %  turns   calls\n"
        "generation        ████████████▌      0.200    0.350   50.0      7       7\n"
        "unattributed      ████████████▌      0.200    0.350   50.0      7\n"
        "                                     ─────    ─────  ─────      ─\n"
        "whole turn                           0.400    0.700  100.0      7\n"
        "\n"
        "SLOWEST\n"
        "0.700 s  turntrace report f.ndjson --turn 7\n"
        "0.600 s  turntrace report f.ndjson --turn 6\n"
        "0.500 s  turntrace report f.ndjson --turn 5\n"
        "0.400 s  turntrace report f.ndjson --turn 4\n"
        "0.300 s  turntrace report f.ndjson --turn 3\n"
    ).replace("\n\n\n", "\n\n")


def test_a_command_is_never_cut_and_waiting_is_told():
    """However long the path, the command can be pasted; the active time stands beside it when it differs."""
    cases = [examine(example()), plain_turn(100, 100)]
    command = f"turntrace report {'deep/' * 40}f.ndjson --turn 1"
    blocks = many_view(cases, [command, "turntrace report --turn 2"])
    assert f"8.420 s  {command}   7.220 s active\n" in text(blocks, width=80)
    assert "**Slowest**\n\n- 8.420 s: `turntrace" in markdown(blocks)


def test_a_phase_that_some_turns_lack_counts_as_zero_there():
    """The median is over all turns; the column says in how many the phase had time."""
    retried = examine(turn([span("w", "retry_wait", 0, 100)], 100))
    cases = [retried, plain_turn(100, 100), plain_turn(100, 100)]
    out = text(many_view(cases, commands(cases)))
    assert [line.split() for line in out.splitlines() if line.startswith("retry_wait")] == [
        ["retry_wait", "0.000", "0.100", "33.3", "1", "1"]
    ]


def test_turns_without_an_end_are_named_and_left_out():
    """Status and count stand in the title, the note says that no time includes them."""
    lost = examine(dataclasses.replace(example(), completed_ns=None, status="interrupted"))
    cases = [plain_turn(100, 100), lost, plain_turn(200, 200, status="error", agent="other")]
    out = text(many_view(cases, commands(cases)))
    assert "demo-agent and 1 more agent · 3 turns, 1 error, 1 interrupted" in out
    assert "1 unfinished left out" in out
    assert "--turn 2" not in out
    assert "WHERE" not in text(many_view([lost, lost], ["a", "b"]))


def test_agents_are_counted():
    """The first agent is named, the others are counted."""
    cases = [plain_turn(100, 100, agent=name) for name in ("a", "b", "c", "b")]
    assert text(many_view(cases, commands(cases))).startswith("a and 2 more agents · 4 turns ")


def test_small_phases_are_folded_turn_by_turn():
    """The folded row has its own median, not a sum of medians; --all unfolds it."""
    spans = [span("g", "generation", 0, 985), span("p", "plan", 985, 990), span("m", "memory", 990, 995)]
    cases = [examine(turn(spans, 1000)), examine(turn(spans, 1000))]
    assert "\n2 more phases                        0.010" in text(many_view(cases, commands(cases)))
    everything = text(many_view(cases, commands(cases), Choice(everything=True)))
    assert "\nplan " in everything
    assert "more phases" not in everything


def test_many_turns_by_tool_and_model():
    """Tools and models over turns, with everything else as a row; --top limits the slowest."""
    cases = [examine(example()), examine(example())]
    rows = text(many_view(cases, commands(cases), Choice(by="tool", top=1))).splitlines()
    assert [row.split()[0] for row in rows[4:9]] == ["search", "fetch", "edit", "everything", "unattributed"]
    assert sum("--turn" in row for row in rows) == 1
    assert "\ngpt-demo " in text(many_view(cases, commands(cases), Choice(by="model")))


def test_a_session_is_one_id_and_one_turn_after_another():
    """Overlapping turns, different ids or none are no session."""
    one = example()
    assert is_session([examine(one), examine(shifted(one, 9000))])
    assert not is_session([examine(one), examine(shifted(one, 5000))])
    assert not is_session([examine(one), examine(shifted(dataclasses.replace(one, session_id="s2"), 9000))])
    assert not is_session([examine(turn([], 1)), examine(shifted(turn([], 1), 9000))])
    assert not is_session([examine(one)])


def test_a_session_turn_by_turn_and_in_sum():
    """A line for each turn, then the phases of all; what a turn does not know is a dash."""
    lost = dataclasses.replace(turn([], 1, session_id="s1"), completed_ns=None, status="interrupted")
    cases = [examine(example()), examine(example()), examine(lost)]
    out = text(session_view(cases))
    rows = [line.split() for line in out.splitlines()]
    assert "demo-agent · 3 turns, 1 interrupted" in out
    assert "16.840 s wall" in out
    assert ["turn", "1", "8.420", "7.220", "4", "3", "18,240", "most", "in", "generation"] in rows
    assert ["turn", "3", "interrupted", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN] in rows
    assert ["search", "1.810", "10.7", "2", "2.680", "2.680"] in rows
    assert ["16.840", "100.0", "16.840", "1", "unfinished", "left", "out"] in rows


def test_a_session_without_waiting_shows_its_wall_alone():
    """Active time is shown when it differs."""
    cases = [plain_turn(100, 100, session_id="s"), plain_turn(100, 100, session_id="s")]
    blocks = session_view(cases, Choice(everything=True))
    assert blocks[0].figures == "0.200 s wall"
    assert [block.heading for block in blocks if isinstance(block, Table)] == [
        "TURN BY TURN",
        "WHERE THE SESSION WENT",
    ]


def test_tools_without_a_name_are_in_the_sum_of_the_session():
    """What the named tools leave of the phase has a row of its own, so that rows add up."""
    spans = [span("a", "tool_execution", 0, 60, tool="bash"), span("b", "tool_execution", 60, 100)]
    cases = [examine(turn(spans, 100, session_id="s"))] * 2
    rows = [line.split() for line in text(session_view(cases)).splitlines()]
    assert ["unnamed", "0.080", "40.0", "2", "0.080", "0.080"] in rows


def test_agents_inside_a_turn_have_their_own_table():
    """A line for each nested turn."""
    out = text([nested_table([plain_turn(100, 100, agent="researcher", counters={"tool_calls": 2})])])
    assert out.startswith("AGENTS INSIDE IT ")
    assert [line.split() for line in out.splitlines()][1][:3] == ["researcher", "0.100", "0.100"]


def trial(number, session):
    """A trial of a benchmark that took a million tokens."""
    record = turn(
        [span("g", "generation", 0, 90, model="m-1")],
        100,
        run_id=f"r{number}",
        session_id=session,
        counters={"model_requests": 1},
        usage=(Usage(span_id="g", input_tokens=1_000_000, output_tokens=10),),
    )
    return examine(shifted(record, number * 1000))


def test_r44_a_run_that_went_on_tells_all_of_it_and_its_last_part():
    """Three trials, stopped, and one more: four million tokens in all, one million in the newest session."""
    cases = [trial(1, "first"), trial(2, "first"), trial(3, "first"), trial(4, "again")]
    told = text(many_view(cases, commands(cases))).splitlines()
    assert "4 model calls" in told[1]
    assert "4,000,000 tokens in" in told[1]
    assert told[2].startswith("newest session: 1 of 4 turns · ")
    assert "1,000,000 tokens in" in told[2]


def test_without_sessions_of_several_turns_there_is_no_newest():
    """A session for each turn, one for all, or none: the line would say nothing."""
    for sessions in (("a", "b"), ("", ""), ("a", "")):
        cases = [trial(number, session) for number, session in enumerate(sessions)]
        assert "newest session" not in text(many_view(cases, commands(cases)))
