"""turntrace send: the spans of a file arrive as those of the live export did."""

import json
from pathlib import Path

import pytest

from integration.programs import run_code
from integration.test_otlp import AGENT
from otlp_receiver import GrpcReceiver, HttpReceiver, attributes_of, refused_endpoint
from report.turns import example, span, turn

ROUNDED = "turntrace.wall."


def shown(receiver):
    """What there is to see of each span, by id."""
    return {
        one.span_id.hex(): (
            one.name,
            one.trace_id.hex(),
            one.parent_span_id.hex(),
            one.start_time_unix_nano,
            one.end_time_unix_nano,
            one.status.code,
            {n: v for n, v in attributes_of(one).items() if not n.startswith("http.")},
        )
        for _, _, one in receiver.spans()
    }


@pytest.mark.parametrize("make", [HttpReceiver, GrpcReceiver])
def test_what_is_sent_is_what_was_exported(tmp_path, run, make, monkeypatch):
    """Ids, parents, times, status and attributes; wall shares to a nanosecond or two of the phase."""
    out = tmp_path / "t.ndjson"
    with HttpReceiver() as live, make() as later:
        ended = run_code(
            AGENT.format(configure=f"tt.configure(trace={str(out)!r})"),
            OTEL_EXPORTER_OTLP_ENDPOINT=live.endpoint,
        )
        assert (ended.status, ended.err) == (0, "")
        if make is GrpcReceiver:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        result = run("send", str(out), "--endpoint", later.endpoint, "--json")
        assert result.exit_code == 0, result.stderr
        told = json.loads(result.stdout)
        assert told["files"] == [{"path": str(out), "turns": 3, "spans": 27, "failed": 0}]
        assert told["protocol"] == ("grpc" if make is GrpcReceiver else "http/protobuf")
        expected, found = shown(live), shown(later)
        resource = attributes_of(later.spans()[0][0])
    assert (resource["service.name"], resource["turntrace.metrics"]) == ("a", "process")
    assert expected.keys() == found.keys()
    for span_id, (*told, attributes) in expected.items():
        *sent, given = found[span_id]
        assert sent == told
        walls = {name: value for name, value in attributes.items() if name.startswith(ROUNDED)}
        assert {name: given.pop(name) for name in walls} == pytest.approx(walls, abs=1e-4)
        assert given == {name: value for name, value in attributes.items() if name not in walls}


def test_nothing_listening_is_said_and_nothing_is_lost(run, write_trace):
    """Status 2 and the address; a file that holds no turn says what would be read."""
    name = write_trace("run.ndjson", example())
    result = run("send", name, "--endpoint", refused_endpoint())
    assert result.exit_code == 2
    assert "nothing listens at http://127.0.0.1:" in result.stderr
    Path("empty.txt").write_text("hello\n")
    with HttpReceiver() as receiver:
        result = run("send", "empty.txt", "--endpoint", receiver.endpoint)
    assert result.exit_code == 2
    assert "no turn in empty.txt: no trace is found in it; turntrace reads" in result.stderr


def test_what_is_not_taken_is_counted(run, write_trace, monkeypatch):
    """An endpoint that refuses: status 1, and how many spans."""
    name = write_trace("run.ndjson", example())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with HttpReceiver(status=400) as receiver:
        result = run("send", name, "--endpoint", receiver.endpoint)
    assert result.exit_code == 1
    assert "0 spans sent" in result.stdout
    assert "not taken" in result.stdout
    assert "did not take everything" in result.stderr


def test_the_newest_file_goes_where_the_variables_say(run, write_trace, monkeypatch):
    """No argument: the newest file, OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, whose wins over the agent."""
    write_trace(".turntrace/run.ndjson", example())
    with HttpReceiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
        assert run("send").exit_code == 0
        resource = attributes_of(receiver.spans()[0][0])
        assert resource["service.name"] == "shop"
        assert run("send", "--service", "other").exit_code == 0
        assert attributes_of(receiver.spans()[-1][0])["service.name"] == "other"
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
        assert run("send").exit_code == 0  # an endpoint is known: the exporters of agents are another matter


def test_a_long_file_shows_progress_on_a_terminal_only(run, write_trace, monkeypatch):
    """A bar on standard error; none in a pipe."""
    many = turn([span(f"{n:016x}", "tool_execution", n, n + 1) for n in range(2, 5_101)], 6_000)
    name = write_trace("long.ndjson", many)
    with HttpReceiver() as receiver:
        assert run("send", name, "--endpoint", receiver.endpoint).stderr == ""
        monkeypatch.setattr("turntrace.cli.send._is_watched", lambda: True)
        monkeypatch.setenv("TERM", "xterm")
        result = run("send", name, "--endpoint", receiver.endpoint)
        assert result.exit_code == 0
        assert "long.ndjson" in result.stderr
        assert len({one.span_id for _, _, one in receiver.spans()}) == 5_100


def test_a_turn_without_ids_of_its_own_is_left_out(run, tmp_path):
    """Zero's files have no ids that OTLP knows: said as no spans, never as invented ones."""
    sample = Path(__file__).parents[1] / "data" / "ndjson" / "valid_exclusive_absent.ndjson"
    with HttpReceiver() as receiver:
        result = run("send", sample, "--endpoint", receiver.endpoint)
    assert "0 spans" in result.stdout
    assert receiver.traces == []
