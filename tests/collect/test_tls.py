"""TLS of both protocols, from files."""

import ssl
from pathlib import Path

import grpc
import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from otlp_receiver import HttpReceiver
from otlp_requests import PROTOBUF, MemorySink, raw, traces
from turntrace.collect import pass_on
from turntrace.collect.acceptance import RawRequest
from turntrace.collect.limits import Limits
from turntrace.collect.own_telemetry import ClientTls, Forward
from turntrace.collect.pass_on import PassOn
from turntrace.collect.receiver import Address, Receiver, Settings, Tls
from turntrace.errors import ConfigurationError

FOLDER = Path(__file__).parent / "tls"
TLS = Tls(FOLDER / "certificate.pem", FOLDER / "key.pem")


@pytest.fixture
def sink():
    """A sink that keeps requests."""
    return MemorySink()


@pytest.fixture
def receiver(sink):
    """A receiver of both protocols with TLS."""
    with Receiver(sink, Settings(grpc=Address(), tls=TLS, limits=Limits(head_s=0.5))) as running:
        yield running


def test_http_is_encrypted(receiver, sink):
    """A sender that trusts the certificate is served."""
    assert receiver.http_endpoint.startswith("https://")
    context = ssl.create_default_context(cafile=TLS.certificate)
    with httpx.Client(verify=context) as client:
        reply = client.post(
            f"{receiver.http_endpoint}/v1/traces",
            content=traces(),
            headers={"Content-Type": PROTOBUF, **receiver.headers},
        )
    assert reply.status_code == 200
    assert len(sink.taken) == 1


def test_an_exporter_takes_the_certificate(receiver, sink, monkeypatch):
    """The SDK's exporter with a certificate file."""
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(variable, raising=False)  # requests would take theirs
    exporter = OTLPSpanExporter(
        f"{receiver.http_endpoint}/v1/traces", headers=receiver.headers, certificate_file=str(TLS.certificate)
    )
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("t").start_as_current_span("chat"):
        pass
    provider.shutdown()
    assert len(sink.taken) == 1


def test_grpc_is_encrypted(receiver, sink):
    """The same certificate for grpc."""
    credentials = grpc.ssl_channel_credentials(TLS.certificate.read_bytes())
    with grpc.secure_channel(str(receiver.grpc_address), credentials) as channel:
        method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
        channel.unary_unary(method)(traces(), metadata=list(receiver.headers.items()), timeout=10)
    assert len(sink.taken) == 1


def passed_on(endpoint, protocol, tls, **headers):
    """How many requests were lost on the way to a backend."""
    forward = Forward(
        endpoints={"traces": endpoint}, protocols={"traces": protocol}, headers=headers, tls={"traces": tls}
    )
    body = RawRequest(
        signal="traces",
        body=traces(),
        kind="protobuf",
        headers={b"content-type": PROTOBUF.encode()},
        encoding="",
    )
    with PassOn(forward, "another") as passing:
        passing(body)
        passing.stop(10)
    return passing.lost


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_what_is_passed_on_is_encrypted(receiver, sink, protocol, monkeypatch):
    """The agent's own backend is trusted by the agent's own file, whatever requests finds elsewhere; else by nobody."""
    monkeypatch.setattr(pass_on, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(TLS.key))
    grpc_endpoint = f"https://{receiver.grpc_address}"
    endpoint = grpc_endpoint if protocol == "grpc" else f"{receiver.http_endpoint}/v1/traces"
    assert passed_on(endpoint, protocol, ClientTls(str(TLS.certificate)), **receiver.headers) == 0
    assert len(sink.taken) == 1
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    for tls in (ClientTls(), ClientTls("missing.pem")):
        assert passed_on(endpoint, protocol, tls, **receiver.headers) == 1
    assert len(sink.taken) == 1


@pytest.mark.parametrize("key", [str(TLS.key), ""], ids=["two files", "one file"])
def test_a_backend_that_asks_who_the_agent_is(tmp_path, key, monkeypatch):
    """The agent's certificate goes with it."""
    monkeypatch.setattr(pass_on, "_FIRST_PAUSE_S", 0.001)
    both = tmp_path / "both.pem"
    both.write_bytes(TLS.certificate.read_bytes() + TLS.key.read_bytes())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=TLS.certificate)
    context.load_cert_chain(both)
    context.verify_mode = ssl.CERT_REQUIRED
    with HttpReceiver(tls=context) as backend:
        endpoint = f"{backend.endpoint}/v1/traces"
        known = ClientTls(str(TLS.certificate), str(TLS.certificate) if key else str(both), key)
        assert passed_on(endpoint, "http/protobuf", known) == 0
        assert passed_on(endpoint, "http/protobuf", ClientTls(str(TLS.certificate))) == 1
    assert backend.bodies == [traces()]


def test_plain_text_is_cut_off(receiver, sink, capfd):
    """A sender without TLS, or one that never ends its handshake, gets nothing and leaves no line."""
    assert b"200" not in raw(receiver, b"POST /v1/traces HTTP/1.1\r\n\r\n", timeout_s=3)
    raw(receiver, b"\x16", timeout_s=3)
    assert sink.taken == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_files_that_are_none_are_told(sink, tmp_path, protocol):
    """A missing or damaged file is named before anything listens."""
    damaged = tmp_path / "bad.pem"
    damaged.write_text("nothing")
    for tls in (Tls(tmp_path / "missing.pem", TLS.key), Tls(damaged, damaged)):
        only = Settings(http=None, grpc=Address(), tls=tls) if protocol == "grpc" else Settings(tls=tls)
        with pytest.raises(ConfigurationError, match="TLS"), Receiver(sink, only):
            pass
