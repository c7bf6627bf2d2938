"""Requests become turns: the same ones that a report of a file with those requests shows."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from google.protobuf.json_format import ParseDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otlp_requests import T0_NS, json_traces
from turntrace.collect.gathering import Gathering, Waits
from turntrace.collect.limits import RefusedError
from turntrace.collect.messages import checked
from turntrace.collect.receiver import Receiver
from turntrace.collect.request_spans import _with_ids, arrived
from turntrace.collect.sink import RequestFiles
from turntrace.collect.spool import Spool, SpoolBounds
from turntrace.collect.worker import Work, Worker, requests_folder
from turntrace.files.append import Rotation
from turntrace.files.out import parts_of
from turntrace.files.read import read_paths

FRAMEWORKS = sorted(
    path
    for path in (Path(__file__).parents[1] / "frameworks/traces").glob("*.json")
    if not path.name.endswith(".truth.json")
)

ATTRIBUTION = {"detached", "span_outside_window"}


class Collected:
    """A queue, and a worker that reads it in this process."""

    def __init__(self, folder, rule=None, **waits):
        self.folder = folder
        self.out = folder / "out.ndjson"
        self._rule = rule
        self._waits = Waits(**waits)

    def spool(self):
        """The writing end."""
        return Spool(requests_folder(self.folder / "spool"))

    def put(self, *requests):
        """Queue requests: protobuf, or JSON when they start like it."""
        with self.spool() as spool:
            for body in requests:
                spool.take("traces", body, "json" if body.startswith(b"{") else "protobuf")

    def worker(self):
        """A worker on the queue."""
        work = Work(
            folder=self.folder / "spool", out=self.out, rotation=Rotation(), waits=self._waits, exit_s=1.0
        )
        return Worker(work, self._rule, None)

    def work(self, is_over=lambda: True):
        """Read everything; what it did."""
        with self.worker() as worker:
            return worker.run(is_over)

    def turns(self):
        """What the report reads from the file."""
        result = read_paths([str(self.out)])
        assert [issue for _, issue in result.issues if issue.severity == "error"] == []
        return result.turns


@pytest.fixture
def collected(tmp_path):
    """A queue in a folder of its own."""
    return Collected(tmp_path)


def as_protobuf(line):
    """A JSON request in the other encoding."""
    return ParseDict(_with_ids(json.loads(line)), ExportTraceServiceRequest()).SerializeToString()


def outermost(turns):
    """The turns that lie in no other, by start."""
    found = [turn for turn in turns if turn.parent_run_id is None]
    return sorted(found, key=lambda turn: (turn.started_ns, turn.run_id))


def essence(turn):
    """What a report shows of a turn."""
    return {
        "who": (turn.run_id, turn.trace_id, turn.span_id, turn.agent, turn.model, turn.session_id),
        "window": (turn.started_ns, turn.completed_ns, turn.status, turn.rounds, turn.first_token_ns),
        "rule": (turn.source, turn.turn_source),
        "spans": {(s.span_id, s.parent_id, s.phase, s.tool, s.outcome, s.parent_source) for s in turn.spans},
        "usage": {(u.span_id, u.provenance, u.input_tokens, u.output_tokens) for u in turn.usage},
        "counters": {name: turn.counters[name] for name in ("model_requests", "tool_calls")},
        # a block also holds what attribution warns of
        "warnings": {(one.code, one.span_ids) for one in turn.warnings if one.code not in ATTRIBUTION},
    }


@pytest.mark.parametrize("encoding", ["json", "protobuf"])
@pytest.mark.parametrize("path", FRAMEWORKS, ids=lambda path: path.stem)
def test_what_is_received_is_what_is_read(collected, path, encoding):
    """The trace of each framework gives the same turns through the queue as read from its file."""
    requests = path.read_bytes().splitlines()
    collected.put(*(requests if encoding == "json" else map(as_protobuf, requests)))
    outcome = collected.work()
    read, found = outermost(read_paths([str(path)]).turns), outermost(collected.turns())
    assert outcome.turns == len(read)
    assert [essence(turn) for turn in found] == [essence(turn) for turn in read]


def spans(*given, trace_id=1, pid=1, remote=()):
    """A request of spans given as (id, parent or None, name, operation, start, end); times in ms."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "agent"
    resource.resource.attributes.add(key="process.pid").value.int_value = pid
    scope = resource.scope_spans.add()
    for span_id, parent, name, operation, start_ms, end_ms in given:
        span = scope.spans.add(
            trace_id=trace_id.to_bytes(16, "big"),
            span_id=span_id.to_bytes(8, "big"),
            parent_span_id=b"" if parent is None else parent.to_bytes(8, "big"),
            name=name,
            start_time_unix_nano=T0_NS + start_ms * 1_000_000,
            end_time_unix_nano=T0_NS + end_ms * 1_000_000,
            flags=0x300 if span_id in remote else 0x100,
        )
        if operation:
            span.attributes.add(key="gen_ai.operation.name").value.string_value = operation
    return request.SerializeToString()


