"""The bytes of a block: order, keys, numbers and what is left out."""

import json
from dataclasses import replace

import pytest

from core.codec.generated import encoded, only_block
from turntrace.core.codec.json_line import json_bytes, json_line
from turntrace.core.model import Event, Mark, Span, Turn, Usage, Warn

NOON_NS = 1_772_366_400_000_000_000
ROOT_ID = "00000000000000aa"


def span(number: int, phase: str | None, start_ms: float, end_ms: float, **fields) -> Span:
    """A span of the turn, in milliseconds from its start."""
    return Span(
        span_id=f"{number:016x}",
        parent_id=fields.pop("parent_id", ROOT_ID),
        name=fields.pop("name", phase or "node"),
        phase=phase,
        start_ns=NOON_NS + int(start_ms * 1e6),
        end_ns=NOON_NS + int(end_ms * 1e6),
        **fields,
    )


TURN = Turn(
    run_id="r1",
    started_ns=NOON_NS,
    completed_ns=NOON_NS + 1_000_000_000,
    trace_id="0" * 31 + "1",
    span_id=ROOT_ID,
    root_name="invoke_agent demo",
    agent="demo",
    spans=(
        span(5, None, 0, 500, name="node"),
        span(2, "generation", 0, 400, parent_id="0000000000000005", model="m", round=1),
        span(1, "provider_connect", 50, 90, parent_id="0000000000000002", status="ok"),
        span(4, "generation", 600, 900.0005, attributes={"error.type": "X", "bad": float("nan")}),
    ),
    first_token_ns=NOON_NS + 420_000_000,
    rounds=2,
    counters={"retry_count": 0, "model_requests": 2},
    usage=(
        Usage(span_id="0000000000000004", input_tokens=3, output_tokens=0),
        Usage(span_id="0000000000000002", input_tokens=4, output_tokens=1, cached_input_tokens=2),
    ),
    marks=(Mark(name="b", at_ns=NOON_NS + 2), Mark(name="a", at_ns=NOON_NS + 1, span_id="0000000000000004")),
    events=(
        Event(type="task_state", fields={"revision": 1}),
        Event(type="prefix_hash", fields={"tools": "b"}),
        Event(type="prefix_hash", fields={"tools": "a"}),
        Event(type="output_budget", fields={"tool": "grep"}),
    ),
    warnings=(Warn(code="z", message="last"), Warn(code="a", message="first")),
)


def objects(turn: Turn = TURN) -> list[dict]:
    """The objects of a block."""
    return [json.loads(line) for line in encoded(turn)]


def lines_of(kind: str, turn: Turn = TURN) -> list[dict]:
    """The objects of one type."""
    return [line for line in objects(turn) if line["type"] == kind]


def test_lines():
    """Each line is one object in UTF-8 with its keys in alphabetical order and an LF at its end."""
    for line in encoded(replace(TURN, agent="é")):
        assert line.endswith(b"}\n")
        assert line.count(b"\n") == 1
        keys = list(json.loads(line))
        assert sorted(keys) == keys
    assert "é".encode() in encoded(replace(TURN, agent="é"))[0]


def test_block_order():
    """Header, spans by name then start, counters by name, events as emitted, then our own lines."""
    kinds = [line["type"] for line in objects()]
    assert kinds == [
        "trace", "span", "span", "span", "counter", "counter", "counter", "counter", "counter",
        "prefix_hash", "prefix_hash", "output_budget", "task_state",
        "usage", "usage", "mark", "mark", "gap", "gap", "structure", "warning", "warning",
    ]  # fmt: skip
    assert [line["name"] for line in lines_of("span")] == ["generation", "generation", "provider_connect"]
    assert [int(line["span_id"], 16) for line in lines_of("span")] == [2, 4, 1]
    assert [line["tools"] for line in lines_of("prefix_hash")] == ["b", "a"]
    assert [int(line["span_id"], 16) for line in lines_of("usage")] == [2, 4]
    assert [line["name"] for line in lines_of("mark")] == ["a", "b"]
    assert [line["code"] for line in lines_of("warning")] == ["a", "z"]


