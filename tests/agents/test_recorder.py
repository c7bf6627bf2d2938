"""The recorder keeps what exporters really send, as lines of OTLP JSON."""

import gzip
import http.client
import json
from urllib.parse import urlsplit

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from agents.recorder import Recorder


@pytest.fixture
def recorder():
    with Recorder() as running:
        yield running


def test_protobuf_becomes_json_with_ids_in_hex(recorder):
    """What the official exporter posts can be read as a line."""
    provider = TracerProvider()
    provider.add_span_processor(
        SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{recorder.url}/key/v1/traces"))
    )
    with provider.get_tracer("t").start_as_current_span("one") as span:
        pass
    provider.shutdown()
    (line,) = recorder.lines().splitlines()
    (found,) = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert found["spanId"] == f"{span.get_span_context().span_id:016x}"
    assert found["startTimeUnixNano"] == str(span.start_time)
    assert recorder.how[0]["path"] == "/key/v1/traces"


def test_chunked_and_compressed_bodies_are_taken(recorder):
    """Agents in JavaScript send their JSON in chunks."""
    body = gzip.compress(b'{"resourceLogs": []}')
    connection = http.client.HTTPConnection(urlsplit(recorder.url).netloc)
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    connection.request("POST", "/v1/logs", iter([body[:9], body[9:]]), headers, encode_chunked=True)
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"{}")
    connection.request("POST", "/other", b"x", {"content-type": "application/json"})
    assert connection.getresponse().read() == b"{}"
    connection.close()
    assert recorder.documents == [{"resourceLogs": []}]
    assert [one["chunked"] for one in recorder.how] == [True, False]
