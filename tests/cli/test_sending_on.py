"""What a run received goes on to an endpoint: enriched, once, and never at the cost of the exit."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from otlp_receiver import HttpReceiver, SilentServer, attributes_of
from turntrace.cli.sending_on import send_on
from turntrace.config import Settings
from turntrace.core.model import Span, Turn

T0_NS = 1_700_000_000_000_000_000
PROGRAM = (Path(__file__).parents[2] / "docs" / "run.md").read_text()
TURN = Turn(
    run_id="r",
    trace_id="0" * 31 + "1",
    span_id="0" * 15 + "2",
    agent="bot",
    turn_source="run",
    started_ns=T0_NS,
    completed_ns=T0_NS + 1000,
    spans=(
        Span(
            span_id="0" * 15 + "3",
            parent_id="0" * 15 + "2",
            name="chat",
            phase="generation",
            start_ns=T0_NS,
            end_ns=T0_NS + 900,
        ),
    ),
)


def sent(turns, endpoint, timeout_s=5.0, **settings):
    """What is said of it."""
    return send_on(turns, endpoint, Settings(**settings), keeps_content=False, timeout_s=timeout_s)


def test_a_turn_arrives_whole():
    """Ids, parents and times as recorded, with what turntrace knows; the collector makes the metrics."""
    with HttpReceiver() as receiver:
        assert sent([TURN], receiver.endpoint) == ()
        (root_resource, _, root), (_, _, chat) = receiver.spans()
    assert (root.span_id.hex(), chat.parent_span_id.hex(), chat.span_id.hex()) == (
        TURN.span_id, TURN.span_id, TURN.spans[0].span_id,
    )  # fmt: skip
    assert attributes_of(chat)["turntrace.exclusive_ms"] == 0.0009
    assert attributes_of(root)["turntrace.phase"] == "turn"
    assert attributes_of(root_resource)["turntrace.metrics"] == "collector"
    assert attributes_of(root_resource)["service.name"] == "bot"


def test_nothing_recorded_is_nothing_sent():
    """Nobody is asked."""
    assert sent([], "http://127.0.0.1:1") == ()


def test_an_endpoint_that_hangs_costs_the_deadline():
    """The turn is in the file; how to send it is said."""
    server = SilentServer()
    started_s = time.monotonic()
    assert "turntrace send" in sent([TURN], server.endpoint, timeout_s=0.3)[0]
    assert time.monotonic() - started_s < 2


def test_an_endpoint_that_refuses():
    """Is told of."""
    with HttpReceiver(status=400) as receiver:
        assert "turntrace send" in sent([TURN], receiver.endpoint)[0]


def test_a_protocol_that_nobody_speaks():
    """Is told of with its setting."""
    (said,) = sent([TURN], "http://127.0.0.1:1", protocol="http/json")
    assert "OTEL_EXPORTER_OTLP_PROTOCOL" in said


@pytest.mark.parametrize(("option", "copies"), [(True, 1), (False, 1)], ids=["--endpoint", "its own"])
def test_every_span_arrives_once(tmp_path, option, copies):
    """Enriched where only we send, and as the command sent it where it sent before."""
    program = next(one for one in re.findall(r"```python\n(.*?)```", PROGRAM, re.DOTALL) if "sends.py" in one)
    (tmp_path / "sends.py").write_text(program)
    with HttpReceiver() as receiver:
        env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        words = ["--endpoint", receiver.endpoint] if option else []
        if not option:
            env["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.endpoint
        command = [
            sys.executable,
            "-m",
            "turntrace",
            "run",
            "--trace",
            "t.ndjson",
            *words,
            "--no-instrument",
            "--",
        ]
        done = subprocess.run(
            [*command, sys.executable, "sends.py"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        ids = [span.span_id for _, _, span in receiver.spans() if span.name == "chat"]
        is_enriched = any("turntrace.exclusive_ms" in attributes_of(span) for _, _, span in receiver.spans())
    assert (len(ids), is_enriched) == (copies, option)
