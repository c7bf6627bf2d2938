"""OTLP/JSON: what is written is read back as the same turn."""

import dataclasses
import json
import re

import orjson
import pytest
from hypothesis import given, settings
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from recorded_cases import PATHS, cases_of
from report.random_turns import turns
from report.turns import START_NS, example, span, turn
from turntrace.core.exports.otlp_json import otlp_request
from turntrace.core.model import Mark, Usage
from turntrace.core.turns import assemble
from turntrace.files.foreign import read_json
from turntrace.files.raw_spans import RawSpans
from turntrace.report.case import examine

WITHOUT_IDS = re.compile("(in)?valid_|weak_")
"""Files of the format's first writer have no ids, no rounds and no usage: those that are made are other ones."""


def written(case):
    """The request of a turn."""
    return json.loads(orjson.dumps(otlp_request(case.turn, case.attribution, "1")))


def read_back(case):
    """The outermost turn that reading the written request gives."""
    spans = RawSpans()
    read_json([orjson.dumps(written(case)) + b"\n"], spans)
    assert not spans.issues
    [found] = [one for one in assemble(spans.spans) if one.parent_run_id is None]
    return examine(found)


def facts(case):
    """What makes a turn."""
    return {
        "window": (case.turn.started_ns, case.turn.completed_ns),
        "who": (
            case.turn.run_id,
            case.turn.agent,
            case.turn.session_id,
            case.turn.status,
            dict(case.turn.labels),
        ),
        "sums": dataclasses.replace(
            case.attribution, spans=(), warnings=(), unattributed=(), gaps=(), critical_path=()
        ),
        "usage": {name: tokens for name, tokens in case.usage.known.items() if tokens is not None},
        "spans": [
            (
                times.phase,
                times.span.name,
                times.span.start_ns,
                max(times.span.start_ns, times.span.end_ns),
                times.exclusive_ns,
                times.wall_share_ns,
                times.critical_ns,
                times.span.tool,
                times.span.outcome,
            )
            for times in case.attribution.spans
        ],
    }


def is_whole(case):
    """Whether the turn is an outermost one with a root, an end and a start after 1970."""
    turn = case.turn
    return turn.parent_run_id is None and turn.span_id is not None and turn.completed_ns is not None


@pytest.mark.parametrize(
    "path", [path for path in PATHS if not WITHOUT_IDS.match(path.name)], ids=lambda path: path.stem
)
def test_recorded_turns_come_back(path):
    """Windows, spans, phases, times, shares, tokens and names of what real frameworks recorded."""
    for case in cases_of(path):
        if is_whole(case):
            assert facts(read_back(case)) == facts(case)


def shifted(record):
    """A random turn with ids of OTLP, in our time; its foreign phases and empty spans stay."""
    ids = {one.span_id: f"{number:016x}" for number, one in enumerate(record.spans, start=2)} | {
        "root": f"{1:016x}"
    }
    spans = [
        dataclasses.replace(
            one,
            span_id=ids[one.span_id],
            parent_id=ids.get(one.parent_id, ids["root"]),
            start_ns=one.start_ns + START_NS,
            end_ns=max(one.start_ns, one.end_ns) + START_NS,
            tool=one.tool if one.phase == "tool_execution" else None,
        )
        for one in record.spans
    ]
    return dataclasses.replace(
        record,
        spans=tuple(sorted(spans, key=lambda one: (one.start_ns, one.span_id))),
        span_id=ids["root"],
        trace_id=f"{7:032x}",
        agent="a",
        started_ns=START_NS,
        completed_ns=START_NS + record.completed_ns,
    )


def lies_in_a_call(one, record):
    """Whether a span has a model call above it: what lies there may be told as the same call again."""
    by_id = {span.span_id: span for span in record.spans}
    while one.parent_id in by_id:
        one = by_id[one.parent_id]
        if one.phase == "generation":
            return True
    return False


@settings(max_examples=150, deadline=None)
@given(turns())
def test_any_turn_comes_back(record):
    """Random turns come back with the times and shares they had, wherever no call is told twice."""
    record = dataclasses.replace(
        record, spans=tuple(one for one in record.spans if not lies_in_a_call(one, record))
    )
    case = examine(shifted(record))
    back = read_back(case)
    assert facts(back)["spans"] == facts(case)["spans"]
    assert facts(back)["sums"] == facts(case)["sums"]


