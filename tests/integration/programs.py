"""Programs for tests: code that runs in a process of its own, with what it said and when it ended."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

__all__ = ["Ended", "clean_env", "run_code", "start_code"]


@dataclass(frozen=True)
class Ended:
    """A process that ended; ``exit_s`` are the seconds from its last ``print_last()`` to its end."""

    status: int
    out: str
    err: str
    exit_s: float


LAST = """
def print_last():
    import sys, time
    sys.stdout.write(f"\\nLAST {time.monotonic_ns()}\\n")
    sys.stdout.flush()
"""


def clean_env(**variables):
    """This environment without what decides about recording, with ``variables``."""
    drop = ("OTEL_", "TURNTRACE_", "TRACE", "COVERAGE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    return {**kept, **{name: str(value) for name, value in variables.items()}}


def start_code(code, **variables):
    """Start ``code`` in a new interpreter."""
    return subprocess.Popen(
        [sys.executable, "-c", LAST + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_env(**variables),
    )


def run_code(code, *, signal_at=None, number=signal.SIGINT, timeout_s=60, **variables):
    """Run ``code`` to its end; send it a signal once it has printed the line ``signal_at``."""
    process = start_code(code, **variables)
    before = ""
    if signal_at is not None:
        for line in process.stdout:
            before += line
            if line.strip() == signal_at:
                break
        before += f"\nLAST {time.monotonic_ns()}\n"
        process.send_signal(number)
    try:
        out, err = process.communicate(timeout=timeout_s)
    finally:
        ended_ns = time.monotonic_ns()
        process.kill()
    out = before + out
    last = [int(line.split()[1]) for line in out.splitlines() if line.startswith("LAST ")]
    out = "".join(f"{line}\n" for line in out.splitlines() if line and not line.startswith("LAST "))
    return Ended(process.returncode, out, err, (ended_ns - last[-1]) / 1e9 if last else 0.0)
