"""Telemetry that real coding agents sent, recorded once, against what really happened.

``tests/agents/record.py`` records it anew. The same recording is read as it is, in the proto's own spelling,
as protobuf, and with signals left out: what spans do not tell, log events do, and nothing counts twice.
"""

import base64
import gzip
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from agents import setups
from agents.checks import differences
from turntrace.files.read import read_paths
from turntrace.files.together import read_together
from turntrace.report.case import examine

TRACES = Path(__file__).parent / "traces"
NAMES = tuple(setups.SETUPS)
LOGGING = ("codex", "claude", "gemini")
UNSAID = {"claude": frozenset({"reasoning_tokens"}), "node": frozenset({"reasoning_tokens"})}
"""Anthropic's API counts no reasoning apart, and the AI SDK does not tell it."""

REQUESTS = {
    "resourceSpans": ExportTraceServiceRequest,
    "resourceLogs": ExportLogsServiceRequest,
    "resourceMetrics": ExportMetricsServiceRequest,
}


@cache
def lines(name):
    """What an agent sent, a request a line."""
    (path,) = TRACES.glob(f"{name}.otlp.jsonl*")
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


@cache
def truth(name):
    """What really happened."""
    return json.loads((TRACES / f"{name}.truth.json").read_text())


def told(name):
    """The kinds of tokens that no answer told."""
    return UNSAID.get(name, frozenset())


def turns_of(tmp_path, kept, **how):
    """The turns of some lines."""
    path = tmp_path / "kept.jsonl"
    path.write_text("\n".join(kept) + "\n")
    result = read_paths([str(path)], **how)
    assert result.issues == []
    return result.turns


def only(name, *signals):
    """The requests of some signals."""
    return [line for line in lines(name) if json.loads(line).keys() <= set(signals)]


