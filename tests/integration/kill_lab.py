"""Kills recording processes at random moments and says what of their spans was lost.

``python kill_lab.py SCENARIO JOURNAL KILLS SEED`` prints one JSON object a kill. The lab process starts no
thread, so that it can fork a warm child for each kill instead of starting an interpreter.
"""

import ctypes
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

import turntrace as tt
import turntrace.otel.setup
from turntrace.demo.agent import run_agent
from turntrace.demo.crowd import run_many
from turntrace.files.read import read_paths

MARGIN_NS = 100_000_000
"""In thread mode a span that ended this long before the kill has to be there.

On a machine that is busy with other things twice the longest pause of a bare thread beside ours is added,
for a thread waits once to wake and once while it works: no program can make good what it is not given.
"""

BIG_TURN_SPANS = 50_000
BLOCK_BYTES = 20_000_000
"""Somewhat less than such a turn takes in the file."""


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


class Pulses:
    """The longest pause of a bare thread in each recording process, in memory shared with the lab."""

    SLOTS = 4

    def __init__(self):
        self._memory = mmap.mmap(-1, 16 * self.SLOTS)

    def start(self, slot):
        """Begin to beat in this process."""
        threading.Thread(target=self._beat, args=(slot,), daemon=True).start()

    def _beat(self, slot):
        longest_ns, last_ns = 0, time.monotonic_ns()
        while True:
            struct.pack_into("<qq", self._memory, 16 * slot, longest_ns, last_ns)
            time.sleep(0.005)
            now_ns = time.monotonic_ns()
            longest_ns, last_ns = max(longest_ns, now_ns - last_ns), now_ns

    def longest_ns(self, until_ns):
        """The longest pause of any process until it was killed."""
        rows = [struct.unpack_from("<qq", self._memory, 16 * slot) for slot in range(self.SLOTS)]
        return max(
            (max(longest_ns, until_ns - last_ns) for longest_ns, last_ns in rows if last_ns), default=0
        )


def record(out, truth, journal, pulses, slot=0):
    """Switch recording on in a child, with the truth beside it."""
    tt.configure(trace=str(out), mode="a", journal=journal)
    trace.get_tracer_provider().add_span_processor(Truth(truth))
    pulses.start(slot)


def demo(out, truth, journal, base_url, pulses):
    """The bundled agent, turn after turn, twenty times as fast."""
    record(out, truth, journal, pulses)
    while True:
        run_agent(base_url, speed=20)


def crowd(out, truth, journal, base_url, pulses):
    """500 turns at once in one event loop."""
    import asyncio

    record(out, truth, journal, pulses)
    while True:
        asyncio.run(run_many(base_url, 500))


def workers(out, truth, journal, base_url, pulses):
    """Four forked workers that share one file."""
    slot = next((slot for slot in range(3) if os.fork() == 0), 3)
    record(out, truth, journal, pulses, slot)
    while True:
        with tt.turn("worker"):
            for number in range(20):
                with tt.tool(f"t{number % 3}"), tt.phase("process_wait"):
                    pass


def block(out, truth, journal, base_url, pulses):
    """A turn of 50,000 spans that ends: the kill falls into the writing of its block."""
    record(out, truth, journal, pulses)
    with tt.turn("big"):
        for _ in range(BIG_TURN_SPANS):
            with tt.phase("tool_planning"):
                pass
    Path(f"{out}.ended").touch()
    time.sleep(60)


SCENARIOS = {"demo": demo, "crowd": crowd, "workers": workers, "block": block}
LONGEST_S = {"demo": 0.6, "crowd": 1.5, "workers": 0.4}


def kill_once(scenario, journal, base_url, folder, chance):
    """Fork, wait, kill the group, and compare what is read with the truth."""
    out, truth, pulses = folder / "t.ndjson", folder / "truth", Pulses()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        SCENARIOS[scenario](out, truth, journal, base_url, pulses)
    if scenario == "block":
        wait_for_append(out, chance)
    else:
        until(truth.exists)
        time.sleep(chance.uniform(0, LONGEST_S[scenario]))
    os.killpg(child, signal.SIGKILL)
    killed_ns = time.monotonic_ns()
    wait_for_group(child)
    pause_ns = pulses.longest_ns(killed_ns)
    margin_ns = MARGIN_NS + 2 * pause_ns if journal == "thread" else 0
    return {**compare(out, truth, killed_ns - margin_ns), "pause_ms": pause_ns // 1_000_000}


def wait_for_append(out, chance):
    """Return at a random moment of the append of the big turn's block, now and then before it."""
    until(Path(f"{out}.ended").exists)
    if chance.random() < 0.1:  # while the block is made
        time.sleep(chance.uniform(0, 1))
        return
    until(lambda: out.stat().st_size > 0)
    wanted_bytes, size_bytes, still = chance.uniform(0, BLOCK_BYTES), 0, 0
    while size_bytes < wanted_bytes and still < 10_000:  # a sleep would be longer than the append
        before, size_bytes = size_bytes, out.stat().st_size
        still = still + 1 if size_bytes == before else 0


def until(condition):
    """Wait until the child has come so far."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the recording process does not get on"
        time.sleep(0.0002)


def is_whole(written):
    """Whether the last block stands in the file with as many lines as its header says."""
    lines = written.splitlines()
    header = max(number for number, line in enumerate(lines) if b'"type":"trace"' in line)
    return written.endswith(b"\n") and json.loads(lines[header])["lines"] == len(lines) - header - 1


def adopt_orphans():
    """Make grandchildren ours to wait for; the system's own init may take a second for each."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def wait_for_group(group):
    """Wait until no process of the killed group is left."""
    try:
        while True:
            os.waitpid(-group, 0)
    except ChildProcessError:
        return


def compare(out, truth, due_ns):
    """What was lost, seen twice or seen in a turn of another trace; and whether a block was torn."""
    rows = [line.split(" ", 3) for line in truth.read_text().splitlines() if line.count(" ") >= 3]
    due = {row[0]: row[1] for row in rows if int(row[2]) <= due_ns}
    written = out.read_bytes()
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
    return {
        "due": len(due),
        "lost": len(lost),
        "twice": twice,
        "mixed": len(mixed),
        "turns": len(turns),
        "torn": bool(written) and not is_whole(written),
    }


def main():
    """Run the kills; the model server is a process of its own."""
    adopt_orphans()
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
