"""The receiver over grpc: the same acceptance, bounds and token."""

import gzip
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from otlp_receiver import wait_for
from otlp_requests import MemorySink, json_traces, metrics, post, traces
from turntrace.collect.limits import Limits
from turntrace.collect.receiver import Address, Receiver, Settings
from turntrace.errors import ConfigurationError

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


@pytest.fixture
def sink():
    """A sink that keeps requests."""
    return MemorySink()


@pytest.fixture
def receiver(sink):
    """A receiver of both protocols."""
    with Receiver(sink, Settings(grpc=Address())) as running:
        yield running


def call(receiver, body, method=TRACES, *, metadata=None, compression=None):
    """One call with bytes as they are; the bytes of the answer."""
    metadata = list(receiver.headers.items()) if metadata is None else metadata
    with grpc.insecure_channel(str(receiver.grpc_address), compression=compression) as channel:
        return channel.unary_unary(method)(body, metadata=metadata, timeout=20)


def code_of(receiver, body, **settings):
    """The status code of a call that fails, and its details."""
    with pytest.raises(grpc.RpcError) as failure:
        call(receiver, body, **settings)
    return failure.value.code(), failure.value.details()


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_message_is_stored_inflated_and_unchanged(receiver, sink, compression):
    """Whatever the compression, the sink gets the bytes of the message."""
    body = traces(50)
    assert call(receiver, body, compression=compression) == b""
    assert call(receiver, metrics(), METRICS, compression=compression) == b""
    assert sink.taken == [("traces", body, "protobuf"), ("metrics", metrics(), "protobuf")]
    assert receiver.totals.items == {"traces": 50, "metrics": 2}


def test_the_official_exporters_are_understood(receiver, sink):
    """The SDK's exporters of all three signals over grpc."""
    settings = {"endpoint": receiver.grpc_endpoint, "headers": receiver.headers, "insecure": True}
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(**settings)))
    with provider.get_tracer("t").start_as_current_span("chat"):
        pass
    provider.shutdown()
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(**settings), export_interval_millis=3_600_000)
    meters = MeterProvider([reader])
    meters.get_meter("t").create_counter("c").add(1)
    meters.shutdown()
    loggers = LoggerProvider()
    loggers.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(**settings)))
    loggers.get_logger("t").emit(body="hello")
    loggers.shutdown()
    assert receiver.totals.items == {"traces": 1, "metrics": 1, "logs": 1}


@pytest.mark.parametrize(
    "metadata", [[], [("authorization", "Bearer wrong")], [("x-turntrace-token", "")], [("token", "{token}")]]
)
def test_without_the_token_nothing_is_taken(receiver, sink, metadata):
    """UNAUTHENTICATED."""
    given = [(name, value.format(token=receiver.token)) for name, value in metadata]
    assert code_of(receiver, traces(), metadata=given)[0] is grpc.StatusCode.UNAUTHENTICATED
    assert receiver.totals.rejected == {"token": 1}
    assert sink.taken == []


def test_the_token_may_stand_in_a_header_of_its_own(receiver):
    """The header without a blank in its value."""
    assert call(receiver, traces(), metadata=[("x-turntrace-token", receiver.token)]) == b""


def test_an_origin_is_refused(receiver):
    """As over HTTP."""
    metadata = [*receiver.headers.items(), ("origin", "http://evil.example")]
    assert code_of(receiver, traces(), metadata=metadata)[0] is grpc.StatusCode.PERMISSION_DENIED