@pytest.mark.parametrize("whole_run", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_turn_is_read_right(name, whole_run, tmp_path):
    """One turn; requests, tokens, generations, the tool and coverage as the server and the tool noted them."""
    found = turns_of(tmp_path, lines(name), whole_run=whole_run)
    assert differences(found, truth(name), unsaid=told(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_plumbing_does_not_clutter(name, tmp_path):
    """Of hundreds of spans those are left that mean something, and none of them is of no known kind."""
    turn = turns_of(tmp_path, lines(name))[0]
    assert len(turn.spans) <= 20
    assert {span.phase for span in turn.spans} <= {
        None, "generation", "tool_execution", "permission_wait", "prompt_build", "provider_connect", "tool_partition",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_critical_path_leads_through_what_the_turn_waited_for(name, tmp_path):
    """The model and the tool one after the other: nine tenths of their time are on the path."""
    case = examine(turns_of(tmp_path, lines(name))[0])
    main = [one for one in case.attribution.spans if one.phase in {"generation", "tool_execution"}]
    beside = truth(name)["wire"][0]["what"] == "beside"
    taken = sum(one.span.end_ns - one.span.start_ns for one in main[1 if beside else 0 :])
    assert sum(one.critical_ns for one in main) >= 0.9 * taken


@pytest.mark.parametrize("name", NAMES)
def test_lines_in_any_order_give_the_same(name, tmp_path):
    """Batches come as they come."""
    assert turns_of(tmp_path, lines(name)[::-1]) == turns_of(tmp_path, lines(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_that_came_twice_counts_once(name, tmp_path):
    """An exporter tries again what was acknowledged too late."""
    path = tmp_path / "twice.jsonl"
    path.write_text("\n".join(lines(name) * 2) + "\n")
    turns = read_paths([str(path)]).turns
    assert differences(turns, truth(name), unsaid=told(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_protobuf_gives_the_same(name, tmp_path):
    """Each request as a message with its length before it, by signal, as a receiver keeps them."""
    for line in lines(name):
        ((key, _),) = json.loads(line).items()
        message = ParseDict(base64_ids(json.loads(line)), REQUESTS[key]())
        data = message.SerializeToString()
        with (tmp_path / f"{key}.pb").open("ab") as file:
            file.write(len(data).to_bytes(4, "big") + data)
    found = read_together(sorted(map(str, tmp_path.iterdir())))
    assert found.issues == []
    assert found.turns == turns_of(tmp_path, lines(name))


def base64_ids(value):
    """OTLP writes ids in hex, the encoder of protobuf reads base64."""
    if isinstance(value, list):
        return [base64_ids(one) for one in value]
    if not isinstance(value, dict):
        return value
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        key: base64.b64encode(bytes.fromhex(one)).decode() if key in ids else base64_ids(one)
        for key, one in value.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_protos_own_spelling_gives_the_same(name, tmp_path):
    """Names with underscores, as some encoders write them."""
    snake = [
        re.sub(r'"(\w+)":(?=["\[{\d])', lambda key: f'"{spelled(key[1])}":', line) for line in lines(name)
    ]
    assert '"resource_spans"' in "".join(snake)
    assert turns_of(tmp_path, snake) == turns_of(tmp_path, lines(name))


def spelled(name):
    """A name as the proto spells it."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


@pytest.mark.parametrize("name", LOGGING)
def test_events_alone_tell_the_turn(name, tmp_path):
    """Where a version or a setting sends no spans: requests, tokens and the tool are those of the log."""
    turns = turns_of(tmp_path, only(name, "resourceLogs"))
    wrong = differences(turns, truth(name), unsaid=told(name))
    # the agents' own durations begin before what they measure, and gemini's hold what came before the tool
    assert [one for one in wrong if not one.startswith(("the tool's span", "coverage"))] == []


@pytest.mark.parametrize("name", NAMES)
def test_spans_alone_tell_the_turn(name, tmp_path):
    """Without log events the times are the same; what no span tells of tokens is unknown."""
    turns = turns_of(tmp_path, only(name, "resourceSpans"))
    unknown = {"reasoning_tokens", "cached_input_tokens"} if name == "gemini" else set()
    wrong = differences(turns, truth(name), unsaid=told(name) | unknown)
    # gemini tells the output without the thoughts in it
    assert [one for one in wrong if name != "gemini" or not one.startswith("output_tokens")] == []


@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_counters_fill_the_one_call_that_says_nothing(name, tmp_path):
    """What is left of a session's tokens is what that call consumed."""
    turn = turns_of(tmp_path, silent(name, calls=1))[0]
    usage = examine(turn).usage
    sent = [one["tokens"] for one in truth(name)["wire"]]
    if name == "claude":
        assert usage.input_tokens == sum(one["input"] for one in sent)
        assert usage.output_tokens == sum(one["output"] for one in sent)
    assert usage.missing == 0


@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_counters_are_told_where_several_calls_say_nothing(name, tmp_path):
    """The split is unknown, and is not made up."""
    turn = turns_of(tmp_path, silent(name, calls=2))[0]
    assert examine(turn).usage.input_tokens is None
    (warning,) = [one for one in turn.warnings if one.code == "counted_by_session"]
    assert "input_tokens 2500" in warning.message


def silent(name, *, calls):
    """Spans and counters, where the last ``calls`` model calls tell no tokens."""
    documents = [json.loads(line) for line in only(name, "resourceSpans", "resourceMetrics")]
    spans = [
        span
        for document in documents
        for resource in document.get("resourceSpans", [])
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
        if any("token" in pair["key"] for pair in span["attributes"])
    ]
    for span in sorted(spans, key=lambda span: int(span["startTimeUnixNano"]))[-calls:]:
        span["attributes"] = [pair for pair in span["attributes"] if "token" not in pair["key"]]
    return [json.dumps(document) for document in documents]


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_tells_nothing_of_the_machine(name):
    """Fixtures can be made by anybody, and stay small."""
    text = "\n".join(lines(name))
    assert not re.search(r"site-packages|(?<!/agent)/(root|home|Users|tmp|work)/", text)
    (path,) = TRACES.glob(f"{name}.otlp.jsonl*")
    assert path.stat().st_size < 100_000


def test_agents_that_run_can_be_recorded():
    """Each has a preset, a version and a recording of that version."""
    from turntrace.collect.presets import PRESETS

    presets = {setup.preset or name for name, setup in setups.SETUPS.items()}
    assert set(NAMES) < set(setups.AGENTS)
    assert presets == set(PRESETS)
    assert {name: truth(name)["version"] for name in NAMES} == {
        name: setups.AGENTS[name]["version"] for name in NAMES
    }


def test_the_page_shows_what_report_prints():
    """The example of docs/coding-agents.md is the report of the recording."""
    root = TRACES.parents[2]
    page = (root / "docs" / "coding-agents.md").read_text()
    command, _, shown = page.partition("```console\n$ ")[2].partition("...\n```")[0].partition("\n")
    program, *arguments = command.split()
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    printed = subprocess.run(
        [str(Path(sys.executable).parent / program), *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.startswith(shown)
    assert "generation" in shown
