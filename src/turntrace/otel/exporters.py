"""The official OTLP exporters, chosen by protocol: OTEL_EXPORTER_OTLP_PROTOCOL, else by the port.

Port 4317 means grpc, anything else http/protobuf. The SDK alone takes grpc at an HTTP port and loses
seven seconds and every span.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from opentelemetry.sdk.metrics.export import MetricExporter
from opentelemetry.sdk.trace.export import SpanExporter

from turntrace.config import Settings
from turntrace.errors import ConfigurationError

__all__ = ["Protocol", "metric_exporter", "protocol_of", "span_exporter"]

Protocol = Literal["grpc", "http/protobuf"]
_GRPC_PORT = 4317
_ENDPOINT = "OTLP endpoint (OTEL_EXPORTER_OTLP_ENDPOINT or --endpoint)"


def protocol_of(endpoint: str | None, asked: str | None) -> Protocol:
    """The protocol that was asked for, else the one of the endpoint's port.

    >>> protocol_of("http://localhost:4317", None), protocol_of("http://localhost:4318", None)
    ('grpc', 'http/protobuf')

    Raises:
        ConfigurationError: for a protocol that no official exporter speaks, or a port that is no number.
    """
    if asked in {"grpc", "http/protobuf"}:
        return cast("Protocol", asked)
    if asked:
        raise ConfigurationError(f"OTEL_EXPORTER_OTLP_PROTOCOL={asked!r}: use grpc or http/protobuf")
    try:
        port = urlsplit(endpoint or "").port
    except ValueError as error:
        raise ConfigurationError(f"{_ENDPOINT} {endpoint!r}: {error}") from error
    if port == _GRPC_PORT:
        return "grpc"
    if endpoint and urlsplit(endpoint).scheme not in {"http", "https"}:
        raise ConfigurationError(f"{_ENDPOINT} {endpoint!r}: write http://HOST:PORT")
    return "http/protobuf"


def span_exporter(settings: Settings, endpoint: str | None) -> Callable[[], SpanExporter]:
    """What makes an exporter to ``endpoint``, or to what the OTEL_* variables say when it is None.

    Its modules are loaded here: some of them cannot be while the interpreter ends, and a process may be
    as short as that. The exporter itself, which may open connections and threads, is made later.

    Raises:
        ConfigurationError: for a protocol that no official exporter speaks.
    """
    protocol = protocol_of(endpoint or settings.endpoint, settings.protocol)
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        return partial(OTLPSpanExporter, **_grpc(endpoint))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter

    return partial(HttpExporter, endpoint=_signal(endpoint, "traces"))


def metric_exporter(settings: Settings, endpoint: str | None) -> MetricExporter:
    """An exporter of metrics, to the same place as span_exporter's."""
    protocol = protocol_of(endpoint or settings.endpoint, settings.protocol)
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter

        return OTLPMetricExporter(**_grpc(endpoint))
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpExporter

    return HttpExporter(endpoint=_signal(endpoint, "metrics"))


def _grpc(endpoint: str | None) -> dict[str, Any]:
    return {} if endpoint is None else {"endpoint": endpoint}


def _signal(endpoint: str | None, signal: str) -> str | None:
    return None if endpoint is None else f"{endpoint.rstrip('/')}/v1/{signal}"
