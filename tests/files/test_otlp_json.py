"""Reading OTLP/JSON: every spelling of the encoding, and every kind of damage."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.files.foreign import read_json
from turntrace.files.raw_spans import RawSpans

TRACES = Path(__file__).parents[1] / "data" / "traces"
EDGE = TRACES / "edge"
TRACE_ID = "fac659c1edf7b2098bcd0aacf6d6fd50"
SPAN_ID = "f48f064eb03a1e64"
NS = 1_796_069_415_812_164_655


def read_otlp(source):
    """The spans of an input and what is wrong with it."""
    spans = RawSpans()
    read_json(source.splitlines(keepends=True) if isinstance(source, bytes) else source, spans)
    return spans.spans, spans.issues


def span(**fields):
    return {
        "traceId": TRACE_ID,
        "spanId": SPAN_ID,
        "name": "work",
        "startTimeUnixNano": str(NS),
        "endTimeUnixNano": str(NS + 5),
        **fields,
    }


def document(*spans, scope=None, resource=None):
    scope_spans = {"scope": scope or {}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": resource or {}, "scopeSpans": [scope_spans]}]}


def line(*spans, **fields):
    return json.dumps(document(*spans, **fields)).encode() + b"\n"


def read_one(**fields):
    (found,), issues = read_otlp(line(span(**fields)))
    return found, [issue.code for issue in issues]


def summary(source):
    found, issues = read_otlp(source)
    return len(found), [(issue.code, issue.line) for issue in issues]


def codes(source):
    return [(issue.code, issue.line) for issue in read_otlp(source)[1]]


def test_a_span_keeps_everything():
    """Ids, name, times, kind, scope, status, attributes, events, resource and flags are read."""
    full = span(
        parentSpanId="00f067aa0ba902b7",
        kind=3,
        flags=0x301,
        status={"code": 2},
        attributes=[{"key": "gen_ai.request.model", "value": {"stringValue": "m"}}],
        events=[
            {
                "timeUnixNano": str(NS + 1),
                "name": "exception",
                "attributes": [{"key": "exception.type", "value": {"stringValue": "E"}}],
            }
        ],
    )
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "app"}}]}
    (found,), issues = read_otlp(line(full, scope={"name": "sdk"}, resource=resource))
    assert issues == []
    assert (found.trace_id, found.span_id, found.parent_id) == (TRACE_ID, SPAN_ID, "00f067aa0ba902b7")
    assert (found.name, found.start_ns, found.end_ns) == ("work", NS, NS + 5)
    assert (found.kind, found.scope, found.status, found.remote_parent) == ("client", "sdk", "error", True)
    assert (found.attributes, found.resource) == ({"gen_ai.request.model": "m"}, {"service.name": "app"})
    assert found.events == ((NS + 1, "exception", {"exception.type": "E"}),)


def test_the_least_a_span_needs():
    """Ids and times suffice; the rest has defaults."""
    (found,), issues = read_otlp(
        json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span()]}]}]}).encode()
    )
    assert issues == []
    assert (
        found.parent_id,
        found.kind,
        found.scope,
        found.status,
        found.attributes,
        found.events,
        found.remote_parent,
    ) == (None, "unspecified", "", "unset", {}, (), False)


def test_both_spellings():
    """The proto's own names are read like the camel-case ones, and so are the older ones."""
    fields = {
        "trace_id": TRACE_ID,
        "span_id": SPAN_ID,
        "parent_span_id": "00f067aa0ba902b7",
        "name": "work",
        "start_time_unix_nano": NS,
        "end_time_unix_nano": NS + 5,
        "attributes": [
            {"key": "a", "value": {"string_value": "x"}},
            {"key": "b", "value": {"int_value": 7}},
            {"key": "c", "value": {"bool_value": False}},
            {"key": "d", "value": {"double_value": 0.5}},
            {"key": "e", "value": {"array_value": {"values": [{"string_value": "y"}]}}},
        ],
    }
    snake = {"resource_spans": [{"scope_spans": [{"scope": {"name": "sdk"}, "spans": [fields]}]}]}
    old = {
        "batches": [
            {"instrumentationLibrarySpans": [{"instrumentationLibrary": {"name": "sdk"}, "spans": [fields]}]}
        ]
    }
    (one,), _ = read_otlp(json.dumps(snake).encode())
    (other,), _ = read_otlp(json.dumps(old).encode())
    assert one == other
    assert (
        one.scope,
        one.start_ns,
        one.attributes,
    ) == ("sdk", NS, {"a": "x", "b": 7, "c": False, "d": 0.5, "e": ("y",)})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"stringValue": ""}, ""),
        ({"boolValue": True}, True),
        ({"intValue": "9007199254740993"}, 9007199254740993),
        ({"intValue": 9007199254740993}, 9007199254740993),
        ({"intValue": "-5"}, -5),
        ({"intValue": 0}, 0),
        ({"doubleValue": 0.25}, 0.25),
        ({"doubleValue": 3}, 3.0),
        ({"doubleValue": "Infinity"}, float("inf")),
        ({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}}, ("a", 1)),
        ({"arrayValue": {"values": [{"arrayValue": {}}, 5]}}, ()),
        ({"arrayValue": {}}, ()),
        ({"arrayValue": 5}, ()),
        ({}, None),
        (None, None),
        ({"intValue": "five"}, None),
        ({"intValue": 1.5}, None),
        ({"intValue": True}, None),
        ({"doubleValue": "x"}, None),
        ({"doubleValue": True}, None),
        ({"stringValue": 5}, None),
        ({"kvlistValue": {"values": []}}, None),
        ({"bytesValue": "AA=="}, None),
    ],
)
def test_attribute_values(value, expected):
    """Scalars and lists of them are read without losing a digit; deeper or broken values are left out."""
    found, issues = read_one(attributes=[{"key": "k", "value": value}])
    assert expected == found.attributes.get("k")
    assert issues == []


