"""The receiver over HTTP: what is accepted, and that it is stored as it came."""

import json
import time
from threading import Thread

import httpx
import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter as JsonExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from otlp_receiver import wait_for
from otlp_requests import (
    COMPRESSORS,
    JSON,
    PROTOBUF,
    MemorySink,
    json_traces,
    logs,
    metrics,
    post,
    raw,
    traces,
)
from turntrace.collect.limits import Limits
from turntrace.collect.receiver import Receiver, Settings
from turntrace.collect.sink import RequestFiles
from turntrace.files.read import read_paths


@pytest.fixture
def sink():
    """A sink that keeps requests."""
    return MemorySink()


@pytest.fixture
def receiver(sink):
    """A receiver on loopback."""
    with Receiver(sink) as running:
        yield running


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize(("kind", "body"), [("protobuf", traces(3)), ("json", json_traces(3))])
def test_a_request_is_stored_inflated_and_unchanged(receiver, sink, name, kind, body):
    """Whatever the compression, the sink gets the bytes that were compressed."""
    headers = {"Content-Encoding": name.split()[0]} if name else {}
    reply = post(
        receiver,
        COMPRESSORS[name](body),
        headers=headers,
        content_type=PROTOBUF if kind == "protobuf" else JSON,
    )
    assert (reply.status, reply.body) == (200, b"" if kind == "protobuf" else b"{}")
    assert reply.headers["content-type"] == (PROTOBUF if kind == "protobuf" else JSON)
    assert sink.taken == [("traces", body, kind)]
    assert receiver.totals.items == {"traces": 3}


def test_gzip_in_several_members_is_one_body(receiver, sink):
    """Members that follow one another are joined, as gzip says."""
    body = traces(40)
    packed = COMPRESSORS["gzip"](body[:100]) + COMPRESSORS["gzip"](body[100:])
    assert post(receiver, packed, headers={"Content-Encoding": "gzip"}).status == 200
    assert sink.taken[0][1] == body


@pytest.mark.parametrize(
    ("signal", "body", "items"), [("traces", traces(2), 2), ("metrics", metrics(), 2), ("logs", logs(), 1)]
)
def test_each_signal_has_its_path(receiver, sink, signal, body, items):
    """Traces, metrics and logs are told apart by path and counted by their own items."""
    assert post(receiver, body, f"/v1/{signal}").status == 200
    assert post(receiver, body, f"/v1/{signal}/").status == 200
    assert [taken[0] for taken in sink.taken] == [signal, signal]
    assert receiver.totals.requests == {signal: 2}
    assert receiver.totals.items == {signal: 2 * items}


def test_metrics_and_logs_come_as_json_too(receiver, sink):
    """The JSON encoding of the other signals is counted like theirs in protobuf."""
    points = {"gauge": {"dataPoints": [{"asInt": "1"}, {"asInt": "2"}]}}
    body = json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m", **points}]}]}]})
    assert post(receiver, body.encode(), "/v1/metrics", content_type=JSON).status == 200
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [{}, {}, {}]}]}]})
    assert post(receiver, body.encode(), "/v1/logs", content_type=JSON).status == 200
    assert receiver.totals.items == {"metrics": 1, "logs": 3}
    assert [kind for _, _, kind in sink.taken] == ["json", "json"]


def test_a_body_may_come_in_chunks(receiver, sink):
    """Transfer-Encoding: chunked, of any size of chunks."""
    body = traces(500)
    pieces = [body[at : at + 777] for at in range(0, len(body), 777)]
    assert post(receiver, iter(pieces)).status == 200
    assert sink.taken == [("traces", body, "protobuf")]


def test_a_connection_is_kept_for_further_requests(receiver, sink):
    """Exporters keep their connection; three requests over one, one of them refused."""
    url = f"{receiver.http_endpoint}/v1/traces"
    headers = {"Content-Type": PROTOBUF, **receiver.headers}
    with httpx.Client() as client:
        statuses = [client.post(url, content=body, headers=headers) for body in (traces(), b"\xff", traces())]
    assert [reply.status_code for reply in statuses] == [200, 400, 200]
    assert len(sink.taken) == 2


