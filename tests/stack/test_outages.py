"""A server that is down: the agent never notices, the file is complete, what was not delivered is counted."""

import json
import threading
import time
import uuid
from pathlib import Path

import pytest

from stack.programs import run, turns_of
from stack.servers import Collector, Jaeger, Prometheus, eventually

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("programs")]

STEADY = str(Path(__file__).parent / "steady.py")
WORK_S = 0.05
NOTICED_S = 0.5
"""What a turn of 50 ms may take on a busy machine; an export that it waited for would take seconds."""

EXIT_S = 3.0
SPANS_OF_A_TURN = 2


@pytest.fixture
def stack(tmp_path):
    """A stack of this test's own, to break."""
    with Jaeger(tmp_path) as jaeger, Collector(tmp_path, jaeger.otlp) as collector:
        yield jaeger, collector


class Agent:
    """``with Agent(out, endpoint, seconds) as agent``: it works while servers go down and come back."""

    def __init__(self, out, endpoint, seconds):
        self.out, self.service = out, f"steady-{uuid.uuid4().hex[:8]}"
        self._arguments = [STEADY, str(out), str(seconds)], endpoint, self.service
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._thread.join()

    def _run(self):
        # a metric interval that ends within the test changes nothing: metrics are off
        self.said = json.loads(run(*self._arguments, OTEL_EXPORTER_OTLP_TIMEOUT="20").stdout)

    def check(self):
        """It did not notice, and its file has every turn with all its spans; the trace ids of its turns."""
        assert self.said["longest_s"] < NOTICED_S
        assert self.said["exit_s"] < EXIT_S
        turns = [turn for turn, _ in turns_of(self.out)]
        assert len(turns) == self.said["turns"] > 10
        assert all(len(turn.spans) + 1 == SPANS_OF_A_TURN for turn in turns)
        return {turn.trace_id for turn in turns}


def arrived(jaeger, service):
    """The traces of a service with the number of their spans."""
    return {trace["traceID"]: len(trace["spans"]) for trace in jaeger.search(service=service, limit=5000)}


def test_a_collector_that_restarts_loses_nothing(stack, tmp_path):
    """It is away for some seconds; the exporter tries again, and each span arrives."""
    jaeger, collector = stack
    with Agent(tmp_path / "t.ndjson", collector.endpoint, 16) as agent:
        time.sleep(3)
        collector.stop()
        time.sleep(3)
        collector.start()
    ids = agent.check()
    assert agent.said["dropped"] == {}
    whole = dict.fromkeys(ids, SPANS_OF_A_TURN)
    eventually(lambda: arrived(jaeger, agent.service) == whole)


def test_jaeger_is_away_for_thirty_seconds(stack, tmp_path):
    """The collector keeps what comes meanwhile; all of it is there afterwards."""
    jaeger, collector = stack
    jaeger.stop()
    began = time.monotonic()
    with Agent(tmp_path / "t.ndjson", collector.endpoint, 8) as agent:
        pass
    ids = agent.check()
    assert agent.said["dropped"] == {}
    time.sleep(max(0, 30 - (time.monotonic() - began)))
    jaeger.start()
    whole = dict.fromkeys(ids, SPANS_OF_A_TURN)
    eventually(lambda: arrived(jaeger, agent.service) == whole, within_s=60)


def test_what_a_collector_that_is_gone_did_not_get_is_counted(stack, tmp_path):
    """Killed and never back: what arrived and what was dropped are together all spans."""
    jaeger, collector = stack
    with Agent(tmp_path / "t.ndjson", collector.endpoint, 8) as agent:
        time.sleep(6.5)  # the exporter sends every five seconds
        collector.kill()
    agent.check()
    assert agent.said["dropped"].keys() <= {"export_failed", "export_queue", "export_unfinished"}
    found = sum(arrived(jaeger, agent.service).values())
    assert found > 0
    assert found + sum(agent.said["dropped"].values()) == agent.said["turns"] * SPANS_OF_A_TURN


def test_a_prometheus_that_was_away_knows_the_sum(stack, tmp_path):
    """The collector goes on counting; after the gap the figures are those of the file."""
    _, collector = stack
    with Prometheus(tmp_path, collector.exporter) as prometheus:
        with Agent(tmp_path / "t.ndjson", collector.endpoint, 8) as agent:
            time.sleep(2)
            prometheus.stop()
            time.sleep(5)
            prometheus.start()
        turns = len(agent.check())
        eventually(lambda: prometheus.value(f'turntrace_turns_total{{job="{agent.service}"}}') == turns)