def test_garbage_and_cut_messages_are_refused(receiver, sink):
    """INVALID_ARGUMENT, which no sender sends again."""
    for body in (b"\xff" * 50, traces(10)[:-3], b"\x1f\x8b garbage"):
        assert code_of(receiver, body)[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert sink.taken == []


def test_what_cannot_be_stored_is_not_acknowledged(receiver, sink):
    """UNAVAILABLE, which every sender sends again."""
    sink.error = OSError(28, "No space left on device")
    assert code_of(receiver, traces())[0] is grpc.StatusCode.UNAVAILABLE
    sink.error = ValueError("a bug")
    assert code_of(receiver, traces())[0] is grpc.StatusCode.INTERNAL
    assert receiver.totals.rejected == {"storage": 1, "error": 1}


def test_large_messages_and_bombs_are_refused(sink):
    """RESOURCE_EXHAUSTED for what is large as it comes and for what is once it is inflated."""
    settings = Settings(grpc=Address(), limits=Limits(request_bytes=1 << 20))
    with Receiver(sink, settings) as receiver:
        assert code_of(receiver, b"\0" * (2 << 20))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        code, details = code_of(receiver, gzip.compress(b"\0" * (64 << 20)))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "inflated" in details
        assert call(receiver, traces()) == b""


def test_a_hook_gets_the_message_as_it_came(sink):
    """The pass-through sees a compressed message compressed, and the metadata."""
    seen = []
    with Receiver(sink, Settings(grpc=Address()), hook=seen.append) as receiver:
        call(receiver, traces(50), compression=grpc.Compression.Gzip)
    assert gzip.decompress(seen[0].body) == sink.taken[0][1] == traces(50)
    assert seen[0].headers[b"authorization"].startswith(b"Bearer ")


def test_a_bomb_costs_what_the_bound_says():
    """400 MB of zeros are refused while they are inflated."""
    code = """if 1:
        import resource, sys
        from otlp_requests import MemorySink
        from turntrace.collect.receiver import Address, Receiver, Settings
        with Receiver(MemorySink(), Settings(grpc=Address())) as receiver:
            print(receiver.grpc_address, receiver.token, flush=True)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            sys.stdin.read()
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    address, token = process.stdout.readline().split()
    body = b"\x0a" + b"\0" * 400_000_000
    with grpc.insecure_channel(address, compression=grpc.Compression.Gzip) as channel:
        with pytest.raises(grpc.RpcError) as failure:
            channel.unary_unary(TRACES)(body, metadata=[("authorization", f"Bearer {token}")], timeout=60)
        assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert int(process.communicate(timeout=30)[0]) < 150_000


def test_too_many_calls_at_once_are_refused(sink):
    """With every stream in use a further call is told, none hangs."""
    settings = Settings(grpc=Address(), limits=Limits(streams=4))
    with Receiver(sink, settings) as receiver, ThreadPoolExecutor(40) as senders:
        answers = list(senders.map(lambda _: _code(receiver), range(200)))
    refused = {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE}  # told by us, by HTTP/2
    assert {grpc.StatusCode.OK} < set(answers) <= {grpc.StatusCode.OK, *refused}
    assert len(sink.taken) == answers.count(grpc.StatusCode.OK) > 0


def _code(receiver):
    try:
        call(receiver, traces())
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_partial_success_is_told(receiver):
    """As over HTTP."""
    answer = ExportTraceServiceResponse.FromString(call(receiver, _one_bad()))
    assert answer.partial_success.rejected_spans == 1


def _one_bad():
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest.FromString(traces(2))
    request.resource_spans[0].scope_spans[0].spans[0].span_id = b""
    return request.SerializeToString()


def test_a_port_in_use_is_told(receiver, sink):
    """Two receivers never share a port by accident."""
    with (
        pytest.raises(ConfigurationError, match="for grpc"),
        Receiver(sink, Settings(grpc=receiver.grpc_address)),
    ):
        pass


def test_grpc_may_be_alone(sink):
    """Without HTTP there is no address of it."""
    with Receiver(sink, Settings(http=None, grpc=Address())) as receiver:
        assert (receiver.http_endpoint, receiver.http_endpoint_with_token) == ("", "")
        assert call(receiver, traces()) == b""


def test_http_alone_does_not_load_grpc():
    """The start of a receiver stays cheap for who needs no grpc."""
    code = """if 1:
        import sys
        from turntrace.collect.receiver import Receiver
        from turntrace.collect.sink import RequestFiles
        from pathlib import Path
        with Receiver(RequestFiles(Path("unused"))) as receiver:
            assert receiver.grpc_endpoint == ""
        assert not {"grpc", "opentelemetry.sdk", "zstandard", "google.rpc"} & sys.modules.keys()
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_both_protocols_have_the_same_token(receiver, sink):
    """One setting for both."""
    assert post(receiver, json_traces(), content_type="application/json").status == 200
    assert call(receiver, traces()) == b""
    assert len(sink.taken) == 2


def test_the_token_is_seen_before_the_message(receiver):
    """A sender without it is refused while its message is still to come: nothing of it is held in memory."""
    endless = iter(lambda: time.sleep(30) or b"", None)
    with grpc.insecure_channel(str(receiver.grpc_address)) as channel:
        start_s = time.monotonic()
        with pytest.raises(grpc.RpcError) as failure:
            channel.stream_unary(TRACES)(endless, timeout=20)
    assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert time.monotonic() - start_s < 10


def test_calls_whose_message_never_comes_are_cut(sink):
    """As many as there are threads to read them, and more: after their time others are served."""
    with Receiver(sink, Settings(grpc=Address(), limits=Limits(request_s=0.5))) as receiver:
        over = threading.Event()
        metadata = list(receiver.headers.items())

        def never():
            over.wait(20)
            yield from ()

        with grpc.insecure_channel(str(receiver.grpc_address)) as channel:
            waiting = [channel.stream_unary(TRACES).future(never(), metadata=metadata) for _ in range(12)]
            assert call(receiver, traces()) == b""
            assert wait_for(lambda: receiver.totals.rejected.get("timeout", 0) >= 8)
            over.set()
            for one in waiting:
                one.cancel()


def test_a_call_without_a_message_is_told(receiver):
    """INVALID_ARGUMENT."""
    with (
        grpc.insecure_channel(str(receiver.grpc_address)) as channel,
        pytest.raises(grpc.RpcError) as failure,
    ):
        channel.stream_unary(TRACES)(iter(()), metadata=list(receiver.headers.items()), timeout=20)
    assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
