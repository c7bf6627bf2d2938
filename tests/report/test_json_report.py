"""The JSON report: schema 1, exactly."""

import dataclasses
import json
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings

from report.random_turns import turns
from report.turns import MS, START_NS, example, hostile, span, turn
from turntrace.core.model import Issue, Usage, Warn
from turntrace.report.case import examine
from turntrace.report.json_report import json_report, turn_json

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

TURN_KEYS = [
    "run_id",
    "parent_run_id",
    "session_id",
    "trace_id",
    "agent",
    "model",
    "source",
    "turn_source",
    "labels",
    "status",
    "started_at_ns",
    "wall_ns",
    "active_ns",
    "attributed_ns",
    "unattributed_ns",
    "coverage",
    "busy_ns",
    "critical_path_ns",
    "parallelism",
    "rounds",
    "root",
    "first_chunk_ns",
    "first_token_ns",
    "first_visible_ns",
    "first_useful_ns",
    "usage",
    "counters",
    "max_concurrency",
    "phases",
    "by_round",
    "marks",
    "spans",
    "critical_path",
    "gaps",
    "unattributed",
    "findings",
    "warnings",
]
TOKENS = [
    "input_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "total_tokens",
]
FIGURES = [
    "count",
    "inclusive_ns",
    "busy_ns",
    "wall_share_ns",
    "critical_ns",
    "exclusive_p50_ns",
    "exclusive_p95_ns",
]
SPAN_KEYS = [
    "span_id",
    "parent_id",
    "parent_source",
    "name",
    "phase",
    "structure",
    "round",
    "tool",
    "model",
    "usage",
    "attributes",
    "start_ns",
    "end_ns",
    "exclusive_ns",
    "wall_share_ns",
    "critical_ns",
    "status",
    "outcome",
    "detached",
]


def document(*records):
    """The parsed report of turns, valid by the published schema."""
    parsed = json.loads(b"".join(json_report(examine(record) for record in records)))
    VALIDATOR.validate(parsed)
    return parsed


def test_the_schema_is_a_schema():
    """The published file is valid JSON Schema 2020-12."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_keys_of_schema_1():
    """Each object has these keys in this order and no other."""
    [found] = document(example())["turns"]
    assert list(found) == TURN_KEYS
    assert list(found["usage"]) == [*TOKENS, "complete", "reports", "missing", "known"]
    assert list(found["usage"]["known"]) == TOKENS
    assert list(found["root"]) == ["span_id", "name", "exclusive_ns", "critical_ns"]
    assert list(found["phases"][0]) == ["phase", "kind", "controllable", *FIGURES, "by"]
    assert list(found["phases"][0]["by"][0]) == ["name", *FIGURES]
    assert list(found["spans"][0]) == SPAN_KEYS
    assert list(found["by_round"][0]) == (
        ["round", "wall_ns", "model", "tools", "input_tokens", "cached_input_tokens", "output_tokens"]
    )
    assert list(found["critical_path"][0]) == ["span_id", "start_ns", "end_ns"]
    assert list(found["gaps"][0]) == ["start_ns", "end_ns", "after", "before"]
    assert list(found["findings"][0]) == ["code", "message", "saves_ns", "span_ids"]
    assert list(found["marks"][0]) == ["name", "at_ns", "span_id"]


def test_the_figures_of_the_example():
    """Exact nanoseconds; times are offsets, the start a string."""
    [found] = document(example())["turns"]
    assert found["started_at_ns"] == str(START_NS)
    assert found["wall_ns"] == 8420 * MS
    assert found["active_ns"] == 7220 * MS
    assert found["attributed_ns"] + found["unattributed_ns"] == found["wall_ns"]
    assert found["first_token_ns"] == 310 * MS
    assert found["first_chunk_ns"] is None
    assert found["usage"]["input_tokens"] == 18240
    assert found["marks"] == [{"name": "first_token", "at_ns": 310 * MS, "span_id": "g1"}]
    assert found["by_round"][0] == {
        "round": 1,
        "wall_ns": 2360 * MS,
        "model": "gpt-demo",
        "tools": ["search", "fetch"],
        "input_tokens": 4000,
        "cached_input_tokens": 2000,
        "output_tokens": 70,
    }
    assert found["findings"][2] == {
        "code": "tool_tail",
        "message": "search: ran 0.470 s after fetch was done",
        "saves_ns": 470 * MS,
        "span_ids": ["t1"],
    }
    [generation] = [one for one in found["spans"] if one["span_id"] == "g1"]
    assert generation["usage"]["known"]["output_tokens"] == 70
    assert (generation["start_ns"], generation["end_ns"]) == (20 * MS, 1020 * MS)
    assert [one["usage"] for one in found["spans"] if one["span_id"] == "c1"] == [None]


def test_the_critical_path_runs_backwards_without_holes():
    """From the end of the turn to its start; the root's own sections carry its id."""
    [found] = document(example())["turns"]
    path = found["critical_path"]
    assert path[0]["end_ns"] == found["wall_ns"]
    assert path[-1]["start_ns"] == 0
    assert all(later["start_ns"] == earlier["end_ns"] for later, earlier in pairwise(path))
    assert "root" in {section["span_id"] for section in path}