AGENT = (1, None, "invoke_agent a", "invoke_agent", 0, 1000)
CALL = (2, 1, "chat m", "chat", 100, 400)
TOOL = (3, 1, "execute_tool t", "execute_tool", 500, 900)


def gathered(*requests, waits=None):
    """A gathering of requests that came at second 0, 1, 2 ..."""
    gathering = Gathering(waits or Waits(linger_s=1, remote_s=5, idle_s=300))
    for second, body in enumerate(requests):
        gathering.add(
            list(arrived(body, "protobuf", with_origin=False)), second + 1, float(second), len(body)
        )
    return gathering


def due_at(gathering, *seconds):
    """How many traces are due at each second."""
    return [len(list(gathering.due(second))) for second in seconds]


def test_a_turn_closes_a_linger_after_its_root_came():
    """Not before, however long it was open; spans that come meanwhile belong to it."""
    assert due_at(gathered(spans(CALL), spans(AGENT), spans(TOOL)), 1.9, 2.0) == [0, 1]


def test_a_trace_without_its_root_is_waited_for():
    """A process that has not ended its root is still busy: minutes, not the linger."""
    assert due_at(gathered(spans(CALL)), 290.0, 300.0) == [0, 1]


def test_spans_below_another_process_are_waited_for_a_little():
    """When all roots are below spans of other processes, nothing more is expected here."""
    inner = [(4, 99, "tools/call x", "execute_tool", 0, 10), (5, 4, "other", "", 1, 2)]
    assert due_at(gathered(spans(*inner, remote=[4])), 4.9, 5.0) == [0, 1]


def test_too_many_spans_close_what_has_waited_longest():
    """The bound on memory: the oldest trace goes, as it is."""
    waits = Waits(max_spans=3)
    gathering = gathered(spans(CALL, TOOL, trace_id=1), spans(CALL, trace_id=2), waits=waits)
    assert due_at(gathering, 0.0) == [0]
    gathering.add(list(arrived(spans(CALL, trace_id=3), "protobuf", with_origin=False)), 3, 2.0, 100)
    assert [trace.trace_id[-1] for trace in gathering.due(2.0)] == ["1"]
    assert gathering.span_count == 2


def test_too_many_bytes_close_what_has_waited_longest():
    """The same for spans that are few and large."""
    one, two = spans(CALL, trace_id=1), spans(CALL, trace_id=2)
    gathering = gathered(one, two, waits=Waits(max_bytes=len(one) + len(two) - 1))
    assert [trace.trace_id[-1] for trace in gathering.due(1.0)] == ["1"]
    assert gathering.size_bytes <= len(two)


def test_a_span_that_comes_twice_is_one(collected):
    """A batch that was sent again changes nothing; of two ends the later one counts."""
    early = (1, None, "invoke_agent a", "invoke_agent", 0, 500)
    collected.put(spans(CALL, early), spans(CALL, AGENT), spans(CALL, TOOL))
    assert collected.work().turns == 1
    (turn,) = collected.turns()
    assert (turn.completed_ns - turn.started_ns, len(turn.spans)) == (1_000_000_000, 2)


def test_spans_after_their_turns_block_are_joined_by_readers(collected):
    """Late spans become a fragment beside the file, as those of another process do."""
    rounds = iter([[AGENT, CALL], [], [TOOL], []])
    spool = collected.spool()

    def is_over():
        given = next(rounds, None)
        if given:
            spool.take("traces", spans(*given), "protobuf")
        time.sleep(0.15)
        return given is None

    collected._waits = Waits(linger_s=0.1)
    with spool, collected.worker() as worker:
        outcome = worker.run(is_over)
    assert (outcome.turns, outcome.late_refused) == (1, 0)
    assert len(parts_of(collected.out)) == 1
    (turn,) = collected.turns()
    assert [(span.phase, span.parent_id[-1]) for span in turn.spans] == [
        ("generation", "1"),
        ("tool_execution", "1"),
    ]
    assert turn.counters["tool_calls"] == 1


