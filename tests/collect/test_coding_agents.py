"""Coding agents through the queue: what they log fills and makes spans, and nothing counts twice."""

import gzip
import json
import time
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from agents import setups
from agents.checks import differences
from otlp_requests import T0_NS
from turntrace.collect import closing
from turntrace.collect.agents import AgentWaits, CodingAgents
from turntrace.collect.gathering import Gathering, Waits
from turntrace.collect.request_spans import arrived, told
from turntrace.collect.spool import Spool
from turntrace.collect.worker import Work, Worker, requests_folder
from turntrace.files.append import Rotation
from turntrace.files.read import read_paths

TRACES = Path(__file__).parents[1] / "agents" / "traces"
UNSAID = {"claude": frozenset({"reasoning_tokens"}), "node": frozenset({"reasoning_tokens"})}
SIGNALS = {"resourceSpans": "traces", "resourceLogs": "logs", "resourceMetrics": "metrics"}


def requests(name):
    """What an agent sent: signal and body of each request."""
    (path,) = TRACES.glob(f"{name}.otlp.jsonl*")
    data = path.read_bytes()
    for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines():
        yield SIGNALS[next(iter(json.loads(line)))], line


def truth(name):
    """What really happened."""
    return json.loads((TRACES / f"{name}.truth.json").read_text())


def worked(folder, given, is_over=lambda: True, **waits):
    """Queue requests and let a worker read them; what it did, and the turns."""
    with Spool(requests_folder(folder)) as spool:
        for signal, body in given:
            spool.take(signal, body, "json")
    out = folder / "out.ndjson"
    work = Work(
        folder=folder,
        out=out,
        rotation=Rotation(),
        waits=Waits(linger_s=0.05, remote_s=0.3),
        agent_waits=AgentWaits(**waits),
    )
    with Worker(work, None, None) as worker:
        outcome = worker.run(is_over)
    return outcome, read_paths([str(out)]).turns


def after(seconds):
    """An end that comes later."""
    until_s = time.monotonic() + seconds
    return lambda: time.monotonic() > until_s


@pytest.mark.parametrize("name", setups.SETUPS)
def test_the_turn_is_what_really_happened(tmp_path, name):
    """Requests, tokens, generations and tools as the model server and the tool noted them."""
    outcome, turns = worked(tmp_path, requests(name))
    assert differences(turns, truth(name), unsaid=UNSAID.get(name, frozenset())) == []
    assert (outcome.late_events, outcome.unreadable) == (0, 0)
    assert list(requests_folder(tmp_path).iterdir()) == []


@pytest.mark.parametrize("name", ["codex", "claude", "gemini", "opencode"])
def test_it_is_the_same_while_more_is_to_come(tmp_path, name):
    """Without an end of everything: the turn is closed by its root, or when its process is quiet."""
    waits = {"events_s": 0.4, "idle_s": 1.0}
    _, turns = worked(tmp_path, requests(name), after(3), **waits)
    unsaid = UNSAID.get(name, frozenset())
    assert differences(turns, truth(name), unsaid=unsaid) == []


@pytest.mark.parametrize("name", ["codex", "claude", "gemini"])
def test_an_agent_that_only_logs_has_turns(tmp_path, name):
    """Without spans its events make the turn."""
    _, turns = worked(tmp_path, [one for one in requests(name) if one[0] == "logs"])
    assert len([turn for turn in turns if turn.parent_run_id is None]) == 1
    assert turns[0].counters["model_requests"] >= 1


def test_events_that_come_too_late_are_counted_and_make_no_second_turn(tmp_path):
    """The turn is written; its event would be the same call once more."""
    traces = [one for one in requests("claude") if one[0] == "traces"]
    logs = [one for one in requests("claude") if one[0] == "logs"]
    out = tmp_path / "out.ndjson"

    def is_over():
        if out.exists() and out.stat().st_size and logs:
            with Spool(requests_folder(tmp_path)) as spool:
                spool.take(*logs.pop(), "json")
        return not logs and until()

    until = after(2.0)
    outcome, turns = worked(tmp_path, traces, is_over, events_s=0.2, idle_s=60.0)
    assert outcome.late_events > 0
    assert len([turn for turn in turns if turn.parent_run_id is None]) == 1


def gathered(name):
    """An agent's traces, gathered."""
    gathering = Gathering(Waits())
    for signal, body in requests(name):
        if signal == "traces":
            gathering.add(list(arrived(body, "json", with_origin=False)), 1, 0.0, len(body))
    return list(gathering.all())


def test_what_is_held_pins_its_segments():
    """Until it is given away the requests stay in the queue."""
    agents = CodingAgents(AgentWaits())
    assert all(agents.takes(trace, 0.0) for trace in gathered("codex"))
    (logs, *_) = [body for signal, body in requests("codex") if signal == "logs"]
    agents.hear(told(logs, "json"), 7, 0.0)
    assert agents.numbers == {1, 7}
    assert list(agents.due(9.9, is_last=False)) == []
    (batch,) = agents.due(10.0, is_last=False)
    assert batch.traces
    assert batch.events
    assert list(agents.due(299.0, is_last=False)) == []
    list(agents.due(300.0, is_last=False))
    assert agents.numbers == set()


def test_a_process_with_open_traces_is_not_quiet():
    """Its events wait for them, however long: alone they would tell the same calls once more."""
    agents = CodingAgents(AgentWaits())
    (logs, *_) = [body for signal, body in requests("codex") if signal == "logs"]
    agents.hear(told(logs, "json"), 7, 0.0)
    process = ("codex_exec", "", "")
    assert list(agents.due(999.0, is_last=False, open_processes=lambda: {process})) == []
    assert list(agents.due(999.0, is_last=False))


def test_an_agent_that_never_rests_is_bounded(monkeypatch):
    """More than is held of one process is closed at once."""
    from turntrace.collect import agents as module

    monkeypatch.setattr(module, "_MAX_HELD", 10)
    agents = CodingAgents(AgentWaits())
    for trace in gathered("codex"):
        agents.takes(trace, 0.0)
    assert list(agents.due(0.0, is_last=False))


def test_other_agents_are_none_of_these(tmp_path):
    """A trace of a framework is not held."""
    path = Path(__file__).parents[1] / "frameworks/traces/pydantic_ai.json"
    gathering, agents = Gathering(Waits()), CodingAgents(AgentWaits())
    for line in path.read_bytes().splitlines():
        gathering.add(list(arrived(line, "json", with_origin=False)), 1, 0.0, len(line))
    assert not any(agents.takes(trace, 0.0) for trace in gathering.all())


def test_events_in_protobuf_are_heard():
    """Logs in the other encoding, and those of nobody known."""
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    scope.scope.name = "com.anthropic.claude_code.events"
    record = scope.log_records.add(time_unix_nano=T0_NS)
    record.attributes.add(key="event.name").value.string_value = "api_request"
    scope.log_records.add(time_unix_nano=T0_NS).body.string_value = "hello"
    found = told(request.SerializeToString(), "protobuf")
    assert [event.at_ns for event in found.events] == [T0_NS]


def test_events_that_break_a_turn_are_counted(tmp_path, monkeypatch):
    """The spans alone still tell a turn, and what was not read of the events is told."""
    real = closing.assemble

    def fails(spans, *, events=(), **settings):
        if list(events):
            raise ZeroDivisionError
        return real(spans, **settings)

    monkeypatch.setattr(closing, "assemble", fails)
    outcome, turns = worked(tmp_path, requests("claude"))
    assert [turn.agent for turn in turns if turn.parent_run_id is None] == ["claude"]
    assert outcome.unreadable > 0
