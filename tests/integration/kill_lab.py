"""Kills recording processes at random moments and says what of their spans was lost.

``python kill_lab.py SCENARIO JOURNAL KILLS SEED`` prints one JSON object a kill. The lab process starts no
thread, so that it can fork a warm child for each kill instead of starting an interpreter.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

import turntrace as tt
from turntrace.demo.agent import run_agent
from turntrace.demo.crowd import run_many
from turntrace.files.read import read_paths

MARGIN_NS = 100_000_000
"""In thread mode a span that ended this long before the kill has to be there."""


class Truth(SpanProcessor):
    """Writes each span's id and time to a file of its own, after the span has ended everywhere else."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def on_start(self, span, parent_context=None):
        pass

    def on_end(self, span):
        context = span.context
        line = f"{context.span_id:016x} {context.trace_id:032x} {time.monotonic_ns()} {span.name}\n"
        os.write(self._fd, line.encode())


def record(out, truth, journal):
    """Switch recording on in a child, with the truth beside it."""
    tt.configure(trace=str(out), mode="a", journal=journal)
    trace.get_tracer_provider().add_span_processor(Truth(truth))


def demo(out, truth, journal, base_url):
    """The bundled agent, turn after turn, twenty times as fast."""
    record(out, truth, journal)
    while True:
        run_agent(base_url, speed=20)


def crowd(out, truth, journal, base_url):
    """500 turns at once in one event loop."""
    import asyncio

    record(out, truth, journal)
    while True:
        asyncio.run(run_many(base_url, 500))


def workers(out, truth, journal, base_url):
    """Four forked workers that share one file."""
    for _ in range(3):
        if os.fork() == 0:
            break
    record(out, truth, journal)
    while True:
        with tt.turn("worker"):
            for number in range(20):
                with tt.tool(f"t{number % 3}"), tt.phase("process_wait"):
                    pass


def block(out, truth, journal, base_url):
    """A turn of 50,000 spans that ends: the kill falls into the writing of its block."""
    record(out, truth, journal)
    with tt.turn("big"):
        for _ in range(50_000):
            with tt.phase("tool_planning"):
                pass
    Path(f"{out}.ended").touch()
    time.sleep(60)


SCENARIOS = {"demo": demo, "crowd": crowd, "workers": workers, "block": block}
LONGEST_S = {"demo": 0.6, "crowd": 2.0, "workers": 0.4, "block": 3.0}


def kill_once(scenario, journal, base_url, folder, chance):
    """Fork, wait, kill the group, and compare what is read with the truth."""
    out, truth = folder / "t.ndjson", folder / "truth"
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        SCENARIOS[scenario](out, truth, journal, base_url)
    until_recording(truth if scenario != "block" else Path(f"{out}.ended"))
    time.sleep(chance.uniform(0, LONGEST_S[scenario]))
    os.killpg(child, signal.SIGKILL)
    killed_ns = time.monotonic_ns()
    os.waitpid(child, 0)
    wait_for_group(child)
    return compare(out, truth, killed_ns, journal)


def until_recording(path):
    """Wait until the child has ended its first span (or its big turn)."""
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.001)


def wait_for_group(group):
    """Wait until no process of the killed group is left."""
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        except PermissionError:
            return
        time.sleep(0.001)


def compare(out, truth, killed_ns, journal):
    """What was lost, seen twice or seen in a turn of another trace."""
    margin_ns = MARGIN_NS if journal == "thread" else 0
    rows = [line.split(" ", 3) for line in truth.read_text().splitlines() if line.count(" ") >= 3]
    due = {row[0]: row[1] for row in rows if int(row[2]) <= killed_ns - margin_ns}
    seen, turns = {}, [turn for turn in read_paths([str(out)]).turns if turn.parent_run_id is None]
    twice = 0
    for turn in turns:
        ids = [span.span_id for span in turn.spans] + ([turn.span_id] if turn.completed_ns else [])
        for span_id in ids:
            twice += span_id in seen
            seen[span_id] = turn.trace_id
    incomplete = {s.span_id for t in turns for s in t.spans if s.outcome == "incomplete"}
    lost = [span_id for span_id in due if span_id not in seen or span_id in incomplete]
    mixed = [span_id for span_id, trace_id in due.items() if seen.get(span_id, trace_id) != trace_id]
    return {"due": len(due), "lost": len(lost), "twice": twice, "mixed": len(mixed), "turns": len(turns)}


def main():
    """Run the kills; the model server is a process of its own."""
    scenario, journal, kills, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("serve_model.py"))], stdout=subprocess.PIPE, text=True
    )
    base_url = server.stdout.readline().strip()
    chance = random.Random(seed)
    try:
        for _ in range(kills):
            with tempfile.TemporaryDirectory() as folder:
                print(json.dumps(kill_once(scenario, journal, base_url, Path(folder), chance)), flush=True)
    finally:
        server.kill()


if __name__ == "__main__":
    main()