def test_broken_attribute_lists():
    """Attributes and events that are no lists of objects are left out."""
    for broken in (
        None,
        5,
        "x",
        [5],
        [{"value": {"stringValue": "x"}}],
        [{"key": 5, "value": {"stringValue": "x"}}],
    ):
        found, issues = read_one(attributes=broken, events=broken)
        assert (found.attributes, issues) == ({}, [])
    assert read_one(events=[{}])[0].events[0][0] == 0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (1, "internal"),
        ("SPAN_KIND_SERVER", "server"),
        ("2", "server"),
        (5, "consumer"),
        (9, "unspecified"),
        (-1, "unspecified"),
        ("SPAN_KIND_NEW", "unspecified"),
        (None, "unspecified"),
        ([], "unspecified"),
    ],
)
def test_kinds(kind, expected):
    """A kind is a number or a name of the proto."""
    assert expected == read_one(kind=kind)[0].kind


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"code": "STATUS_CODE_ERROR"}, "error"),
        ({"code": 1}, "ok"),
        ({}, "unset"),
        (None, "unset"),
        (2, "unset"),
    ],
)
def test_statuses(status, expected):
    """A status code is a number or a name of the proto."""
    assert expected == read_one(status=status)[0].status


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (str(NS), NS),
        (NS, NS),
        (float(2**60), 2**60),
        (2**63, None),
        ("9" * 19, None),
        ("x", None),
        (0, None),
        (None, None),
    ],
)
def test_times(value, expected):
    """Times are whole nanoseconds, written as numbers or digits. A span without a start is left out."""
    found, issues = read_otlp(line(span(startTimeUnixNano=value, endTimeUnixNano=str(2**62))))
    if expected is None:
        assert (found, [issue.code for issue in issues]) == ([], ["timestamp_invalid"])
    else:
        assert (expected, []) == (found[0].start_ns, issues)


