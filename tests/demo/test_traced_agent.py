"""The bundled agents with tracing on: nothing about them changes, and the trace agrees with the server's log."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from turntrace.core.attribution import attribute
from turntrace.core.codec.keys import missing_keys
from turntrace.core.contract import REQUIRED_EVENT_KEYS
from turntrace.demo.model_server import ModelServer
from turntrace.demo.scenario import ANSWER, DEMO_SCRIPT, MODEL
from turntrace.files.read import read_paths

SPEED = 5.0
CLOCKS_NS = 10_000_000  # two processes, each with a clock of its own

RUN_AGENT = f"""
import sys
import turntrace as tt
from turntrace.demo.agent import run_agent
if sys.argv[2:]:
    tt.configure(sys.argv[2], mode="w")
run_agent(sys.argv[1], speed={SPEED}, print_answer=True)
"""
RUN_CROWD = """
import asyncio, sys
import turntrace as tt
from turntrace.demo.crowd import run_many
tt.configure(sys.argv[2], mode="w")
asyncio.run(run_many(sys.argv[1], 100))
"""


def run(code, *arguments):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TURNTRACE_"))}
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=env, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same turn without and with tracing: outputs, trace file, server log."""
    path = tmp_path_factory.mktemp("traced") / "out.ndjson"
    with ModelServer(DEMO_SCRIPT, speed=SPEED, keep_requests=True) as server:
        plain = run(RUN_AGENT, server.base_url)
        server.log.wait(5)
        traced = run(RUN_AGENT, server.base_url, path)
        records = server.log.wait(10)
    return plain, traced, path, records


@pytest.fixture(scope="module")
def turn(runs):
    """The one turn of the trace."""
    (turn,) = read_paths([str(runs[2])], strict=True).turns
    return turn


def spans_of(turn, phase):
    return sorted((span for span in turn.spans if span.phase == phase), key=lambda span: span.start_ns)


def test_tracing_changes_neither_requests_nor_output(runs):
    """With tracing on the agent sends and prints the same bytes."""
    plain, traced, _, records = runs
    assert plain.stdout == traced.stdout == f"{ANSWER}{os.linesep}".encode()
    assert plain.stderr == traced.stderr == b""
    assert [record.request for record in records[:5]] == [record.request for record in records[5:]]


def test_the_turn_has_every_phase_of_the_story(runs, turn):
    """Four rounds, five attempts, five tools, and the seven required events."""
    assert (turn.agent, turn.session_id, turn.model, turn.status, turn.rounds) == (
        "demo-agent",
        "demo",
        MODEL,
        "ok",
        4,
    )
    assert Counter(span.phase for span in turn.spans) == {
        "prompt_build": 4,
        "tool_partition": 4,
        "provider_queue": 4,
        "generation": 4,
        "provider_connect": 5,
        "retry_wait": 1,
        "tool_execution": 5,
        "tool_queue": 5,
        "permission_wait": 1,
        "process_wait": 1,
        "verification": 1,
        "compaction": 1,
    }
    counted = {"model_requests": 4, "tool_calls": 5, "retry_count": 1, "compaction_count": 1}
    assert counted.items() <= turn.counters.items()
    assert missing_keys(REQUIRED_EVENT_KEYS, runs[2].read_bytes().splitlines(keepends=True)) == []


def test_every_span_hangs_where_it_belongs(turn):
    """Tools in threads stay in the turn; waits for a person, a process or a slot are inside their tool."""
    phase_by_id = {span.span_id: span.phase for span in turn.spans} | {turn.span_id: "turn"}
    parents = {span.phase: phase_by_id[span.parent_id] for span in turn.spans}
    inside = {"provider_connect": "generation", "retry_wait": "generation"}
    inside |= dict.fromkeys(("tool_queue", "permission_wait", "process_wait"), "tool_execution")
    assert parents == {phase: inside.get(phase, "turn") for phase in parents}
    assert {span.parent_source for span in turn.spans} == {"otel"}


def test_tokens_are_what_the_server_sent(runs, turn):
    """Each call's usage in the trace is the one of the server's log, call by call."""
    sent = [record.usage_sent for record in runs[3][5:] if record.usage_sent]
    order = {span.span_id: number for number, span in enumerate(spans_of(turn, "generation"))}
    seen = sorted(turn.usage, key=lambda usage: order[usage.span_id])
    for usage, truth in zip(seen, sent, strict=True):
        assert usage.input_tokens == truth.input_tokens
        assert usage.cached_input_tokens == truth.cached_input_tokens
        assert usage.output_tokens == truth.output_tokens
        assert usage.reasoning_tokens == truth.reasoning_tokens


def test_attempts_and_streams_are_where_the_server_saw_them(runs, turn):
    """An attempt lasts from before its request to after its headers, a generation to after its last chunk."""
    served = runs[3][5:]
    attempts = spans_of(turn, "provider_connect")
    for span, record in zip(attempts, served, strict=True):
        assert span.attributes["http.response.status_code"] == record.status
        assert span.start_ns - CLOCKS_NS < record.received_ns < span.end_ns
        assert span.start_ns < record.headers_sent_ns < span.end_ns + CLOCKS_NS
    assert [span.attributes["turntrace.attempt"] for span in attempts] == [1, 1, 2, 1, 1]
    answered = [record for record in served if record.status == 200]
    for span, record in zip(spans_of(turn, "generation"), answered, strict=True):
        assert span.start_ns < record.last_chunk_sent_ns < span.end_ns + CLOCKS_NS
    assert served[0].first_token_sent_ns - CLOCKS_NS < turn.first_token_ns < answered[1].received_ns
    (wait,) = spans_of(turn, "retry_wait")
    assert wait.attributes["turntrace.reason"] == "429"
    assert wait.end_ns - wait.start_ns >= 500_000_000 / SPEED


def test_two_tools_run_at_once_and_the_third_waits(turn):
    """The limiter of two slots is visible: three calls, two of them working, one in tool_queue."""
    result = attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )
    third = max(spans_of(turn, "tool_queue"), key=lambda span: span.end_ns - span.start_ns)
    assert third.end_ns - third.start_ns > 100_000_000 / SPEED
    assert result.parallelism > 1
    assert result.coverage > 0.9


def test_a_hundred_turns_in_one_event_loop_never_mix(tmp_path):
    """Each turn of a crowd has its own session, spans, rounds and tokens, and no more."""
    path = tmp_path / "crowd.ndjson"
    with ModelServer(DEMO_SCRIPT, speed=50.0) as server:
        done = run(RUN_CROWD, server.base_url, path)
        server.log.wait(500)
    assert done.stderr == b""
    turns = read_paths([str(path)], strict=True).turns
    assert {turn.session_id for turn in turns} == {f"crowd-{number}" for number in range(100)}
    shapes = Counter(
        (
            turn.status,
            turn.rounds,
            sum(span.phase != "stream_consume" for span in turn.spans),  # a busy loop makes pauses
            sum(usage.input_tokens for usage in turn.usage),
        )
        for turn in turns
    )
    assert shapes == {("ok", 4, 23, 18_240): 100}
