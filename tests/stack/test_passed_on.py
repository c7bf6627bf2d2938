"""Agents that know nothing of turntrace, through ``turntrace collect`` and ``turntrace run``: counted once."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from stack.programs import run, turns_of
from stack.servers import eventually, free_port

pytestmark = pytest.mark.servers

PLAIN = str(Path(__file__).parent / "plain.py")


def figures(prometheus, service):
    """What Prometheus knows of a service: turns, model calls, tool calls, input tokens."""
    names = ("turns", "model_requests", "tool_calls", 'tokens{type="input"}')
    found = {}
    for name in names:
        metric, _, more = name.partition("{")
        labels = f'job="{service}"' + (f",{more.rstrip('}')}" if more else "")
        found[metric] = prometheus.value(f"sum(turntrace_{metric}_total{{{labels}}})")
    return found


def check(prometheus, jaeger, service, out):
    """One turn with its nested one in it, two model calls, one tool: in the file, in Jaeger and in Prometheus."""
    outer, inner = (turn for turn, _ in turns_of(out))
    assert inner.parent_run_id == outer.run_id
    eventually(
        lambda: (
            figures(prometheus, service) == {"turns": 1, "model_requests": 2, "tool_calls": 1, "tokens": 20}
        )
    )
    spans = {span["operationName"]: span for span in jaeger.trace(outer.trace_id)["spans"]}
    tags = {tag["key"]: tag["value"] for tag in spans["invoke_agent outer"]["tags"]}
    assert tags["turntrace.turn.model_requests"] == 2
    assert tags["turntrace.agent"] == "outer"


def test_what_collect_passes_on_is_counted_once(tmp_path, collector, prometheus, jaeger):
    """Its spans say that the collector is to make metrics of them, and the nested turn is part of the outer one."""
    out, service, port = tmp_path / "t.ndjson", f"plain-{uuid.uuid4().hex[:8]}", free_port()
    arguments = ["collect", "--http", str(port), "--trace", str(out), "--endpoint", collector.endpoint]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TURNTRACE_"))}
    with subprocess.Popen(
        [sys.executable, "-m", "turntrace", *arguments], env=env, stderr=subprocess.PIPE
    ) as process:
        try:
            process.stderr.readline()  # it says where it listens when it does
            run([PLAIN, "exports"], f"http://127.0.0.1:{port}", service)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    check(prometheus, jaeger, service, out)


def test_what_run_records_is_counted_once(tmp_path, collector, prometheus, jaeger):
    """The same agent as a command of ``turntrace run``, which exports its spans."""
    out, service = tmp_path / "t.ndjson", f"run-{uuid.uuid4().hex[:8]}"
    run(
        ["-m", "turntrace", "run", "--trace", str(out), "--", sys.executable, PLAIN],
        collector.endpoint,
        service,
    )
    check(prometheus, jaeger, service, out)