def test_a_span_without_an_end():
    """A span without an end is kept with none of its length, and reported; so is an end before the start."""
    found, issues = read_one(endTimeUnixNano=None)
    assert (found.end_ns, issues) == (NS, ["timestamp_invalid"])
    found, issues = read_one(endTimeUnixNano=NS - 9)
    assert (found.end_ns, issues) == (NS - 9, ["span_end_before_start"])


@pytest.mark.parametrize(
    "encode", [str.upper, str.lower, lambda text: base64.b64encode(bytes.fromhex(text)).decode()]
)
def test_ids_in_any_encoding(encode):
    """Ids are hex in either case, or base64 as the proto's own JSON mapping writes them."""
    found, issues = read_one(
        traceId=encode(TRACE_ID), spanId=encode(SPAN_ID), parentSpanId=encode("00f067aa0ba902b7")
    )
    assert (found.trace_id, found.span_id, found.parent_id) == (TRACE_ID, SPAN_ID, "00f067aa0ba902b7")
    assert issues == []


def test_base64_without_padding():
    """Base64 that lost its padding is read."""
    assert (
        read_one(spanId=base64.b64encode(bytes.fromhex(SPAN_ID)).decode().rstrip("="))[0].span_id == SPAN_ID
    )


@pytest.mark.parametrize(
    "bad",
    ["0" * 16, "f48f064eb03a1e", "", "zz8f064eb03a1e64", "f48f 64eb03a1e64", 5, None, "ü" * 16, "=" * 12],
)
def test_bad_ids_cost_their_span_only(bad):
    """Zeros, wrong lengths and no hex at all: that span is left out and reported, the good one is kept."""
    found, issues = read_otlp(line(span(spanId=bad), span()))
    assert [one.span_id for one in found] == [SPAN_ID]
    assert [issue.code for issue in issues] == ["id_invalid"]
    assert summary(line(span(traceId=bad))) == (0, [("id_invalid", 1)])


def test_bad_parents():
    """A parent of zeros or none is no parent; one that is no id makes a root and is reported."""
    for none in (None, "", "0" * 16):
        found, issues = read_one(parentSpanId=none)
        assert (found.parent_id, issues) == (None, [])
    found, issues = read_one(parentSpanId="abc")
    assert (found.parent_id, issues) == (None, ["id_invalid"])


@pytest.mark.parametrize(
    ("flags", "remote"),
    [(0x300, True), (0x301, True), (0x100, False), (0x200, False), (None, False), ("x", False)],
)
def test_remote_parents(flags, remote):
    """Only flags that say so make a parent remote."""
    assert remote == read_one(flags=flags)[0].remote_parent


def test_lines_are_read_one_by_one():
    """Lines may come from any iterator; no line is held back until the input ends."""
    served = []

    def lines():
        for number in range(1, 4):
            served.append(number)
            yield line(span(spanId=f"{number:016x}"))

    found, issues = read_otlp(lines())
    assert (len(found), issues, served) == (3, [], [1, 2, 3])


def test_a_document_over_many_lines():
    """A document that is written over many lines is one document, also when it comes as lines."""
    text = json.dumps(document(span()), indent=1).encode()
    assert [one.span_id for one in read_otlp(text)[0]] == [SPAN_ID]
    assert read_otlp(text) == read_otlp(text.splitlines(keepends=True))
    assert read_otlp(b"\xef\xbb\xbf" + text)[0] == read_otlp(text)[0]


def test_edge_cases():
    """Order, repeats, a cut end, padding: 21 spans or 20, and exactly the damage is reported."""
    for name, spans, expected in (
        ("e01-lines-in-end-order.jsonl", 21, []),
        ("e05-batch-sent-twice.jsonl", 21, [("duplicate_span", number) for number in range(22, 28)]),
        ("e07-last-line-cut.jsonl", 20, [("truncated_tail", 21)]),
        ("e09-bom-crlf-nul.jsonl", 21, [("bom", 1)]),
        ("e10-clock-stepped-back-2s.json", 21, [("span_end_before_start", 1)] * 6),
        ("e15-parent-cycle.json", 21, []),
    ):
        data = (EDGE / name).read_bytes()
        assert summary(data) == (spans, expected)
        with (EDGE / name).open("rb") as lines:
            assert summary(lines) == (spans, expected)


