"""Waiting for a person is not the agent's time."""

import pytest

from core.raws import MS, agent, chat, own, raw, tool
from turntrace.core.turns import assemble
from turntrace.report.case import examine
from turntrace.report.json_report import turn_json

S = 1000
CLAUDE = "com.anthropic.claude_code.tracing"


def asked_by_turntrace():
    """The agent's own phase."""
    return own("w", 1 * S, 31 * S, "permission_wait", parent="r")


def asked_by_claude():
    """What Claude Code writes while it asks."""
    attributes = {"span.type": "tool.blocked_on_user"}
    return raw("w", 1 * S, 31 * S, parent="r", name="blocked", scope=CLAUDE, attributes=attributes)


@pytest.mark.parametrize("asked", [asked_by_turntrace, asked_by_claude])
def test_complaint_26_an_approval_is_not_the_agents_time(asked):
    """30 s of approval are 30 s of permission_wait; active time, and with it every comparison, leaves them out."""
    turn, *_ = assemble(
        [
            agent("r", 0, 36 * S),
            chat("g", 0, 1 * S, parent="r"),
            asked(),
            tool("t", 31 * S, 34 * S, parent="r"),
            chat("h", 34 * S, 36 * S, parent="r"),
        ]
    )
    found = turn_json(examine(turn))
    phases = {phase["phase"]: phase for phase in found["phases"]}
    waited = phases["permission_wait"]
    assert (waited["wall_share_ns"], waited["kind"], waited["controllable"]) == (30 * S * MS, "human", "no")
    assert (found["wall_ns"], found["active_ns"]) == (36 * S * MS, 6 * S * MS)
    assert phases["tool_execution"]["wall_share_ns"] == 3 * S * MS