def test_a_sender_that_asks_first_is_told_to_continue(receiver, sink):
    """Expect: 100-continue, as curl sends it before large bodies."""
    body = traces()
    head = (
        f"POST /v1/traces HTTP/1.1\r\nHost: {receiver.address}\r\nContent-Type: {PROTOBUF}\r\n"
        f"Authorization: Bearer {receiver.token}\r\nContent-Length: {len(body)}\r\n"
        "Expect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    answer = raw(receiver, head.encode() + body)
    assert answer.startswith(b"HTTP/1.1 100 ")
    assert b"HTTP/1.1 200 " in answer


def test_the_official_exporters_are_understood(tmp_path):
    """Spans of the SDK over http/protobuf, with each compression, and over http/json are in the report."""
    with RequestFiles(tmp_path / "raw") as sink, Receiver(sink) as receiver:
        url = f"{receiver.http_endpoint}/v1/traces"
        provider = TracerProvider()
        for number, exporter in enumerate(
            [
                *(OTLPSpanExporter(url, headers=receiver.headers, compression=one) for one in Compression),
                OTLPSpanExporter(f"{receiver.http_endpoint_with_token}/v1/traces"),
                JsonExporter(endpoint=url, headers=receiver.headers),
            ]
        ):
            provider = TracerProvider()
            provider.add_span_processor(SimpleSpanProcessor(exporter))
            with provider.get_tracer("t").start_as_current_span(
                f"chat {number}", attributes={"gen_ai.operation.name": "chat"}
            ):
                pass
            provider.shutdown()
        assert receiver.totals.rejected == {}
        paths = [str(path) for path in sink.paths("traces")]
    turns = read_paths(paths).turns
    assert len(turns) == number + 1
    assert {turn.counters["model_requests"] for turn in turns} == {1}


def test_the_headers_setting_is_what_the_sdk_reads(sink, receiver, monkeypatch):
    """The token as OTEL_EXPORTER_OTLP_HEADERS opens the receiver to exporters that were told nothing else."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", receiver.headers_setting)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.http_endpoint)
    metric_reader = PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=3_600_000)
    meters = MeterProvider([metric_reader])
    meters.get_meter("t").create_counter("c").add(1)
    meters.shutdown()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
    provider.get_logger("t").emit(body="hello", severity_number=SeverityNumber.INFO)
    provider.shutdown()
    assert sorted(signal for signal, _, _ in sink.taken) == ["logs", "metrics"]
    assert receiver.totals.rejected == {}


def test_spans_that_no_reader_can_take_are_left_out_and_told(receiver, sink):
    """Partial success: how many, why, and the others are stored."""
    request = ExportTraceServiceRequest.FromString(traces(4))
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[0].trace_id = b"short"
    spans[2].start_time_unix_nano = 0
    reply = post(receiver, request.SerializeToString())
    partial = ExportTraceServiceResponse.FromString(reply.body).partial_success
    assert (reply.status, partial.rejected_spans) == (200, 2)
    assert "left out" in partial.error_message
    kept = ExportTraceServiceRequest.FromString(sink.taken[0][1]).resource_spans[0].scope_spans[0].spans
    assert [span.span_id[-1] for span in kept] == [2, 4]
    assert receiver.totals.dropped == {"invalid": 2}
    assert receiver.totals.items == {"traces": 2}


def test_the_same_is_told_in_json(receiver, sink):
    """Partial success in the JSON encoding, in both spellings of the fields."""
    document = json.loads(json_traces(3))
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    del spans[1]["spanId"]
    reply = post(receiver, json.dumps(document).encode(), content_type=JSON)
    assert reply.status == 200
    assert json.loads(reply.body)["partialSuccess"]["rejectedSpans"] == "1"
    assert len(json.loads(sink.taken[0][1])["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 2


def test_a_hook_gets_the_bytes_as_they_came(sink):
    """The pass-through sees the compressed body and its headers, whatever becomes of the request later."""
    seen = []
    body, packed = traces(), COMPRESSORS["gzip"](traces())
    with Receiver(sink, hook=seen.append) as receiver:
        headers = {"Content-Encoding": "gzip", "X-Tenant": "a"}
        assert post(receiver, packed, headers=headers).status == 200
        assert post(receiver, b"garbage").status == 400
        assert post(receiver, body, token=False).status == 401
    assert [request.body for request in seen] == [packed, b"garbage"]
    assert (seen[0].signal, seen[0].encoding, seen[0].headers[b"x-tenant"]) == ("traces", "gzip", b"a")


def test_a_hook_that_fails_costs_the_sender_nothing(sink):
    """An error in the pass-through is counted; the request is stored."""
    with Receiver(sink, hook=lambda request: 1 / 0) as receiver:
        assert post(receiver, traces()).status == 200
        assert receiver.totals.hook_failures == 1
    assert len(sink.taken) == 1


def test_stopping_lets_a_request_finish(sink):
    """What was being read when the receiver stops is answered; a new connection is not."""
    with Receiver(sink) as receiver:
        body = traces(10)

        def slowly():
            yield body[:10]
            assert wait_for(lambda: any(one.is_busy for one in receiver._http._connections))
            stopper.start()
            time.sleep(0.3)
            yield body[10:]

        stopper = Thread(target=receiver.stop, args=(5,))
        assert post(receiver, slowly()).status == 200
        stopper.join()
        with pytest.raises(OSError, match=r"."):
            post(receiver, body)
    assert len(sink.taken) == 1


def test_a_receiver_starts_anew_each_time(sink):
    """Two at once have ports and tokens of their own, and neither lets the other's senders in."""
    with Receiver(sink) as one, Receiver(MemorySink()) as two:
        assert one.address.port != two.address.port
        assert one.token != two.token
        assert post(one, traces(), token=False, headers=two.headers).status == 401


def test_stop_may_be_called_twice(sink):
    """Stopping a stopped receiver does nothing."""
    with Receiver(sink, Settings(limits=Limits(idle_s=5))) as receiver:
        receiver.stop(0)
        receiver.stop(0)
