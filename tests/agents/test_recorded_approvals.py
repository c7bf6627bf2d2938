"""Turns in which a person approved of the tool, recorded once from real coding agents on a terminal.

``tests/agents/record.py`` records them anew. The wait for the person is known from the screen.
"""

import pytest

from agents.approval_scene import APPROVALS
from agents.test_recorded_agents import lines, truth, turns_of
from turntrace.core.model import Turn
from turntrace.report.case import examine

MS = 1_000_000
GENERATION_SLACK_MS = 150
WAIT_EXCESS_MS = 500
"""The agent knows of the tool before the question is drawn, and starts it after the key was read."""

BESIDE = {"codex": 1}
"""Codex asks for a title in a thread of its own: a turn that is no person's."""


def read(name, tmp_path) -> tuple[Turn, list[Turn]]:
    """The turn of the prompt, and those beside it."""
    found = [
        turn
        for turn in turns_of(tmp_path, lines(f"{name}-approval"), whole_run=True)
        if turn.parent_run_id is None
    ]
    (main,) = (turn for turn in found if turn.counters["tool_calls"])
    return main, [turn for turn in found if turn is not main]


@pytest.mark.parametrize("name", APPROVALS)
def test_the_wait_for_a_person_is_the_wait_on_the_screen(name, tmp_path):
    """It takes no time of the model or the tool, and the turn is not active meanwhile."""
    known = truth(f"{name}-approval")
    turn, _ = read(name, tmp_path)
    case = examine(turn).attribution
    waited_ms = known["approval"]["answered_ns"] - known["approval"]["asked_ns"]
    (row,) = (row for row in case.phases if row.name == "permission_wait")
    excess_ms = (row.wall_share_ns - waited_ms) / MS
    assert 0 <= excess_ms <= WAIT_EXCESS_MS
    assert (
        case.wall_ns - case.active_ns <= row.wall_share_ns
    )  # a call may still end while the question stands
    (tool,) = (span for span in turn.spans if span.phase == "tool_execution")
    ran = known["tool"]
    assert tool.tool == ran["name"]
    assert tool.start_ns <= ran["start_ns"] < ran["end_ns"] <= tool.end_ns


@pytest.mark.parametrize("name", APPROVALS)
def test_the_turn_ends_with_its_last_answer(name, tmp_path):
    """All calls lie in it, as long as the server's, and nothing is told of another turn's."""
    known = truth(f"{name}-approval")
    turn, beside = read(name, tmp_path)
    assert len(beside) == BESIDE.get(name, 0)
    calls = sorted(
        (span for span in turn.spans if span.phase == "generation"), key=lambda span: span.start_ns
    )
    assert turn.started_ns <= calls[0].start_ns
    assert calls[-1].end_ns <= turn.completed_ns
    wire = [one for one in known["wire"] if one["what"] != "beside" or not beside]
    assert turn.counters["model_requests"] == len(wire) == len(calls)
    for one, call in zip(wire, calls, strict=True):
        assert (call.end_ns - call.start_ns) / MS == pytest.approx(
            one["done_ms"] - one["received_ms"], abs=GENERATION_SLACK_MS
        )
    assert examine(turn).attribution.coverage >= 0.9


@pytest.mark.parametrize("name", APPROVALS)
def test_tokens_are_those_of_the_turns_own_calls(name, tmp_path):
    """Also where another thread of the agent asks the model at the same time."""
    known = truth(f"{name}-approval")
    turn, beside = read(name, tmp_path)
    for found, kinds in (
        (turn, {"tool", "answer"} | (set() if beside else {"beside"})),
        *((one, {"beside"}) for one in beside),
    ):
        usage = examine(found).usage
        sent = [one["tokens"] for one in known["wire"] if one["what"] in kinds]
        assert usage.input_tokens == sum(one["input"] for one in sent)
        assert usage.output_tokens == sum(one["output"] for one in sent)
        assert usage.cached_input_tokens == sum(one["cached"] for one in sent)
