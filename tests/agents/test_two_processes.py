"""A Python agent and the MCP server it starts: what both processes tell is one turn of one file."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from agents import setups
from agents.checks import differences
from agents.install import CACHE
from agents.installed import installed
from agents.scene import Director
from frameworks.model_server import ModelServer
from turntrace.files.read import read_paths

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
SETUP = setups.Setup(arguments=(), tool="shell", call={"command": "sh tool.sh"}, prepare=lambda home, url: {})


@pytest.mark.parametrize(
    ("server", "options"),
    [
        pytest.param("configured_server.py", [], id="the server calls configure()"),
        pytest.param("server.py", ["--children"], id="run --children"),
    ],
)
def test_both_processes_are_one_turn(server, options, tmp_path):
    """The server's span of the tool lies below the client's, and the tool counts once."""
    installed("two_processes")
    bin_folder = CACHE / "two_processes" / "bin"
    director = Director(SETUP)
    with ModelServer(director) as model:
        environment = {
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "OPENAI_API_KEY": "fake",
            "OPENAI_BASE_URL": f"{model.url}/v1",
        }
        command = ["turntrace", "run", "--trace", "out.ndjson", *options, "--"]
        agent = ["python", str(HERE / "two_processes" / "agent.py"), server]
        done = subprocess.run(
            [str(bin_folder / command[0]), *command[1:], *agent],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        wire = [
            {"what": what, "tokens": one.tokens, "received_ms": one.received_ms, "done_ms": one.done_ms}
            for one, what in zip(model.settled(), director.said, strict=True)
        ]
        t0_unix_ns = model.t0_unix_ns
    assert done.returncode == 0, done.stderr
    assert "all is well" in done.stdout
    ran = json.loads((tmp_path / "ran.json").read_text())
    turns = read_paths([str(tmp_path / "out.ndjson")]).turns
    truth = {"t0_unix_ns": t0_unix_ns, "wire": wire, "tool": {"name": "shell", **ran}}
    assert [turn.agent for turn in turns] == ["caller"]
    (turn,) = turns
    tools = [span for span in turn.spans if span.phase == "tool_execution"]
    assert len(tools) == 2, [(span.name, span.parent_id) for span in turn.spans]
    (outer, inner) = sorted(tools, key=lambda span: span.start_ns)
    assert inner.parent_id == outer.span_id
    assert outer.start_ns <= inner.start_ns <= ran["start_ns"] < ran["end_ns"] <= inner.end_ns <= outer.end_ns
    unsaid = frozenset({"reasoning_tokens"})  # the instrumentation leaves out a reasoning of nothing
    kept = [one for one in differences(turns, truth, unsaid=unsaid) if "spans of tools" not in one]
    assert kept == []
