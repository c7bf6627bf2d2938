"""What is received is sent on, enriched, once the endpoint takes it, without content unless it is asked for."""

import threading
import time
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otlp_receiver import GrpcReceiver, HttpReceiver, attributes_of, refused_endpoint, wait_for
from otlp_requests import T0_NS, json_traces, traces
from turntrace.collect.enrichment import CUT_PREFIX
from turntrace.collect.forwarder import Forwarder
from turntrace.collect.gathering import Waits
from turntrace.collect.messages import request_class
from turntrace.collect.spool import Spool, SpoolBounds
from turntrace.collect.worker import Work, Worker, requests_folder
from turntrace.config import Settings
from turntrace.files.append import Rotation
from turntrace.otel.probe import is_listening
from turntrace.otel.sender import Sender


def sender_to(endpoint, *, keeps_content=False, timeout="2", monkeypatch=None):
    """A sender with a short time-out."""
    if monkeypatch is not None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", timeout)
    return Sender(Settings.from_env(), endpoint, keeps_content=keeps_content)


def send_on(folder, endpoint, *requests, keeps_content=False, exit_s=5.0):
    """Queue requests, and let a worker send them on; what it did."""
    with Spool(requests_folder(folder)) as spool:
        for body in requests:
            spool.take("traces", body, "json" if body.startswith(b"{") else "protobuf")
    work = Work(folder=folder, out=None, rotation=Rotation(), waits=Waits(), exit_s=exit_s)
    sender = sender_to(endpoint, keeps_content=keeps_content)
    with (
        Forwarder(folder / "forward", sender, lambda: is_listening(endpoint), first_wait_s=0.05) as forwarder,
        Worker(work, None, forwarder) as worker,
    ):
        return worker.run(lambda: True)


