"""Formats by their content: OTLP as protobuf, Jaeger's JSON, files that hold two things."""

import base64
import gzip
import io
import json
import struct

import pytest
import zstandard
from google.protobuf.json_format import ParseDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from core.raws import TRACES
from files.test_otlp_json import NS, SPAN_ID, TRACE_ID, document, line, read_otlp, span
from turntrace.errors import TraceReadError
from turntrace.files.foreign import read_binary
from turntrace.files.raw_spans import RawSpans
from turntrace.files.read import read_paths
from turntrace.files.source import plain

NAMES = sorted(path.name for path in TRACES.glob("*.json") if not path.name.endswith(".truth.json"))


def message(text):
    """The protobuf message of an OTLP/JSON document, whose ids are hex."""
    value = json.loads(text)
    for resource_spans in value["resourceSpans"]:
        for scope_spans in resource_spans["scopeSpans"]:
            for one in scope_spans["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if one.get(key):
                        one[key] = base64.b64encode(bytes.fromhex(one[key])).decode()
                for link in one.get("links", ()):
                    link.pop("traceId", None), link.pop("spanId", None)
    return ParseDict(value, TracesData(), ignore_unknown_fields=True).SerializeToString()


def framed(*messages):
    """Messages with four bytes of length before each."""
    return b"".join(struct.pack(">I", len(one)) + one for one in messages)


def delimited(*messages):
    """Messages with a varint of length before each."""
    found = b""
    for one in messages:
        length = len(one)
        while length >= 0x80:
            found += bytes([length & 0x7F | 0x80])
            length >>= 7
        found += bytes([length]) + one
    return found


def read_proto(data):
    """Spans and issues of binary data."""
    spans = RawSpans()
    source, head = plain(io.BytesIO(data), pytest.fail)
    read_binary(source, head, spans)
    return spans.spans, [issue.code for issue in spans.issues]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "pack",
    [
        lambda one: one,
        framed,
        lambda one: framed(zstandard.compress(one)),
        delimited,
    ],
    ids=["one message", "length of 4 bytes", "zstd in frames", "varint"],
)
def test_protobuf_gives_the_spans_that_json_gives(name, pack):
    """Every field that a dialect reads, in each way in which such files are written."""
    text = (TRACES / name).read_bytes()
    expected, _ = read_otlp(text)
    found, codes = read_proto(pack(message(text)))
    assert found == expected
    assert codes == []


def test_a_file_of_the_collector_with_json_in_frames():
    """Its exporter writes lengths whenever it compresses."""
    text = json.dumps(document(span())).encode()
    found, _ = read_proto(
        framed(zstandard.compress(text), zstandard.compress(line(span(spanId="0" * 15 + "2"))))
    )
    assert [one.span_id for one in found] == [SPAN_ID, "0" * 15 + "2"]


def test_a_message_that_is_cut_gives_the_spans_before_the_cut():
    """At every byte: never an error, never a span that is not whole."""
    text = json.dumps(document(*(span(spanId=f"{number:016x}") for number in range(1, 6)))).encode()
    whole = message(text)
    counts = []
    for size in range(1, len(whole)):
        found, codes = read_proto(whole[:size])
        assert [int(one.span_id, 16) for one in found] == list(range(1, len(found) + 1))
        assert codes == ["truncated_tail"]
        counts.append(len(found))
    assert counts == sorted(counts)
    assert counts[-1] == 4


def test_frames_that_are_cut_give_those_before():
    """The last message, or its length."""
    one, other = (
        message(json.dumps(document(span()))),
        message(json.dumps(document(span(spanId="0" * 15 + "2")))),
    )
    assert [found.span_id for found in read_proto(framed(one) + b"\0\0")[0]] == [SPAN_ID]
    found, codes = read_proto(framed(one, other)[:-3])
    assert ([found.span_id for found in found], set(codes)) == ([SPAN_ID], {"truncated_tail"})
    found, codes = read_proto(framed(one) + b"\xff\xff\xff\xff")
    assert ([found.span_id for found in found], set(codes)) == ([SPAN_ID], {"truncated_tail"})
    damaged = framed(one, zstandard.compress(other)[:-4])
    assert "truncated_tail" in read_proto(damaged)[1]


