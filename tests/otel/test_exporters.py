"""The official exporters, chosen by protocol and pointed at an endpoint."""

import pytest

from turntrace.config import Settings
from turntrace.errors import ConfigurationError
from turntrace.otel.exporters import metric_exporter, protocol_of, span_exporter

GRPC = ".proto.grpc."
HTTP = ".proto.http."


@pytest.mark.parametrize(
    ("endpoint", "asked", "protocol"),
    [
        ("http://localhost:4317", None, "grpc"),
        ("http://localhost:4318", None, "http/protobuf"),
        ("http://localhost", None, "http/protobuf"),
        (None, None, "http/protobuf"),
        ("http://localhost:4317", "http/protobuf", "http/protobuf"),
        ("http://localhost:4318", "grpc", "grpc"),
        ("http://localhost:4317", "", "grpc"),
    ],
)
def test_the_port_decides_where_nobody_asks(endpoint, asked, protocol):
    """4317 is grpc, everything else http/protobuf; a protocol that was asked for wins."""
    assert protocol_of(endpoint, asked) == protocol


def test_an_unknown_protocol_names_its_variable():
    """The message says which variable is wrong and what would be right."""
    with pytest.raises(
        ConfigurationError, match=r"OTEL_EXPORTER_OTLP_PROTOCOL='http/json': use grpc or http"
    ):
        protocol_of("http://localhost:4318", "http/json")


def test_a_port_that_is_no_number_names_its_setting():
    """An endpoint that cannot be read is said before the agent starts."""
    with pytest.raises(
        ConfigurationError, match=r"OTEL_EXPORTER_OTLP_ENDPOINT or --endpoint\) 'http://localhost:x'"
    ):
        protocol_of("http://localhost:x", None)


@pytest.mark.parametrize("endpoint", ["localhost:4318", "ftp://collector:4318", "collector"])
def test_an_endpoint_without_http_names_its_setting(endpoint):
    """Over HTTP an endpoint is a URL; the message shows how one is written."""
    with pytest.raises(
        ConfigurationError, match=r"OTEL_EXPORTER_OTLP_ENDPOINT or --endpoint\) '.*': write http://HOST:PORT"
    ):
        protocol_of(endpoint, None)


@pytest.mark.parametrize("make", [lambda *a: span_exporter(*a)(), metric_exporter], ids=["spans", "metrics"])
@pytest.mark.parametrize(
    ("settings", "endpoint", "module", "target"),
    [
        (Settings(), "http://127.0.0.1:4318", HTTP, "http://127.0.0.1:4318/v1/{signal}"),
        (Settings(), "http://127.0.0.1:4318/base/", HTTP, "http://127.0.0.1:4318/base/v1/{signal}"),
        (Settings(), "http://127.0.0.1:4317", GRPC, "127.0.0.1:4317"),
        (Settings(protocol="grpc"), "http://127.0.0.1:9", GRPC, "127.0.0.1:9"),
        (Settings(), None, HTTP, "http://localhost:4318/v1/{signal}"),
        (Settings(endpoint="http://localhost:4317"), None, GRPC, "localhost:4317"),
    ],
)
def test_exporters_of_both_signals_go_to_the_same_place(make, settings, endpoint, module, target):
    """An endpoint that was given is a base; without one the OTEL_* variables decide, read by the exporter."""
    exporter = make(settings, endpoint)
    try:
        signal = "metrics" if "etric" in type(exporter).__name__ else "traces"
        assert module in type(exporter).__module__
        assert exporter._endpoint == target.format(signal=signal)
    finally:
        exporter.shutdown()
