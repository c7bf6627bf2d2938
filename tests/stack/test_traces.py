"""What Jaeger shows is what the file says; the searches of the documentation find what they promise."""

import re
import uuid
from pathlib import Path

import pytest

from stack.programs import run, turns_of
from stack.servers import eventually

pytestmark = pytest.mark.servers

HERE = Path(__file__).parent
SEARCHES = re.findall(
    r"^\| ([^|]+) \| `([^`|]+)` \| (?:`([^`|]+)`)? *\| (?:`([^`|]+)`)? *\|$",
    (HERE.parents[1] / "docs" / "jaeger.md").read_text(),
    re.MULTILINE,
)
PROMISES = {
    "turns that mostly waited for the model": lambda turn, found: dominant(found) == "generation",
    "turns that mostly waited for tools": lambda turn, found: dominant(found) == "tool_execution",
    "turns in which a request was sent again": lambda turn, found: turn.counters.get("retry_count", 0) > 0,
    "turns that ran their tools one after another": lambda turn, found: (
        turn.counters["tool_calls"] > 1 and found.max_concurrency["tool_execution"] == 1
    ),
    "turns with time that nothing accounts for": lambda turn, found: found.coverage < 0.95,
    "turns that failed": lambda turn, found: turn.status == "error",
    "the turns of one session": lambda turn, found: turn.session_id == "s-1",
    "failed calls of one tool": lambda turn, found: any(
        span.tool == "fetch" and span.outcome == "error" for span in turn.spans
    ),
    "waits for a refused request (429)": lambda turn, found: any(
        span.attributes.get("turntrace.reason") == "429" for span in turn.spans
    ),
    "approvals that took longer than 200 ms": lambda turn, found: any(
        span.phase == "permission_wait" and span.end_ns - span.start_ns >= 200_000_000 for span in turn.spans
    ),
}


def dominant(found):
    """The phase with the largest wall share."""
    return max(found.phases, key=lambda phase: phase.wall_share_ns).name


def shown(jaeger, turn):
    """The spans of a turn's trace in Jaeger, by id: operation, parent, start and duration in µs, tags."""
    trace = eventually(
        lambda: (
            (found := jaeger.trace(turn.trace_id)) and len(found["spans"]) == len(turn.spans) + 1 and found
        )
    )
    return {
        span["spanID"]: (
            span["operationName"],
            next((reference["spanID"] for reference in span["references"]), None),
            (span["startTime"], span["duration"]),
            {tag["key"]: tag["value"] for tag in span["tags"]},
        )
        for span in trace["spans"]
    }


def check(jaeger, out):
    """Every span of every turn of the file is in Jaeger, with its parent, phase and exclusive time."""
    turns = turns_of(out)
    assert turns
    for turn, found in turns:
        spans = shown(jaeger, turn)
        assert set(spans) == {turn.span_id, *(times.span.span_id for times in found.spans)}
        root = spans[turn.span_id]
        assert (root[1], root[3]["turntrace.phase"]) == (None, "turn")
        assert root[3]["turntrace.exclusive_ms"] == pytest.approx(found.root_exclusive_ns / 1e6, abs=1e-3)
        for times in found.spans:
            name, parent, (start_us, duration_us), tags = spans[times.span.span_id]
            assert (name, parent) == (times.span.name, times.span.parent_id)
            assert tags["turntrace.phase"] == times.phase
            assert tags["turntrace.exclusive_ms"] == pytest.approx(times.exclusive_ns / 1e6, abs=1e-3)
            assert start_us == times.span.start_ns // 1000
            assert duration_us == pytest.approx((times.span.end_ns - times.span.start_ns) / 1000, abs=1)
    return turns


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_demos_trace_in_jaeger_is_the_files(tmp_path, jaeger, collector, protocol):
    """Through the collector, by either protocol: every span, parent, phase and exclusive time."""
    out = tmp_path / "demo.ndjson"
    endpoint = collector.grpc if protocol == "grpc" else collector.endpoint
    run(["-m", "turntrace", "demo", "--trace", str(out)], endpoint, uuid.uuid4().hex, protocol)
    assert len(check(jaeger, out)) == 1


def test_a_file_that_is_sent_is_the_same_trace(tmp_path, jaeger, collector):
    """Recorded with no endpoint, then sent: as if it had been exported; sent again, it is still one trace."""
    out, service = tmp_path / "demo.ndjson", uuid.uuid4().hex
    run(["-m", "turntrace", "demo", "--trace", str(out)], "", service)
    for _ in range(2):
        run(["-m", "turntrace", "send", str(out), "--endpoint", collector.endpoint], "", service)
    ((turn, _),) = turns_of(out)
    eventually(lambda: jaeger.trace(turn.trace_id))
    spans = [span["spanID"] for span in jaeger.trace(turn.trace_id)["spans"]]
    assert set(spans) == {turn.span_id, *(span.span_id for span in turn.spans)}
    assert len(jaeger.search(service=service)) == 1


@pytest.fixture(scope="module")
def shop(tmp_path_factory, jaeger, collector):
    """The turns of an agent whose turns differ, and the service that they are under."""
    out, service = tmp_path_factory.mktemp("shop") / "shop.ndjson", f"shop-{uuid.uuid4().hex[:8]}"
    run([str(HERE / "shop.py"), str(out)], collector.endpoint, service)
    return service, check(jaeger, out)


def test_there_are_ten_searches():
    """Each with a promise that is held against the file."""
    assert [row[0] for row in SEARCHES] == list(PROMISES)
    assert len(SEARCHES) == 10


@pytest.mark.parametrize(
    ("promise", "operation", "tags", "duration"), SEARCHES, ids=[row[0] for row in SEARCHES]
)
def test_a_search_finds_what_it_promises(shop, jaeger, promise, operation, tags, duration):
    """Exactly the turns of which the file says it; at least one, and not all."""
    service, turns = shop
    asked = {"service": service, "operation": operation, "limit": 100}
    if tags:
        asked["tags"] = dict(pair.split("=") for pair in tags.split(" "))
    if duration:
        asked["minDuration"] = duration
    expected = {turn.trace_id for turn, found in turns if PROMISES[promise](turn, found)}
    assert 0 < len(expected) < len(turns)
    assert {trace["traceID"] for trace in jaeger.search(**asked)} == expected