def test_spans_that_cannot_be_used_are_left_out():
    """Without an id, without a start; what is unknown is read as nothing known."""
    good = span(kind=99, endTimeUnixNano="0")  # and below zero: an enum of protobuf may be any number
    value = TracesData()
    ParseDict(document(good), value)
    spans = value.resource_spans[0].scope_spans[0].spans
    spans[0].trace_id, spans[0].span_id = bytes.fromhex(TRACE_ID), bytes.fromhex(SPAN_ID)
    spans[0].status.code = -1
    spans.add(trace_id=b"x")
    spans.add(trace_id=bytes.fromhex(TRACE_ID), span_id=b"12345678")
    spans[0].attributes.add(key="deep").value.kvlist_value.values.add(key="x")
    spans[0].attributes.add(key="list").value.array_value.values.add().int_value = 2**62
    (found,), codes = read_proto(value.SerializeToString())
    assert codes == ["id_invalid", "id_invalid"]
    assert (found.kind, found.status, found.start_ns, found.end_ns) == ("unspecified", "unset", NS, NS)
    assert found.attributes == {"list": (2**62,)}


def test_a_message_with_fields_of_later_versions_is_read():
    """Numbers, fixed widths and lengths that nobody knows are passed over."""
    unknown = b"\x98\x06\x01" + b"\x99\x06" + b"8" * 8 + b"\x9d\x06" + b"4444" + b"\x9a\x06\x02ab"
    found, codes = read_proto(message(json.dumps(document(span()))) + unknown)
    assert ([one.span_id for one in found], codes) == ([SPAN_ID], [])


@given(st.binary(min_size=1, max_size=60))
def test_any_bytes_of_protobuf(data):
    """Whatever the bytes, reading ends without an error."""
    for given_data in (data, b"\x0a" + data, b"\0\0\0\x10\x0a" + data):
        read_binary(io.BytesIO(given_data), given_data, RawSpans())


# -- Jaeger ---------------------------------------------------------------------------------------------


def jaeger(*spans, **processes):
    """An answer of Jaeger's API."""
    known = processes or {
        "p1": {"serviceName": "agent", "tags": [{"key": "host", "type": "string", "value": "h"}]}
    }
    return json.dumps(
        {"data": [{"traceID": TRACE_ID, "spans": list(spans), "processes": known}], "total": 0}
    ).encode()


def jaeger_span(**fields):
    """A span as Jaeger writes it."""
    return {
        "traceID": TRACE_ID,
        "spanID": SPAN_ID,
        "operationName": "chat m",
        "references": [],
        "startTime": NS // 1000,
        "duration": 1500,
        "tags": [],
        "logs": [],
        "processID": "p1",
        **fields,
    }


def tag(key, value, kind="string"):
    """A tag."""
    return {"key": key, "type": kind, "value": value}