def test_the_example_has_tokens_moments_and_labels():
    """Usage on the calls, first moments, labels, rounds."""
    case = examine(shifted_example())
    back = read_back(case)
    assert back.usage == case.usage
    assert back.turn.first_token_ns == case.turn.first_token_ns
    assert dict(back.turn.labels) == {"task": "x"}
    assert back.turn.rounds == 4


def shifted_example():
    """The example with ids of OTLP."""
    record = example(labels={"task": "x"})
    ids = {one.span_id: f"{number:016x}" for number, one in enumerate(record.spans, start=2)}
    ids["root"] = f"{1:016x}"
    return dataclasses.replace(
        record,
        span_id=ids["root"],
        spans=tuple(
            dataclasses.replace(one, span_id=ids[one.span_id], parent_id=ids[one.parent_id])
            for one in record.spans
        ),
        usage=tuple(dataclasses.replace(one, span_id=ids[one.span_id]) for one in record.usage),
        marks=tuple(dataclasses.replace(one, span_id=ids[one.span_id]) for one in record.marks),
    )


def spans_in(request):
    """The spans of a request."""
    [resource] = request["resourceSpans"]
    [scope] = resource["scopeSpans"]
    return scope["spans"]


def test_it_is_otlp_by_the_protocols_own_names():
    """Each field exists in the protocol's message, ids are hex, integers are strings."""
    fields = {field.json_name for field in ProtoSpan.DESCRIPTOR.fields}
    for one in spans_in(written(examine(example()))):
        assert one.keys() <= fields
        assert re.fullmatch("[0-9a-f]{16}", one["spanId"])
        assert re.fullmatch("[0-9a-f]{32}", one["traceId"])
        assert one["startTimeUnixNano"].isdigit()


def test_ids_that_are_none_are_made_anew_and_link():
    """Made ids are the same each time, so parents are found."""
    root, *rest = spans_in(written(examine(example())))
    ids = {one["spanId"] for one in (root, *rest)}
    assert len(ids) == len(rest) + 1
    assert all(one["parentSpanId"] in ids for one in rest)


def test_a_turn_without_an_end_has_no_root():
    """It is read as interrupted, its spans as they were."""
    case = examine(dataclasses.replace(shifted_example(), completed_ns=None, status="interrupted"))
    back = read_back(case)
    assert back.turn.status == "interrupted"
    assert back.attribution.wall_ns is None
    assert len(back.turn.spans) == len(case.turn.spans)


def test_unknown_tokens_stay_unknown_and_values_keep_their_types():
    """A call that told nothing tells nothing; booleans, floats and integers are told apart."""
    attributes = {"gen_ai.usage.input_tokens": 5, "x": True, "y": 1.5, "z": 3}
    spans = [
        span("a", "generation", 0, 5, attributes=attributes),
        span("n", None, 5, 9, agent="inner", run_id="r2", name="invoke_agent inner"),
        span("m", None, 6, 8, "n", agent="deep", name="invoke_agent deep"),
        span("k", "plan", 6, 7, "m"),
    ]
    usage = (Usage(span_id="a", provenance="missing", provider="p"),)
    marks = (Mark(name="first_chunk", at_ns=START_NS + 1, span_id="gone"), Mark(name="x", at_ns=1))
    case = examine(turn(spans, 10, usage=usage, marks=marks, counters={"model_requests": 1}))
    call = spans_in(written(case))[1]
    told = {one["key"]: one["value"] for one in call["attributes"]}
    assert "gen_ai.usage.input_tokens" not in told
    assert (told["x"], told["y"], told["z"]) == ({"boolValue": True}, {"doubleValue": 1.5}, {"intValue": "3"})
    assert told["gen_ai.response.time_to_first_chunk"] == {"doubleValue": 1e-9}
    back = read_back(case)
    assert back.usage.input_tokens is None
    assert [one.agent for one in back.turn.spans] == [None, "inner", "deep", None]