def test_header():
    """The header has every key of the contract and ours, and counts the lines that follow."""
    header = objects()[0]
    assert header == {
        "active_ms": 1000,
        "agent": "demo",
        "attributed_ms": 700,
        "attribution": 0.7,
        "busy_ms": 700,
        "completed_at": "2026-03-01T12:00:01Z",
        "coverage": 0.7,
        "critical_path_ms": 800,
        "dropped": 0,
        "first_chunk_at": "",
        "first_token_at": "2026-03-01T12:00:00.42Z",
        "first_useful_at": "",
        "first_visible_at": "",
        "labels": {},
        "lines": 21,
        "model": None,
        "name": "run",
        "parent_run_id": None,
        "profile": "",
        "provider": None,
        "rounds": 2,
        "run_id": "r1",
        "sampled": None,
        "schema_version": 1,
        "session_id": "",
        "source": "native",
        "span_id": ROOT_ID,
        "span_name": "invoke_agent demo",
        "started_at": "2026-03-01T12:00:00Z",
        "status": "ok",
        "trace_id": "0" * 31 + "1",
        "turn_source": "api",
        "type": "trace",
        "unattributed_ms": 299.999,
        "usage_complete": True,
        "usage_missing": 0,
        "usage_reports": 2,
        "wall_ms": 1000,
    }


def test_span_lines():
    """A span has its parent's id and, from the nearest phase above it, the parent's name."""
    connect = lines_of("span")[2]
    assert connect == {
        "critical_ms": 40,
        "duration_ms": 40,
        "end": "2026-03-01T12:00:00.09Z",
        "end_ns": NOON_NS + 90_000_000,
        "exclusive_ms": 40,
        "name": "provider_connect",
        "outcome": "ok",
        "parent": "generation",
        "parent_id": "0000000000000002",
        "span_id": "0000000000000001",
        "span_name": "provider_connect",
        "start": "2026-03-01T12:00:00.05Z",
        "start_ns": NOON_NS + 50_000_000,
        "status": "ok",
        "turn_id": ROOT_ID,
        "type": "span",
        "wall_share_ms": 40,
    }


def test_what_is_not_known_of_a_span_is_left_out():
    """A phase below structure has its parent's id and no parent's name; details come only where known."""
    first, second = lines_of("span")[:2]
    assert (first["parent_id"], first["round"], first["model"]) == ("0000000000000005", 1, "m")
    assert "parent" not in first
    assert second["attributes"] == {"error.type": "X"}
    assert not {"round", "model", "tool", "agent", "run_id", "detached", "parent_source"} & set(second)


def test_structure_lines():
    """A span that is no phase is structure: ids, name, interval and exclusive time."""
    assert lines_of("structure") == [
        {
            "end": "2026-03-01T12:00:00.5Z",
            "end_ns": NOON_NS + 500_000_000,
            "exclusive_ms": 100,
            "parent_id": ROOT_ID,
            "span_id": "0000000000000005",
            "span_name": "node",
            "start": "2026-03-01T12:00:00Z",
            "start_ns": NOON_NS,
            "type": "structure",
        }
    ]


def test_nested_turns_are_structure_that_says_so():
    """A sub-agent is no block of its own: its line has the agent, the run, and how it went."""
    nested = span(9, None, 0, 1, agent="sub", run_id="r2", status="error", outcome="error")
    [line] = lines_of("structure", replace(TURN, spans=(nested,)))
    assert tuple(line[k] for k in ("agent", "run_id", "status", "outcome")) == ("sub", "r2", "error", "error")


def test_gap_and_mark_lines():
    """Gaps have their neighbours, marks their time."""
    assert lines_of("gap") == [
        {
            "after": "0000000000000002",
            "before": "0000000000000004",
            "duration_ms": 200,
            "end": "2026-03-01T12:00:00.6Z",
            "start": "2026-03-01T12:00:00.4Z",
            "type": "gap",
        },
        {
            "after": "0000000000000004",
            "before": None,
            "duration_ms": 99.999,
            "end": "2026-03-01T12:00:01Z",
            "start": "2026-03-01T12:00:00.9000005Z",
            "type": "gap",
        },
    ]
    at = "2026-03-01T12:00:00.000000001Z"
    assert {"at": at, "name": "a", "span_id": "0000000000000004", "type": "mark"} == lines_of("mark")[0]


def counters(turn: Turn) -> dict[str, int]:
    """The counters of a block."""
    return {line["name"]: line["value"] for line in lines_of("counter", turn)}


