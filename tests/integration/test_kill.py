"""A killed process loses nothing that it had ended: SIGKILL at 200 random moments."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LAB = Path(__file__).with_name("kill_lab.py")


def unmeasured():
    """The environment without branch coverage: it slows a child down, and a killed child keeps none of it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lab adopts orphans, as only Linux can")


def killed(scenario, journal, kills, seed=20):
    """The lab's rows of ``kills`` kills."""
    command = [sys.executable, str(LAB), scenario, journal, str(kills), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=290, env=unmeasured())
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == kills
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("journal", ["sync", "thread"])
@pytest.mark.parametrize(("scenario", "kills"), [("demo", 40), ("crowd", 20), ("workers", 36), ("block", 4)])
def test_complaint_18_a_killed_process_loses_no_span_that_had_ended(scenario, journal, kills):
    """Sync: every span that had ended is read back; thread: every one that had 100 ms before. None twice.

    Most kills of the scenario ``block`` fall into the append of a block of 50,000 spans and leave it torn.
    """
    rows = killed(scenario, journal, kills)
    assert sum(row["due"] for row in rows) > 100
    assert [row for row in rows if row["lost"] or row["twice"] or row["mixed"]] == []
    assert scenario != "block" or any(row["torn"] for row in rows), "no kill fell into the append"


SPANS = """
import os, signal
import turntrace as tt
tt.configure(trace={out!r}, journal={journal!r})
turn = tt.turn("a"); turn.__enter__()
with tt.tool("done"): pass
tool = tt.tool("open"); tool.__enter__()
{end}
"""


@pytest.mark.parametrize("journal", ["sync", "thread"])
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15),
        ("os.kill(os.getpid(), signal.SIGHUP)", -1),
        ("os._exit(7)", 7),
    ],
)
def test_complaint_18_open_spans_of_a_dead_process_are_in_the_file(tmp_path, end, status, journal):
    """However a process dies without a word, the ended span is there and the open one is told as such."""
    from turntrace.files.read import read_paths

    out = tmp_path / "t.ndjson"
    wait = "import time; time.sleep(0.3); " if journal == "thread" else ""
    code = SPANS.format(out=str(out), journal=journal, end=wait + end)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=unmeasured())
    assert (done.returncode, done.stderr) == (status, "")
    (turn,) = read_paths([str(out)]).turns
    assert turn.status == "interrupted"
    assert {span.name: span.outcome for span in turn.spans} == {
        "execute_tool done": "ok",
        "execute_tool open": "incomplete",
    }
