"""Real coding agents, run anew: what is read of their telemetry against the log of the model server."""

import json
import os

import pytest

from agents import setups
from agents.checks import differences
from agents.scene import play
from agents.test_recorded_agents import UNSAID
from turntrace.files.read import read_paths

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]

REQUIRED = "agents" in os.environ.get("TURNTRACE_REQUIRE", "")
REPEATS = int(os.environ.get("TURNTRACE_AGENT_REPEATS", "20"))
ALLOWED = REPEATS // 10
"""How many repeats may be out of bounds: 2 of 20."""


def installed(name):
    """Skip, or with TURNTRACE_REQUIRE=agents fail, where the agent is not installed."""
    stamp = setups.CACHE / name / ".installed"
    if not stamp.exists():
        told = f"{name} is not installed; `make agents` installs it from npm"
        (pytest.fail if REQUIRED else pytest.skip)(told)


@pytest.mark.parametrize("name", setups.SETUPS)
def test_a_real_agent_is_read_right(name, tmp_path):
    """Turn, requests, tokens, times, coverage: within bounds in 18 of 20 repeats."""
    installed(name)
    wrong = []
    for number in range(REPEATS):
        played = play(name)
        assert played.status == 0, played.output[-2000:]
        path = tmp_path / f"{name}-{number}.jsonl"
        path.write_text(played.lines)
        path.with_suffix(".truth.json").write_text(json.dumps(played.truth))
        turns = read_paths([str(path)], whole_run=True).turns
        found = differences(turns, played.truth, unsaid=UNSAID.get(name, frozenset()))
        if found:
            wrong.append((number, found))
    print(f"{name}: {REPEATS - len(wrong)} of {REPEATS} within bounds; {wrong}")
    assert len(wrong) <= ALLOWED, wrong