def test_counters_are_always_there():
    """Model requests and tool calls stand in every block, so that zero accepts a turn without phases."""
    assert counters(Turn(run_id="r")) == {"model_requests": 0, "tool_calls": 0}


def test_tokens_of_complete_usage_are_counters():
    """A total is written when every model call reported it; a part of one is never written as the total."""
    assert counters(TURN) == {
        "input_tokens": 7,
        "model_requests": 2,
        "output_tokens": 1,
        "retry_count": 0,
        "tool_calls": 0,
    }
    missing = Usage(span_id="0000000000000001", provenance="missing")
    for turn in (replace(TURN, usage=TURN.usage[:1]), replace(TURN, usage=(*TURN.usage, missing))):
        assert not {"input_tokens", "output_tokens"} & set(counters(turn))
        assert objects(turn)[0]["usage_complete"] is False


def test_counted_tokens_stand_without_usage():
    """Token counters of a file that has no usage lines are kept as they are."""
    turn = Turn(run_id="r", counters={"input_tokens": 5})
    assert counters(turn)["input_tokens"] == 5
    assert objects(turn)[0]["usage_complete"] is None
    assert counters(replace(TURN, counters={**TURN.counters, "input_tokens": 5}))["input_tokens"] == 7


def test_an_interrupted_turn():
    """Without an end there is no window: the numbers that need one are null, the rest stands."""
    turn = replace(TURN, completed_ns=None, status="interrupted")
    header = objects(turn)[0]
    assert (header["completed_at"], header["status"]) == ("", "interrupted")
    window_keys = (
        "wall_ms",
        "attributed_ms",
        "coverage",
        "attribution",
        "active_ms",
        "unattributed_ms",
        "critical_path_ms",
    )
    assert {None} == {header[key] for key in window_keys}
    assert tuple(
        lines_of("span", turn)[0][key] for key in ("wall_share_ms", "critical_ms", "exclusive_ms")
    ) == (None, None, 360)


def test_an_empty_window():
    """A turn that ends at its start, or before it, is empty: coverage 0 and no division."""
    for completed_ns in (NOON_NS, NOON_NS - 5):
        turn = Turn(run_id="r", started_ns=NOON_NS, completed_ns=completed_ns)
        header = objects(turn)[0]
        assert (
            header["wall_ms"],
            header["coverage"],
            header["completed_at"],
        ) == (0, 0, "2026-03-01T12:00:00Z")
        assert only_block(encoded(turn)).verdict == "accept"


def test_a_span_that_ends_before_it_starts_is_empty():
    """No negative duration is written; the warning says what happened."""
    turn = replace(TURN, spans=(span(1, "generation", 500, 400),))
    [line] = lines_of("span", turn)
    assert (0, 0, line["start_ns"]) == (line["duration_ms"], line["exclusive_ms"], line["end_ns"])
    assert "span_end_before_start" in {warning["code"] for warning in lines_of("warning", turn)}


def test_detached_spans_say_so():
    """A span that outlives its parent is flagged."""
    turn = replace(TURN, spans=(span(1, "generation", 500, 1400),))
    assert [line["detached"] for line in lines_of("span", turn)] == [True]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("<&>", b'"<&>"'),
        ("a\u2028b\u2029", rb'"a\u2028b\u2029"'),
        ("\u2026é", '"\u2026é"'.encode()),
        ("a\ud800b", '"a\ufffdb"'.encode()),
        (2**64, b"null"),
        (-(2**63) - 1, b"null"),
        (2**64 - 1, b"18446744073709551615"),
        (
            [1, {"b": "\udfff", "a": (True, None, 2**70, 1.5)}],
            '[1,{"a":[true,null,null,1.5],"b":"\ufffd"}]'.encode(),
        ),
        ({"a": object()}, b'{"a":null}'),
        ({1: "\ud800"}, '{"1":"\ufffd"}'.encode()),
        (float("nan"), b"null"),
    ],
)
def test_json_of_anything(value, text):
    """Nothing a turn holds keeps its block from being written; separators are escaped as zero does."""
    assert text == json_bytes(value)


def test_deep_nesting_is_cut():
    """Values deeper than any line of the contract become null, without recursion to their end."""
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert json_line({"a": deep}) == b'{"a":[[[null]]]}\n'
