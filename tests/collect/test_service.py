"""What goes wrong around the receiver: its worker, its queue, its file."""

import sys
import threading

import pytest

from otlp_requests import post, traces
from turntrace.collect import service as module
from turntrace.collect import turn_writer
from turntrace.collect.gathering import Waits
from turntrace.collect.limits import Limits
from turntrace.collect.receiver import Settings
from turntrace.collect.service import Service, ServicePlan
from turntrace.collect.spool import Spool
from turntrace.collect.turn_writer import TurnWriter
from turntrace.collect.worker import Work, Worker, requests_folder
from turntrace.core.attribution import attributed
from turntrace.core.turns import assemble
from turntrace.errors import ConfigurationError
from turntrace.files.append import Rotation
from turntrace.files.lock import FileLock
from turntrace.files.otlp_proto import read_message
from turntrace.files.out import parts_of
from turntrace.files.raw_spans import RawSpans
from turntrace.files.read import read_paths

SLEEPING = (sys.executable, "-c", "import sys; sys.stdin.read(); print('{}')")
FAILING = (sys.executable, "-c", "raise SystemExit(3)")


def plan(folder, command):
    """A plan with a worker of another kind."""
    return ServicePlan(receiver=Settings(token=None, limits=Limits(head_s=5)), folder=folder, command=command)


def test_a_worker_that_always_fails_is_given_up(tmp_path, monkeypatch):
    """After some restarts the service says so and ends; what came is in the queue."""
    monkeypatch.setattr(module, "_MOST_RESTARTS", 2)
    said = []
    with Service(plan(tmp_path / "q", FAILING), said.append) as service:
        assert post(service.receiver, traces()).status == 200
        service.wait(threading.Event())
        received, made = service.finish()
    assert (received["items"], made) == ({"traces": 1}, None)
    assert [line.count("started again") for line in said] == [1, 1, 0]
    assert "ended again (status 3); what came is in" in said[-1]
    assert list(requests_folder(tmp_path / "q").glob("*.pb"))


def test_a_worker_that_does_not_end_is_ended(tmp_path, monkeypatch):
    """Leaving without finishing does not wait for ever."""
    monkeypatch.setattr(module, "_STOP_S", 0.3)
    stubborn = (sys.executable, "-c", "import time; time.sleep(60)")
    with Service(plan(tmp_path / "q", stubborn), print) as service:
        pid = service.worker_pid
    assert service._worker.returncode == -9
    assert service._worker.pid == pid


def test_a_queue_of_another_process_is_told(tmp_path, monkeypatch):
    """Two services never write to one queue."""
    monkeypatch.setattr(module, "_LOCK_S", 0.1)
    said = []
    folder = tmp_path / "q"
    with (
        Service(plan(folder, SLEEPING), said.append),
        pytest.raises(ConfigurationError, match="give --spool another folder"),
        Service(plan(folder, SLEEPING), said.append),
    ):
        pass
    assert "an earlier collect still works on" in said[0]


def test_old_requests_go_while_nothing_comes(tmp_path, monkeypatch):
    """The bound on age is looked after by the clock, not by requests."""
    monkeypatch.setattr(module, "_TIDY_S", 0.0)
    tidied = []
    with Service(plan(tmp_path / "q", SLEEPING), print) as service:
        monkeypatch.setattr(Spool, "tidy", lambda _spool: tidied.append(1))
        stop = threading.Event()
        threading.Timer(0.6, stop.set).start()
        service.wait(stop)
    assert tidied


def test_an_answer_that_is_none_is_a_failure(tmp_path):
    """A worker that ends well and says nothing sensible has not done its work for certain."""
    babbling = (sys.executable, "-c", "import sys; sys.stdin.read(); print('done!')")
    with Service(plan(tmp_path / "q", babbling), print) as service:
        assert service.finish()[1] is None


def turns_of(body):
    """The turns of a request with where their time went."""
    spans = RawSpans()
    read_message(body, 0, spans)
    return [(turn, attributed(turn)) for turn in assemble(spans.spans)]


def orphan(number, trace_id=1):
    """A call whose parent is not there."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest.FromString(traces(trace_id=trace_id, first=number))
    request.resource_spans[0].scope_spans[0].spans[0].parent_span_id = b"\0" * 7 + b"\x01"
    return request.SerializeToString()


def written(out, *bodies):
    """Write the turns of requests with a new writer, as after a restart."""
    writer = TurnWriter(out, Rotation())
    writer.remember_file()
    for body in bodies:
        writer.add(turns_of(body))
    assert writer.flush()
    return writer


def test_late_spans_are_told_once(tmp_path):
    """After a restart that reads them again, they stand in one fragment still."""
    out = tmp_path / "out.ndjson"
    written(out, traces(), orphan(7))
    (part,) = parts_of(out)
    before = part.read_bytes()
    written(out, traces(), orphan(7))
    assert part.read_bytes() == before
    (turn,) = read_paths([str(out)]).turns
    assert [span.span_id[-1] for span in turn.spans] == ["1", "7"]


def test_an_interrupted_turn_stays_one_block(tmp_path):
    """Read again after a restart it is neither written again nor taken for late spans."""
    out = tmp_path / "out.ndjson"
    assert written(out, orphan(7)).turns == 1
    assert written(out, orphan(7)).turns == 0
    assert parts_of(out) == []


def test_what_is_remembered_is_bounded(tmp_path, monkeypatch):
    """The ids of old turns are forgotten."""
    monkeypatch.setattr(turn_writer, "_KNOWN", 3)
    writer = written(tmp_path / "out.ndjson", *(traces(trace_id=number) for number in range(1, 9)))
    assert (len(writer._known), len(writer._traces), writer.turns) == (3, 3, 8)


def test_a_fragment_that_cannot_be_written_is_counted(tmp_path, monkeypatch):
    """Late spans that the disk does not take are lost, and told."""
    out = tmp_path / "out.ndjson"
    written(out, traces())
    monkeypatch.setattr(
        turn_writer.JournalFile, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
    )
    with Spool(requests_folder(tmp_path / "q")) as spool:
        spool.take("traces", orphan(9), "protobuf")
        spool.take("traces", traces(trace_id=2), "protobuf")
    work = Work(folder=tmp_path / "q", out=out, rotation=Rotation(), waits=Waits())
    with Worker(work, None, None) as running:
        outcome = running.run(lambda: True)
    assert (outcome.late_refused, outcome.turns) == (1, 1)


def test_a_lock_of_a_worker_keeps_the_next_one_waiting(tmp_path):
    """Two workers never read one queue: FileLock is what keeps them apart."""
    with FileLock(tmp_path / "worker.lock") as first, FileLock(tmp_path / "worker.lock", 0) as second:
        assert (first.held, second.held) == (True, False)
