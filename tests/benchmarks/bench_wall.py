"""How much longer a run is in its row than hyperfine says of the same command: 30 alternating pairs each.

``python tests/benchmarks/bench_wall.py`` prints one line for each command and isolation; it needs hyperfine.
"""

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from turntrace.bench.isolation import Command
from turntrace.bench.isolation_folder import RunFolder
from turntrace.bench.isolation_group import ProcessGroups, Watchdog
from turntrace.bench.isolation_sandbox import BubbleWrap, bubblewrap, interpreter_prefixes

PAIRS = 30
BOUND_RATIO = 0.02
BOUND_MS = 10.0
COMMANDS = {
    "true": ("/bin/true",),
    "python": (sys.executable, "-I", "-c", "import json, argparse"),
    "half a second": (sys.executable, "-I", "-c", "import time; time.sleep(0.5)"),
}


def by_hyperfine(argv):
    """Milliseconds of one run."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        words = [
            "hyperfine",
            "-N",
            "--warmup",
            "0",
            "--runs",
            "1",
            "--style",
            "none",
            "--export-json",
            out.name,
        ]
        subprocess.run([*words, shlex.join(argv)], check=True, capture_output=True)
        return json.loads(Path(out.name).read_text())["results"][0]["times"][0] * 1000


def by_row(confinement, argv):
    """Milliseconds of one run, as its row would say."""
    with RunFolder(None) as folder:
        command = Command(
            argv=argv, cwd=folder.workspace, env={"PATH": os.environ["PATH"], **folder.env()}, timeout_s=60,
            writable=folder.writable, readable=interpreter_prefixes(), hidden=(Path.home(), Path("/tmp")),
        )  # fmt: skip
        ended = confinement.run(command)
        assert ended.status == 0, ended.stderr
        return ended.wall_ns / 1e6


def main():
    """Print the figures; status 1 if one is out of bounds."""
    found, reason = bubblewrap()
    stopping = threading.Event()
    failed = False
    with Watchdog() as watchdog:
        kinds = [ProcessGroups(watchdog, stopping)]
        if found is None:
            print(f"no sandbox: {reason}")
        else:
            kinds.append(BubbleWrap(found, stopping))
        for kind in kinds:
            for name, argv in COMMANDS.items():
                pairs = []
                for number in range(PAIRS):
                    order = (by_hyperfine, lambda argv, kind=kind: by_row(kind, argv))
                    values = [take(argv) for take in (order if number % 2 else order[::-1])]
                    pairs.append(values if number % 2 else values[::-1])
                theirs, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
                bound = theirs * BOUND_RATIO + BOUND_MS
                failed |= ours - theirs > bound
                print(
                    f"{kind.mode:8} {name:14} hyperfine {theirs:7.2f} ms  row {ours:7.2f} ms  "
                    f"more {ours - theirs:6.2f} ms  bound {bound:6.2f} ms"
                )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