def agent_request():
    """An agent with a model call that has content everywhere, a tool, and a nested agent."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add(schema_url="https://example/r")
    resource.resource.attributes.add(key="service.name").value.string_value = "svc"
    scope = resource.scope_spans.add(schema_url="https://example/s")
    scope.scope.name, scope.scope.version = "my.scope", "1.2"
    for number, parent, name, operation, start, end in (
        (1, 0, "invoke_agent a", "invoke_agent", 0, 1000),
        (2, 1, "chat m", "chat", 100, 400),
        (3, 1, "execute_tool t", "execute_tool", 500, 900),
        (4, 3, "invoke_agent b", "invoke_agent", 550, 850),
        (5, 4, "chat m", "chat", 600, 800),
    ):
        span = scope.spans.add(
            trace_id=b"t" * 16,
            span_id=number.to_bytes(8, "big"),
            parent_span_id=parent.to_bytes(8, "big") if parent else b"",
            name=name,
            kind=Span.SPAN_KIND_CLIENT if operation == "chat" else Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=T0_NS + start * 1_000_000,
            end_time_unix_nano=T0_NS + end * 1_000_000,
            flags=0x101,
            trace_state="a=b",
            dropped_attributes_count=7,
        )
        span.attributes.add(key="gen_ai.operation.name").value.string_value = operation
        span.attributes.add(key="gen_ai.input.messages").value.string_value = "a secret prompt"
        span.attributes.add(key="gen_ai.usage.input_tokens").value.int_value = 10
        span.attributes.add(key="gen_ai.usage.output_tokens").value.int_value = 3
        event = span.events.add(name="exception", time_unix_nano=T0_NS)
        event.attributes.add(key="exception.message").value.string_value = "a secret message"
        link = span.links.add(trace_id=b"l" * 16, span_id=b"k" * 8)
        link.attributes.add(key="why").value.string_value = "a secret reason"
        span.status.code, span.status.message = 2, "a secret status"
    return request.SerializeToString()


def by_id(receiver):
    """The spans that came, by the last byte of their ids."""
    return {span.span_id[-1]: (resource, scope, span) for resource, scope, span in receiver.spans()}


@pytest.mark.parametrize("kind", [HttpReceiver, GrpcReceiver])
def test_spans_arrive_enriched_with_ids_and_times_kept(tmp_path, kind, monkeypatch):
    """Phase, exclusive time and outcome on each span; the whole answer on the turn, and on the one inside it."""
    if kind is GrpcReceiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with kind() as target:
        outcome = send_on(tmp_path, target.endpoint, agent_request())
        found = by_id(target)
    assert (outcome.is_delivered, outcome.sent_requests, sorted(found)) == (True, 1, [1, 2, 3, 4, 5])
    resource, scope, call = found[2]
    assert attributes_of(resource)["service.name"] == "svc"
    assert scope == "my.scope"
    assert (call.trace_id, call.parent_span_id[-1], call.kind) == (b"t" * 16, 1, Span.SPAN_KIND_CLIENT)
    assert call.start_time_unix_nano == T0_NS + 100_000_000
    assert (call.trace_state, call.dropped_attributes_count) == ("a=b", 7)
    assert call.links[0].trace_id == b"l" * 16
    facts = attributes_of(call)
    assert (facts["turntrace.phase"], facts["turntrace.exclusive_ms"]) == ("generation", 300.0)
    assert attributes_of(found[3][2])["turntrace.exclusive_ms"] == 100.0
    answer = attributes_of(found[1][2])
    assert (answer["turntrace.phase"], answer["turntrace.exclusive_ms"]) == ("turn", 300.0)
    assert answer["turntrace.turn.model_requests"] == 2
    walls = [value for name, value in answer.items() if name.startswith("turntrace.wall.")]
    assert sum(walls) == pytest.approx(1000.0)
    assert attributes_of(found[4][2])["turntrace.wall.generation_ms"] == 200.0


def test_no_content_leaves_unless_it_is_asked_for(tmp_path):
    """Attributes off the allow-list, those of events and links, and status messages stay here."""
    with HttpReceiver() as target:
        send_on(tmp_path / "drop", target.endpoint, agent_request())
        assert b"secret" not in b"".join(target.bodies)
        assert {span.status.code for _, _, span in target.spans()} == {2}
    with HttpReceiver() as target:
        send_on(tmp_path / "keep", target.endpoint, agent_request(), keeps_content=True)
        sent = b"".join(target.bodies)
    assert all(
        word in sent for word in (b"secret prompt", b"secret message", b"secret reason", b"secret status")
    )


def test_spans_that_belong_to_no_turn_go_on_too(tmp_path):
    """Nothing that came is held back because it is no agent's."""
    request = traces(3, name="GET /").replace(b"gen_ai.operation.name", b"other.operation.namex"[:21])
    with HttpReceiver() as target:
        send_on(tmp_path, target.endpoint, request)
        assert [span.name for _, _, span in target.spans()] == ["GET /"] * 3


def test_json_requests_go_on_as_well(tmp_path):
    """Their ids are what they were."""
    with HttpReceiver() as target:
        send_on(tmp_path, target.endpoint, json_traces(2, trace_id=0xABC))
        assert [span.trace_id.hex()[-3:] for _, _, span in target.spans()] == ["abc", "abc"]


def test_nested_values_arrive(tmp_path):
    """Lists and maps of attributes reach the endpoint in keep mode, deeper ones as JSON."""
    request = ExportTraceServiceRequest.FromString(traces())
    span = request.resource_spans[0].scope_spans[0].spans[0]
    even, odd = span.attributes.add(key="even").value, span.attributes.add(key="odd").value
    for text in ("a", "b"):
        even.array_value.values.add(string_value=text)
    odd.array_value.values.add(string_value="a")
    odd.array_value.values.add(int_value=1)
    pair = span.attributes.add(key="map").value.kvlist_value.values.add(key="k")
    pair.value.bool_value = True
    span.attributes.add(key="raw").value.bytes_value = b"\x01\xff"
    span.attributes.add(key="empty")
    with HttpReceiver() as target:
        send_on(tmp_path, target.endpoint, request.SerializeToString(), keeps_content=True)
        (_, _, sent) = target.spans()[0]
    found = {pair.key: pair.value for pair in sent.attributes}
    assert [value.string_value for value in found["even"].array_value.values] == ["a", "b"]
    assert (found["odd"].string_value, found["map"].string_value) == ('["a",1]', '{"k":true}')
    assert found["raw"].string_value == "01ff"
    assert "empty" not in found