def test_of_two_spans_the_later_end_counts():
    """A span that came twice is kept with its latest end, then its earliest start, in its first place."""
    other = span(spanId="00f067aa0ba902b7")
    late, early = span(endTimeUnixNano=NS + 9), span(startTimeUnixNano=NS - 1, endTimeUnixNano=NS + 9)
    found, issues = read_otlp(line(span(), other, late, early, span()))
    assert [one.span_id for one in found] == [SPAN_ID, "00f067aa0ba902b7"]
    assert (found[0].start_ns, found[0].end_ns) == (NS - 1, NS + 9)
    assert [issue.code for issue in issues] == ["duplicate_span"] * 3


def test_bad_lines_cost_themselves_only():
    """Noise before, between and after good lines is reported line by line."""
    good = line(span())
    assert codes(b"noise\n" + good + b"[1]\n") == [("bad_json_line", 1), ("bad_json_line", 3)]
    assert codes(b'{"resourceSpans":\n\0\0\n' + good + b'{"res') == [
        ("bad_json_line", 1),
        ("truncated_tail", 4),
    ]
    assert [one.span_id for one in read_otlp(b'{"resourceSpans":\n' + good)[0]] == [SPAN_ID]
    assert codes(good + b'{"a\n') == [("bad_json_line", 2)]


def test_what_is_no_trace():
    """Unknown records in the same file are named; wrong shapes are reported. Metrics and logs are read."""
    assert codes(b'{"resourceLogs": []}\n{"x": 1}\n') == [("unknown_type", 2)]
    assert codes(b'{"resourceMetrics": []}') == []
    assert codes(b'{"resourceLogs": [7]}') == [("field_type", 1)]
    assert codes(b'{"resourceSpans": []}') == []
    assert codes(b'{"resourceSpans": null}') == []
    assert codes(b'{"resourceSpans": "x"}') == [("field_type", 1)]
    assert codes(b'{"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}') == [("field_type", 1)]
    assert codes(b"") == []
    assert codes(b"\n \r\n\0\n") == []


def test_odd_names_and_scopes():
    """A name or scope of the wrong type is empty."""
    spans, issues = read_otlp(line(span(name=5), scope={"name": 5}))
    assert (spans[0].name, spans[0].scope, issues) == ("", "", [])
    found = json.loads(line(span()))
    found["resourceSpans"][0]["scopeSpans"][0]["scope"] = 5
    found["resourceSpans"][0]["resource"] = 5
    assert read_otlp(json.dumps(found).encode())[0][0].scope == ""


@given(st.binary(max_size=200))
def test_any_bytes(data):
    """Whatever the bytes, reading ends without an error."""
    read_otlp(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*span(), "attributes", "value", "key", "events", "status", "kind", "flags"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(json_values, json_values, json_values)
def test_any_json(resource, scope, fields):
    """Whatever the JSON, reading ends without an error."""
    read_otlp(
        json.dumps(
            {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": [fields]}]}]}
        ).encode()
    )
    read_otlp(json.dumps({"resourceSpans": fields}).encode())
    if isinstance(fields, dict):
        read_otlp(line({**span(), **fields}))


def test_cut_anywhere():
    """A file that is cut at any byte of its last line keeps every line before it."""
    good, last = line(span()), line(span(spanId="00f067aa0ba902b7"))
    for size in range(1, len(last) - 1):
        found, issues = read_otlp(good + last[:size])
        is_whole = size > last.rindex(b"}]}]}]}")
        assert [one.span_id for one in found] == [SPAN_ID, *["00f067aa0ba902b7"] * is_whole]
        assert [(issue.code, issue.line, issue.offset) for issue in issues] == [
            ("truncated_tail", 2, len(good))
        ]