def test_a_second_root_of_a_closed_trace_is_a_turn_of_its_own(collected):
    """A session whose turns share one trace: each root makes a block."""
    again = (11, None, "invoke_agent a", "invoke_agent", 2000, 3000)
    call = (12, 11, "chat m", "chat", 2100, 2400)
    rounds = iter([[AGENT, CALL], [], [again, call], []])
    spool = collected.spool()

    def is_over():
        given = next(rounds, None)
        if given:
            spool.take("traces", spans(*given), "protobuf")
        time.sleep(0.15)
        return given is None

    collected._waits = Waits(linger_s=0.1)
    with spool, collected.worker() as worker:
        worker.run(is_over)
    assert [turn.run_id[-1] for turn in collected.turns()] == ["1", "b"]


def test_r31_a_killed_agent_leaves_an_interrupted_turn(collected):
    """Without its root a turn is interrupted, with everything that came."""
    collected.put(spans(CALL, TOOL))
    collected.work()
    (turn,) = collected.turns()
    assert (turn.status, len(turn.spans)) == ("interrupted", 2)


def test_tools_that_a_thread_made_roots_join_the_turn_around_them(collected):
    """Their trace is another; their time and process are the turn's."""
    stray = (7, None, "execute_tool t", "execute_tool", 500, 600)
    rounds = iter([spans(stray, trace_id=9), None, spans(AGENT, CALL), None])
    spool = collected.spool()

    def is_over():
        given = next(rounds, b"")
        if given:
            spool.take("traces", given, "protobuf")
        time.sleep(0.15)
        return given == b""

    collected._waits = Waits(linger_s=0.1)
    with spool, collected.worker() as worker:
        worker.run(is_over)
    (turn,) = collected.turns()
    assert {(span.phase, span.parent_source) for span in turn.spans} == {
        ("generation", "otel"),
        ("tool_execution", "inferred"),
    }


def test_a_tool_of_another_process_is_a_turn_of_its_own(collected):
    """The same, but in another process."""
    stray = (7, None, "execute_tool t", "execute_tool", 500, 600)
    collected.put(spans(stray, trace_id=9, pid=2), spans(AGENT, CALL))
    collected.work()
    assert len(outermost(collected.turns())) == 2


def test_what_was_written_before_a_restart_is_not_written_again(collected):
    """The queue still has the requests of a turn that stands in the file: it is known by its ids."""
    collected.put(spans(AGENT, CALL))
    collected.work()
    collected.put(spans(AGENT, CALL), spans((21, None, "chat m", "chat", 0, 5), trace_id=2))
    assert collected.work().turns == 1
    assert [turn.trace_id[-1] for turn in collected.turns()] == ["1", "2"]


def test_a_rule_says_what_a_turn_is(tmp_path):
    """TURNTRACE_TURN: any span may be the turn."""
    collected = Collected(tmp_path, rule=lambda raw: raw.name == "POST /chat")
    collected.put(spans((1, None, "POST /chat", "", 0, 1000), CALL))
    collected.work()
    assert [(turn.turn_source, turn.root_name) for turn in collected.turns()] == [("rule", "POST /chat")]


def test_what_cannot_be_read_costs_itself_only(collected):
    """A damaged request in the queue is counted; the ones around it become turns."""
    collected.put(spans(AGENT, CALL), b"\xff\xff\xff", spans(AGENT, CALL, trace_id=2))
    outcome = collected.work()
    assert (outcome.unreadable, outcome.turns) == (1, 2)


def test_a_trace_that_breaks_assembly_costs_itself_only(collected, monkeypatch):
    """One trace that the analysis fails on is counted, the others of its moment are turns."""
    from turntrace.collect import closing

    real = closing.assemble

    def fails(given, **settings):
        if any(raw.trace_id.endswith("2") for raw in given):
            raise ZeroDivisionError
        return real(given, **settings)

    monkeypatch.setattr(closing, "assemble", fails)
    collected.put(spans(AGENT, CALL), spans(AGENT, CALL, trace_id=2))
    outcome = collected.work()
    assert (outcome.unreadable, outcome.turns) == (2, 1)


def test_a_queue_that_is_done_is_empty(collected):
    """Requests whose turns are written are deleted."""
    collected.put(spans(AGENT, CALL), json_traces())
    collected.work()
    assert list(requests_folder(collected.folder / "spool").iterdir()) == []


