"""Log events and counters beside spans, in JSON and protobuf: kept where they can be read, bounded, damaged."""

import json

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from turntrace.errors import TraceReadError
from turntrace.files import raw_spans
from turntrace.files.foreign import read_json
from turntrace.files.otlp_proto_signals import event_of, points_of, signal_of
from turntrace.files.raw_spans import RawSpans
from turntrace.files.together import read_together

NS = 1_796_000_000_000_000_000
TRACE_ID, SPAN_ID = "0123456789abcdef0123456789abcdef", "0123456789abcdef"
TOKENS = "claude_code.token.usage"


def record(**fields):
    """A log event of an agent."""
    return {
        "timeUnixNano": str(NS),
        "body": {"stringValue": "claude_code.tool_result"},
        "attributes": [{"key": "duration_ms", "value": {"intValue": "5"}}],
        "traceId": TRACE_ID,
        "spanId": SPAN_ID,
        **fields,
    }


def logs(*records):
    """A request of logs."""
    scope_logs = [{"scope": {"name": "s"}, "logRecords": list(records)}]
    return {"resourceLogs": [{"resource": {}, "scopeLogs": scope_logs}]}


def metrics(name=TOKENS, temporality=1, *points):
    """A request of metrics with one sum."""
    value = {"name": name, "sum": {"aggregationTemporality": temporality, "dataPoints": list(points)}}
    return {"resourceMetrics": [{"scopeMetrics": [{"metrics": [value]}]}]}


def read(*documents):
    """What is kept of some lines."""
    spans = RawSpans()
    read_json([json.dumps(one).encode() + b"\n" for one in documents], spans)
    return spans


def test_an_event_keeps_its_time_its_ids_and_its_attributes():
    """The time it was seen stands for one that is not told."""
    (found,) = read(logs(record())).events
    assert (found.name, found.at_ns, found.scope) == ("claude_code.tool_result", NS, "s")
    assert (found.trace_id, found.span_id, found.attributes) == (TRACE_ID, SPAN_ID, {"duration_ms": 5})
    (found,) = read(logs(record(timeUnixNano="0", observedTimeUnixNano=str(NS + 1), spanId=""))).events
    assert (found.at_ns, found.span_id) == (NS + 1, "")


@pytest.mark.parametrize(
    "fields",
    [
        {"timeUnixNano": "0"},
        {"body": {"stringValue": "a prompt"}},
        {"body": 5},
        {"body": {}, "eventName": "unknown"},
    ],
)
def test_other_records_are_not_kept(fields):
    """Texts of logs are content."""
    assert read(logs(record(**fields))).events == []


def test_a_name_may_be_a_field_or_an_attribute():
    """Each agent has its way."""
    named = {"key": "event.name", "value": {"stringValue": "codex.tool_result"}}
    assert read(logs(record(body={}, eventName="codex.sse_event"))).events[0].name == "codex.sse_event"
    assert read(logs(record(attributes=[named]))).events[0].name == "codex.tool_result"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"asInt": "7"}, [7]),
        ({"asDouble": 7.0}, [7]),
        ({"as_int": 7}, [7]),
        ({"asDouble": 7.5}, []),
        ({"asInt": "-1"}, []),
        ({"asInt": True}, []),
        ({}, []),
    ],
)
def test_a_point_is_a_count(value, expected):
    """In any spelling; what is no count is not kept."""
    found = read(metrics(TOKENS, 1, {"timeUnixNano": str(NS), **value})).points
    assert [one.value for one in found] == expected


def test_points_are_of_known_counters():
    """Sums since the start or since the last point; other metrics, and points without a time, are not kept."""
    one = {"timeUnixNano": str(NS), "asInt": 1}
    assert [
        point.is_delta for point in read(metrics(TOKENS, "AGGREGATION_TEMPORALITY_CUMULATIVE", one)).points
    ] == [False]
    assert read(metrics(TOKENS, 1, one)).points[0].is_delta
    assert read(metrics("other", 1, one)).points == []
    assert read(metrics(TOKENS, 1, {"asInt": 1})).points == []
    assert (
        read({"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": TOKENS, "gauge": {}}]}]}]}).points
        == []
    )


def test_events_are_bounded(monkeypatch):
    """Beyond the bound the rest is left out, and told."""
    monkeypatch.setattr(raw_spans, "_MAX_EVENTS", 2)
    one = {"timeUnixNano": str(NS), "asInt": 1}
    spans = read(logs(record(), record(), record()), metrics(TOKENS, 1, one, one, one))
    assert (len(spans.events), len(spans.points)) == (2, 2)
    assert [issue.code for issue in spans.issues] == ["issues_omitted", "issues_omitted"]


def test_a_message_is_known_by_its_fields():
    """Spans, records and metrics have the same place in a request of protobuf."""
    ids = {"trace_id": bytes.fromhex(TRACE_ID), "span_id": bytes.fromhex(SPAN_ID)}
    point = Metric(name="n" * 16, description="d" * 8)
    point.sum.data_points.add(as_int=1)
    gauge = Metric(name="n", unit="u")
    gauge.gauge.data_points.add(as_int=1)
    for message, signal in (
        (Span(name="x", kind=1, start_time_unix_nano=NS), "span"),
        (Span(**ids, name="x"), "span"),
        (Span(name="x", start_time_unix_nano=NS), "span"),
        (Span(), "span"),
        (LogRecord(time_unix_nano=NS), "log"),
        (LogRecord(observed_time_unix_nano=NS), "log"),
        (LogRecord(severity_number=9), "log"),
        (point, "span"),  # a name and a description as long as ids: nothing is lost but the point
        (gauge, "metric"),
    ):
        assert signal_of(message.SerializeToString()) == signal
    assert signal_of(b"\x0b\xff") == "span"
    assert signal_of(b"\xff") == "span"


def test_odd_messages_are_not_kept():
    """Another metric, a point without a time or below zero, a record without a time or of no known name."""
    metric = Metric(name=TOKENS)
    metric.sum.data_points.add(as_int=1)
    metric.sum.data_points.add(as_int=-1, time_unix_nano=NS)
    metric.sum.data_points.add(as_double=2.0, time_unix_nano=NS)
    assert [one.value for one in points_of(metric, lambda pairs: {}, {})] == [2]
    assert list(points_of(Metric(name="other"), lambda pairs: {}, {})) == []
    assert event_of(LogRecord(time_unix_nano=NS), {"event.name": "other"}, "", {}) is None
    assert event_of(LogRecord(), {"event.name": "codex.tool_result"}, "", {}) is None
    found = event_of(
        LogRecord(time_unix_nano=NS, trace_id=b"short"), {"event.name": "codex.tool_result"}, "", {}
    )
    assert found is not None
    assert found.trace_id == ""


def test_a_file_that_is_not_there_is_told(tmp_path):
    """By its path."""
    with pytest.raises(TraceReadError, match="missing"):
        read_together([str(tmp_path / "missing.pb")])


def test_a_cut_file_is_told(tmp_path):
    """What was compressed and is cut."""
    path = tmp_path / "cut.jsonl.gz"
    import gzip

    text = "".join(json.dumps(logs(record(spanId=f"{number:016x}"))) + "\n" for number in range(1, 99))
    path.write_bytes(gzip.compress(text.encode())[:-9])
    assert "truncated_tail" in [issue.code for _, issue in read_together([str(path)]).issues]