def test_complaint_23_a_huge_value_is_cut_and_its_neighbours_arrive(tmp_path):
    """20 MB of tool output: each request stays below 4 MB, the length is told, nothing else is lost."""
    request = ExportTraceServiceRequest.FromString(agent_request())
    tool = request.resource_spans[0].scope_spans[0].spans[2]
    tool.attributes.add(key="gen_ai.tool.call.result").value.string_value = "x" * (20 << 20)
    with HttpReceiver() as target:
        send_on(tmp_path, target.endpoint, request.SerializeToString(), traces(9000), keeps_content=True)
        assert max(map(len, target.bodies)) < 4 << 20
        assert len(target.spans()) == 9005
        (output,) = [span for _, _, span in target.spans() if span.name == "execute_tool t"]
    facts = attributes_of(output)
    assert facts[f"{CUT_PREFIX}gen_ai.tool.call.result"] == 20 << 20
    assert 1000 < len(facts["gen_ai.tool.call.result"]) < 64 << 10


def test_a_dead_endpoint_loses_nothing(tmp_path, monkeypatch):
    """What was not delivered stays in the queue, is told, and arrives after the next start, each span once."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    endpoint = refused_endpoint()
    start_s = time.monotonic()
    outcome = send_on(tmp_path, endpoint, traces(5), traces(5, trace_id=2), exit_s=0.5)
    assert not outcome.is_delivered
    assert time.monotonic() - start_s < 5
    port = int(endpoint.rpartition(":")[2])
    with HttpReceiver(port=port) as target:
        outcome = send_on(tmp_path, endpoint)
        assert outcome.is_delivered
        assert len(target.spans()) == 10
        assert not list((tmp_path / "forward").glob("*.pb"))


def test_a_restart_sends_only_what_was_not_delivered(tmp_path, monkeypatch):
    """What the endpoint took is noted after each request."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")

    class Once:
        """Takes one request."""

        def __init__(self):
            self.taken = []

        def send(self, resource_spans):
            if self.taken:
                return False
            self.taken.append(resource_spans)
            return True

        def close(self):
            pass

    once = Once()
    with Forwarder(tmp_path, once, lambda: False) as forwarder:
        for number in (1, 2, 3):
            forwarder.add(traces(trace_id=number))
        assert wait_for(lambda: once.taken)
        assert not forwarder.stop(0.1)
    with HttpReceiver() as target:
        with Forwarder(tmp_path, sender_to(target.endpoint), lambda: True) as forwarder:
            assert forwarder.stop(5)
        assert [span.trace_id[-1] for _, _, span in target.spans()] == [2, 3]


def test_an_emptied_queue_counts_anew(tmp_path):
    """A note of how far an old queue was sent says nothing of a new one."""
    for number in (1, 2, 3):
        with HttpReceiver() as target:
            with Forwarder(tmp_path, sender_to(target.endpoint), lambda: True) as forwarder:
                for trace_id in range(1, 5 - number):
                    forwarder.add(traces(trace_id=trace_id))
                assert forwarder.stop(5)
            assert len(target.spans()) == 4 - number