def test_requests_of_open_turns_stay_in_the_queue(collected):
    """What a kill would lose is on disk until its turn is."""
    states = []

    def is_over():
        states.append(len(list(requests_folder(collected.folder / "spool").iterdir())))
        return len(states) > 3

    collected.put(spans(CALL))
    collected.work(is_over)
    assert set(states) == {1}


def test_only_the_segments_of_open_turns_stay(collected):
    """A segment goes when no open turn has a span in it, whatever is older or newer."""
    folder, kept = requests_folder(collected.folder / "spool"), []

    def is_over():
        kept.append(sorted(int(path.name[:12]) for path in folder.iterdir()))
        time.sleep(0.1)
        return len(kept) > 4

    collected._waits = Waits(linger_s=0.1)
    with Spool(folder, SpoolBounds(segment_bytes=1)) as spool:
        for body in (spans(CALL), spans(AGENT, trace_id=2), spans(TOOL), spans(AGENT, CALL, trace_id=3)):
            spool.take("traces", body, "protobuf")
    collected.work(is_over)
    assert kept[0] == [1, 2, 3, 4]
    assert kept[3] == [1, 3, 4]  # the newest may still be written to
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("limit", ["OUT", "gone"])
def test_a_disk_that_takes_no_turn_keeps_the_queue(collected, monkeypatch, limit):
    """What cannot be written stays in the queue; the worker says so, and the next one writes it."""
    from turntrace.collect import turn_writer, worker

    monkeypatch.setattr(worker, "_FULL_DISK_S", 0.01)
    real = turn_writer.append_blocks
    calls = []

    def full(*arguments, **settings):
        calls.append(1)
        if limit == "OUT" or len(calls) < 3:
            raise OSError(28, "No space left on device")
        return real(*arguments, **settings)

    monkeypatch.setattr(turn_writer, "append_blocks", full)
    collected.put(spans(AGENT, CALL))
    outcome = collected.work()
    assert outcome.is_written == (limit == "gone")
    if limit == "OUT":
        assert not collected.out.exists()
        monkeypatch.setattr(turn_writer, "append_blocks", real)
        outcome = collected.work()
    assert outcome.is_written
    assert len(collected.turns()) == 1


def test_blocks_go_aside_while_another_process_holds_the_file(collected):
    """The lock of the file is respected: the turn goes to a file of this process."""
    from turntrace.files.lock import FileLock

    collected.put(spans(AGENT, CALL))
    with FileLock(collected.out.with_name("out.ndjson.lock")):
        collected.work()
    aside = collected.out.with_name(f"out.ndjson.{os.getpid()}")
    assert len(read_paths([str(aside)]).turns) == 1


def test_fragments_are_bounded(collected, monkeypatch):
    """Late spans of ever more traces cannot fill a folder with files."""
    from turntrace.collect import turn_writer

    monkeypatch.setattr(turn_writer, "_MAX_FRAGMENTS", 1)
    for trace_id in (1, 2):
        collected.put(spans(AGENT, CALL, trace_id=trace_id))
    collected.work()
    collected.put(spans(TOOL, trace_id=1), spans(TOOL, trace_id=2))
    outcome = collected.work()
    assert (outcome.late_refused, len(parts_of(collected.out))) == (1, 1)


def test_complaint_25_26_r57_a_received_turn_adds_up_and_knows_the_human(collected):
    """Approvals are not agent time, what nobody explains is its own figure, and times are as they came."""
    ask, server = (4, 1, "permission_wait", "", 500, 800), (5, 2, "POST /v1", "", 350, 480)
    request = ExportTraceServiceRequest.FromString(spans(AGENT, CALL, ask, server))
    waiting = request.resource_spans[0].scope_spans[0].spans[2]
    waiting.attributes.add(key="turntrace.phase").value.string_value = "permission_wait"
    collected.put(request.SerializeToString())
    collected.work()
    (turn,) = collected.turns()
    from turntrace.core.attribution import attributed

    found = attributed(turn)
    assert found.wall_ns == found.attributed_ns + found.unattributed_ns == 1_000_000_000
    assert found.wall_ns - found.active_ns == 300_000_000
    raw = {span.span_id[-1]: (span.start_ns - T0_NS, span.end_ns - T0_NS) for span in turn.spans}
    assert raw["5"] == (350_000_000, 480_000_000)