def test_unknown_is_null_and_zero_is_zero():
    """A call without usage makes the totals null and leaves the known sums."""
    usage = (
        Usage(span_id="a", input_tokens=5, output_tokens=0),
        Usage(span_id="b", provenance="missing"),
    )
    spans = [span("a", "generation", 0, 1), span("b", "generation", 1, 2)]
    [found] = document(turn(spans, 2, usage=usage, counters={"model_requests": 2}))["turns"]
    assert found["usage"]["input_tokens"] is None
    assert found["usage"]["known"]["input_tokens"] == 5
    assert found["usage"]["known"]["output_tokens"] == 0
    assert found["usage"]["complete"] is False
    assert (found["usage"]["reports"], found["usage"]["missing"]) == (1, 1)


def test_a_turn_without_an_end():
    """Wall, shares and path are null; counts and exclusive times stand."""
    [found] = document(dataclasses.replace(example(), completed_ns=None, status="interrupted"))["turns"]
    for key in ("wall_ns", "active_ns", "attributed_ns", "unattributed_ns", "coverage", "critical_path_ns"):
        assert found[key] is None
    assert found["phases"][0]["wall_share_ns"] is None
    assert found["spans"][0]["exclusive_ns"] > 0
    assert found["by_round"][0]["wall_ns"] is None
    assert found["critical_path"] == []


def test_without_a_window_the_first_span_is_the_start():
    """A turn whose root was never seen counts from its first span; with no span there is no start."""
    lost = dataclasses.replace(example(), started_ns=None, completed_ns=None, span_id=None)
    [found] = document(lost)["turns"]
    assert found["started_at_ns"] == str(START_NS)
    assert found["spans"][0]["start_ns"] == 0
    [empty] = document(dataclasses.replace(lost, spans=(), usage=(), marks=()))["turns"]
    assert empty["started_at_ns"] is None
    assert empty["first_token_ns"] is None


def test_warnings_of_turn_attribution_and_file():
    """Each with its line when it is about one."""
    late = span("a", "plan", 0, 20)
    record = dataclasses.replace(turn([late], 10), warnings=(Warn(code="folded", message="m"),))
    case = examine(record, issues=[Issue(code="bad_json_line", message="cut", line=7, offset=90)])
    found = turn_json(case)["warnings"]
    assert found[0] == {"code": "folded", "message": "m", "line": None}
    assert found[-1] == {"code": "bad_json_line", "message": "cut", "line": 7}
    assert {"detached", "span_outside_window"} <= {one["code"] for one in found}


def test_structure_and_unknown_phases():
    """Structure has no phase; a foreign phase gets the kind of other."""
    spans = [span("n", None, 0, 10, name="node"), span("x", "made_up", 2, 4, "n")]
    [found] = document(turn(spans, 10))["turns"]
    assert [(one["phase"], one["structure"]) for one in found["spans"]] == [(None, True), ("made_up", False)]
    assert found["phases"][0]["kind"] == "agent"
    assert found["unattributed"] == [{"span_id": "n", "name": "node", "ns": 8 * MS}]


def test_several_turns_and_none():
    """Turns stand in their order; no turn is an empty list."""
    assert [one["run_id"] for one in document(example(run_id="a"), example(run_id="b"))["turns"]] == [
        "a",
        "b",
    ]
    assert document() == {"schema": 1, "turns": []}


def test_what_json_cannot_hold():
    """Lone surrogates and huge integers become text instead of an error."""
    big = span("a", "plan", 0, 1, attributes={"n": 1 << 70, "ok": True, "x": 1.5})
    [found, _] = document(turn([big], 1), hostile())["turns"]
    assert found["spans"][0]["attributes"] == {"n": str(1 << 70), "ok": True, "x": 1.5}


@settings(max_examples=40, deadline=None)
@given(turns())
def test_any_turn_is_valid(record):
    """The schema holds for random turns, and the shares add up to the wall to the nanosecond."""
    [found] = document(record)["turns"]
    shares = sum(phase["wall_share_ns"] for phase in found["phases"])
    assert shares + found["unattributed_ns"] == found["wall_ns"]
    assert (
        sum(section["end_ns"] - section["start_ns"] for section in found["critical_path"]) == found["wall_ns"]
    )


@pytest.mark.parametrize("key", ["labels", "counters"])
def test_mappings_stay_mappings(key):
    """Labels and counters are objects."""
    value = {"labels": {"prompt": "v7"}, "counters": {"retry_count": 0}}[key]
    [found] = document(turn([], 1, **{key: value}))["turns"]
    assert found[key] == value
