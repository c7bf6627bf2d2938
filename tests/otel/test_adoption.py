"""Does an application's provider export over OTLP already?"""

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor

from turntrace.otel.adoption import exports_over_otlp
from turntrace.otel.wrap import EnrichingExporter


def http():
    """An exporter that sends nothing as long as it gets nothing."""
    return HttpExporter(endpoint="http://127.0.0.1:9/v1/traces")


def grpc():
    """The same over grpc."""
    return GrpcExporter(endpoint="http://127.0.0.1:9")


@pytest.mark.parametrize("processor", [BatchSpanProcessor, SimpleSpanProcessor])
@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (http, True),
        (grpc, True),
        (lambda: EnrichingExporter(http()), True),
        (lambda: EnrichingExporter(EnrichingExporter(http())), True),
        (ConsoleSpanExporter, False),
        (lambda: EnrichingExporter(ConsoleSpanExporter()), False),
    ],
)
def test_the_official_exporters_are_found_however_they_are_wrapped(processor, make, answer):
    """In a batch or alone, over http or grpc, inside wrappers."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor(make()))
    assert exports_over_otlp(provider) is answer
    provider.shutdown()


def test_it_is_enough_that_one_processor_exports():
    """Others beside it do not matter."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SpanProcessor())
    provider.add_span_processor(SimpleSpanProcessor(http()))
    assert exports_over_otlp(provider)
    provider.shutdown()


def test_a_wrapper_without_end_is_left_after_a_few_steps():
    """Something that wraps itself is no endless search."""
    endless = EnrichingExporter(ConsoleSpanExporter())
    endless._exporter = endless
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(endless))
    assert not exports_over_otlp(provider)


def test_a_provider_of_another_kind_is_taken_as_silent():
    """What cannot be asked exports nothing that we know of."""
    assert not exports_over_otlp(trace.NoOpTracerProvider())
    assert not exports_over_otlp(TracerProvider(shutdown_on_exit=False))