def test_complaint_27_a_childs_spans_join_the_turn_of_its_parent(collected):
    """A process that continued the trace, with an exporter of its own, is part of the turn."""
    child = [(31, 3, "tools/call t", "execute_tool", 520, 880), (32, 31, "chat m", "chat", 530, 600)]
    collected.put(spans(*child, pid=2, remote=[31]), spans(CALL, TOOL, AGENT))
    collected.work()
    (turn,) = outermost(collected.turns())
    assert {span.span_id[-2:] for span in turn.spans} == {"02", "03", "1f", "20"}


def test_r58_work_that_only_follows_is_no_child(collected):
    """A span of the same trace that is linked, not nested, leaves its cause's own time alone."""
    request = ExportTraceServiceRequest.FromString(
        spans((1, None, "chat m", "chat", 0, 100), (2, None, "chat m", "chat", 500, 900))
    )
    late = request.resource_spans[0].scope_spans[0].spans[1]
    late.links.add(trace_id=late.trace_id, span_id=(1).to_bytes(8, "big"))
    collected.put(request.SerializeToString())
    collected.work()
    walls = [turn.completed_ns - turn.started_ns for turn in outermost(collected.turns())]
    assert walls == [100_000_000, 400_000_000]


def test_r73_an_end_before_the_start_is_no_length_and_no_age(collected):
    """A clock that stepped back between start and end: no negative duration, the start as it came."""
    collected.put(spans(AGENT, (2, 1, "chat m", "chat", 400, 100)))
    collected.work()
    (turn,) = collected.turns()
    (span,) = turn.spans
    assert (span.start_ns - T0_NS, span.end_ns - span.start_ns) == (400_000_000, 0)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_json_is_refused_or_read(data):
    """Documents that look like requests and are none: refused with a reason, or read without an error."""
    keys = (
        "resourceSpans",
        "resource",
        "scopeSpans",
        "spans",
        "attributes",
        "key",
        "value",
        "values",
        "events",
    )
    keys += (
        "arrayValue",
        "kvlistValue",
        "traceId",
        "spanId",
        "startTimeUnixNano",
        "status",
        "flags",
        "scope",
    )
    leaves = (
        st.none()
        | st.booleans()
        | st.integers(-5, 2**70)
        | st.text(max_size=3)
        | st.sampled_from(["01" * 16, "02" * 8, "1700000000000000000"])
    )
    trees = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys), inner, max_size=5),
        max_leaves=25,
    )
    document = json.loads(json_traces(2))
    holders = [document, document["resourceSpans"][0], document["resourceSpans"][0]["scopeSpans"][0]]
    holders += document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for holder in data.draw(st.lists(st.sampled_from(holders), max_size=3)):
        holder[data.draw(st.sampled_from(keys))] = data.draw(trees)
    try:
        found = checked("traces", json.dumps(document).encode(), "json", 1000)
    except RefusedError:
        return
    read = list(arrived(found.body, "json", with_origin=True))
    assert len(read) <= found.items


@pytest.mark.slow
def test_complaint_28_forked_senders_are_told_apart(tmp_path):
    """A process that forks inside a turn, both with exporters of their own: one turn, two processes."""
    program = tmp_path / "forks.py"
    program.write_text(FORKS)
    with RequestFiles(tmp_path / "raw") as sink, Receiver(sink) as receiver:
        env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_endpoint_with_token}
        subprocess.run([sys.executable, str(program)], env=env, check=True, timeout=60)
        requests = [frame for path in sink.paths("traces") for frame in frames_of(path)]
    pids = {
        raw.resource["process.pid"]
        for body in requests
        for raw, _ in arrived(body, "protobuf", with_origin=False)
    }
    assert len(pids) == 2
    collected = Collected(tmp_path)
    collected.put(*requests)
    collected.work()
    (turn,) = outermost(collected.turns())
    assert sorted(span.name for span in turn.spans) == ["chat in child", "chat in parent"]


def frames_of(path):
    """The messages of a file of messages with their lengths."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 4 + length]
        at += 4 + length


FORKS = """
import os
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry import trace

def tracer():
    provider = TracerProvider(resource=Resource({"process.pid": os.getpid()}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider, provider.get_tracer("t")

provider, mine = tracer()
with mine.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
    pid = os.fork()
    if pid == 0:
        own, child = tracer()
        with child.start_as_current_span("chat in child", attributes={"gen_ai.operation.name": "chat"}):
            pass
        own.shutdown()
        os._exit(0)
    with mine.start_as_current_span("chat in parent", attributes={"gen_ai.operation.name": "chat"}):
        pass
    assert os.waitpid(pid, 0)[1] == 0
provider.shutdown()
"""