def test_a_span_of_jaeger():
    """Times in nanoseconds, what OpenTelemetry has out of the tags, events, resource."""
    tags = [
        tag("span.kind", "client"),
        tag("otel.scope.name", "sdk"),
        tag("otel.status_code", "ERROR"),
        tag("gen_ai.usage.input_tokens", str(2**60 + 1), "int64"),
        tag("b", True, "bool"),
        tag("n", None),
        tag("bad", "x1", "int64"),
    ]
    logs = [{"timestamp": NS // 1000 + 1, "fields": [tag("event", "first"), tag("a", 1.5, "float64")]}]
    references = [{"refType": "CHILD_OF", "traceID": TRACE_ID, "spanID": "ab"}]
    (found,), issues = read_otlp(jaeger(jaeger_span(tags=tags, logs=logs, references=references)))
    assert issues == []
    assert (found.name, found.kind, found.scope, found.status) == ("chat m", "client", "sdk", "error")
    assert (found.start_ns, found.end_ns) == (NS // 1000 * 1000, NS // 1000 * 1000 + 1_500_000)
    assert found.parent_id == "ab".zfill(16)
    assert found.attributes["gen_ai.usage.input_tokens"] == 2**60 + 1
    assert found.attributes["b"] is True
    assert found.attributes.keys().isdisjoint({"n", "bad"})
    assert found.events == ((NS // 1000 * 1000 + 1000, "first", {"a": 1.5}),)
    assert found.resource == {"service.name": "agent", "host": "h"}


def test_parents_of_jaeger():
    """The first CHILD_OF of its own trace; older downloads have a field of their own."""
    other = {"refType": "CHILD_OF", "traceID": "1" * 32, "spanID": "1" * 16}
    follows = {"refType": "FOLLOWS_FROM", "traceID": TRACE_ID, "spanID": "2" * 16}
    for fields, parent in (
        ({"references": [follows, other, "x"]}, None),
        ({"references": [other, {**other, "traceID": TRACE_ID}]}, "1" * 16),
        ({"references": None, "parentSpanID": "3" * 16}, "3" * 16),
    ):
        (found,), _ = read_otlp(jaeger(jaeger_span(**fields)))
        assert found.parent_id == parent


def test_jaeger_that_is_damaged():
    """What is left out is said; the rest is read."""
    spans = (
        jaeger_span(spanID="zz"),
        jaeger_span(startTime=0),
        7,
        jaeger_span(tags=[tag("error", True, "bool")]),
    )
    found, issues = read_otlp(jaeger(*spans, p1="x"))
    assert [issue.code for issue in issues] == ["id_invalid", "timestamp_invalid", "field_type"]
    assert [(one.status, one.resource) for one in found] == [("error", {})]
    text = jaeger(*(jaeger_span(spanID=f"{number:016x}") for number in range(1, 9)))
    found, issues = read_otlp(text[: len(text) // 2])
    assert 2 <= len(found) <= 4
    assert [issue.code for issue in issues] == ["truncated_tail"]


def test_one_trace_of_jaeger_without_an_answer_around_it():
    """Its page saves a trace so."""
    value = json.loads(jaeger(jaeger_span()))["data"][0]
    assert len(read_otlp(json.dumps(value, indent=1).encode())[0]) == 1
    assert read_otlp(json.dumps({"data": []}).encode())[1][0].code == "unknown_type"


# -- files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES[:4])
def test_a_file_gives_the_same_turns_in_every_format(name, tmp_path):
    """The content decides, not the name."""
    text = (TRACES / name).read_bytes()
    (tmp_path / "a.json").write_bytes(text)
    expected = read_paths([str(tmp_path / "a.json")]).turns
    packed = (
        gzip.compress(text),
        zstandard.compress(text),
        message(text),
        gzip.compress(framed(message(text))),
    )
    for number, data in enumerate(packed):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(data)
        assert read_paths([str(path)]).turns == expected


def test_a_file_of_two_kinds_gives_the_turns_of_both(tmp_path):
    """Lines of ours among lines of OTLP, whichever came first; damage keeps its line."""
    own = b'{"type":"trace","name":"run","run_id":"r1"}\n{"type":"counter","name":"tool_calls","value":2}\n'
    foreign = line(span(attributes=[{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]))
    path = tmp_path / "t.ndjson"
    for data, bad in ((own + foreign + b"x\n", 4), (foreign + own + b"x\n", 4)):
        path.write_bytes(data)
        found = read_paths([str(path)])
        assert sorted(turn.run_id == "r1" for turn in found.turns) == [False, True]
        assert [issue.line for _, issue in found.issues if issue.code == "bad_json_line"] == [bad]


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", b"\x7fELF\x02\x01\x01", b"\x0a\x03\x01\x02\x03"]
)
def test_what_is_no_trace_says_what_would_be_one(tmp_path, data):
    """The message names the formats."""
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(TraceReadError, match="OTLP as JSON or protobuf"):
        read_paths([str(tmp_path / "x")])


def test_a_word_in_a_line_of_ours_makes_it_nobody_elses(tmp_path):
    """A span may be named as a field of OTLP is; a torn line of ours among OTLP stays where it is."""
    own = (
        b'{"type":"trace","name":"run","run_id":"r1"}\n{"type":"counter","name":"resourceSpans","value":2}\n'
    )
    (tmp_path / "t").write_bytes(own)
    found = read_paths([str(tmp_path / "t")])
    assert [turn.counters for turn in found.turns] == [{"resourceSpans": 2}]
    (tmp_path / "t").write_bytes(line(span()) + b'{"type":"trace\n' + b'{"type":1}\n')
    codes = [issue.code for _, issue in read_paths([str(tmp_path / "t")]).issues]
    assert codes == ["bad_json_line", "unknown_type"]


def test_a_compressed_file_that_is_cut_says_so(tmp_path):
    """Beside what could be read."""
    text = b"".join(line(span(spanId=f"{number:016x}")) for number in range(1, 3000))
    (tmp_path / "x.gz").write_bytes(gzip.compress(text)[:-2000])
    issues = [issue.code for _, issue in read_paths([str(tmp_path / "x.gz")]).issues]
    assert issues.count("truncated_tail") >= 1