class Scripted:
    """Answers as told, then takes everything."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.taken = []

    def send(self, resource_spans):
        """See SpanSender."""
        if self.answers and not self.answers.pop(0):
            return False
        self.taken.append(len(resource_spans[0].scope_spans[0].spans))
        return True

    def close(self):
        """See SpanSender."""


def test_a_flapping_endpoint_gets_everything_in_order(tmp_path):
    """Refusals between successes cost time only."""
    flapping = Scripted(True, False, False, True, False, True)
    with Forwarder(tmp_path, flapping, lambda: True, first_wait_s=0.01) as forwarder:
        for size in (1, 2, 3, 4):
            forwarder.add(traces(size))
        assert forwarder.stop(5)
        assert (flapping.taken, forwarder.sent_requests) == ([1, 2, 3, 4], 4)


def test_a_request_that_is_always_refused_is_given_up(tmp_path, monkeypatch):
    """A reachable endpoint that refuses one request again and again does not keep the others waiting for ever."""
    from turntrace.collect import forwarder as module

    monkeypatch.setattr(module, "_LONGEST_WAIT_S", 0.01)
    picky = Scripted(*[False] * 20)
    with Forwarder(tmp_path, picky, lambda: True, first_wait_s=0.01) as forwarder:
        forwarder.add(traces(1))
        forwarder.add(traces(2))
        assert forwarder.stop(5)
        assert (picky.taken, forwarder.given_up) == ([2], 1)


def test_an_endpoint_that_is_down_is_never_given_up(tmp_path, monkeypatch):
    """Where nothing listens a refusal says nothing about the request."""
    from turntrace.collect import forwarder as module

    monkeypatch.setattr(module, "_LONGEST_WAIT_S", 0.001)
    down = Scripted(*[False] * 60)
    with Forwarder(tmp_path, down, lambda: False, first_wait_s=0.001) as forwarder:
        forwarder.add(traces(1))
        assert forwarder.stop(5)
        assert (down.taken, forwarder.given_up) == ([1], 0)


def test_the_queue_is_bounded_and_counts_what_it_drops(tmp_path):
    """An endpoint that stays away costs so much disk, and the newest spans are what is kept."""
    bounds = SpoolBounds(max_bytes=40_000, segment_bytes=10_000)
    blocked = threading.Event()

    class Blocked(Scripted):
        def send(self, resource_spans):
            blocked.wait(10)
            return super().send(resource_spans)

    slow = Blocked()
    with Forwarder(tmp_path, slow, lambda: True, bounds) as forwarder:
        for number in range(200):
            forwarder.add(traces(4, trace_id=number + 1))
        assert sum(path.stat().st_size for path in tmp_path.glob("*.pb")) <= 40_000
        assert forwarder.dropped_bytes > 0
        blocked.set()
        assert forwarder.stop(5)
        assert 50 < len(slow.taken) < 150


def test_old_requests_are_dropped(tmp_path):
    """The queue is bounded in age too."""
    with Spool(tmp_path) as spool:
        spool.take("traces", traces(), "protobuf")
    with Spool(tmp_path, SpoolBounds(max_age_s=10), now_s=lambda: time.time() + 11) as spool:
        assert spool.dropped_bytes > 0
        spool.take("traces", traces(), "protobuf")
        spool.tidy()
    assert len(list(tmp_path.iterdir())) == 1


def test_complaint_20_a_dead_endpoint_is_a_line_a_minute(tmp_path, caplog, monkeypatch):
    """However often it is tried."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    send_on(tmp_path, refused_endpoint(), *(traces(trace_id=number) for number in range(1, 5)), exit_s=1.5)
    lines = [record for record in caplog.records if record.name.startswith("opentelemetry")]
    assert len(lines) <= 1


def test_what_is_sent_on_can_be_read_again(tmp_path):
    """The queue itself is OTLP, which a report reads."""
    from turntrace.files.read import read_paths

    with Forwarder(tmp_path, Scripted(*[False] * 9999), lambda: False) as forwarder:
        forwarder.add(agent_request())
        forwarder.stop(0.1)
    (path,) = Path(tmp_path).glob("*.pb")
    assert len(read_paths([str(path)]).turns) == 2
    assert request_class("traces").FromString(agent_request()).resource_spans
