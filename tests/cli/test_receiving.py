"""Which commands get a receiver of their own, and that one that cannot be had costs only the recording."""

import re
import signal
import threading
from pathlib import Path

import httpx
import pytest

from otlp_requests import PROTOBUF, T0_NS, as_agent, traces
from turntrace.cli import receiving
from turntrace.cli.launch import recognised
from turntrace.cli.output import UsageError
from turntrace.cli.receiving import Receiving, preset_of
from turntrace.collect.presets import PRESETS
from turntrace.errors import ConfigurationError
from turntrace.files.append import Rotation
from turntrace.files.read import read_paths
from turntrace.otel.launch import Plan


@pytest.fixture
def plan(tmp_path):
    """A run into an empty folder."""
    parent = "00-0123456789abcdef0123456789abcdef-00000000000000aa-01"
    return Plan(trace=str(tmp_path / "t.ndjson"), traceparent=parent, agent="bot", labels={"task": "x"})


@pytest.mark.parametrize(
    ("words", "is_instrumented", "name"),
    [
        (["codex", "exec"], False, "codex"),
        (["env", "A=1", "codex"], True, "codex"),
        (["sh", "-c", "x"], False, "otel"),
        (["python3", "agent.py"], True, None),
        (["python3", "agent.py"], False, "otel"),
    ],
)
def test_a_preset_for_each_command(words, is_instrumented, name):
    """Known agents by their name; a Python that is recorded from inside needs none."""
    found = preset_of(None, recognised(words), is_instrumented=is_instrumented)
    assert (found and found.name) == name


def test_a_preset_by_name():
    """It overrules; a name that is none is told with those that are."""
    assert preset_of("claude", recognised(["sh"]), is_instrumented=True) is PRESETS["claude"]
    with pytest.raises(UsageError, match="--preset nano: there are claude, codex, gemini, opencode, otel"):
        preset_of("nano", recognised(["sh"]), is_instrumented=False)


def test_without_a_preset_nothing_listens(plan):
    """The command is started as it was given."""
    env = {"A": "1"}
    with Receiving(None, ["x"], env, plan) as found:
        assert (found.argv, found.environment, found.remarks, found.settle(1)) == (["x"], env, (), ())
        assert found.record(Rotation(), (0, 1)) == ()
    assert beside(plan) == []


def test_a_receiver_for_the_command(plan):
    """It listens while the block runs, what came lies beside the trace, and no signal reaches its threads."""
    before = set(threading.enumerate())
    with Receiving(PRESETS["otel"], ["x"], {}, plan) as found:
        send(found, traces(1))
        mine = set(threading.enumerate()) - before
        assert mine
        assert all(_blocks(thread, signal.SIGTERM) for thread in mine)
        assert [path.suffix for path in beside(plan)] == [".otlp", ".part"]
        assert found.settle(1) == ()
        lived = T0_NS - 2 * 10**9, T0_NS + 3 * 10**9
        assert found.record(Rotation(), lived) == (
            "it ran 2.000 s before the turn (start-up) and 3.000 s after it",
        )
    assert [path.name for path in beside(plan)] == ["t.ndjson.lock", "t.ndjson"]
    (turn,) = read_paths([plan.trace]).turns
    assert (turn.agent, turn.labels, turn.counters["model_requests"]) == ("bot", {"task": "x"}, 1)


def beside(plan):
    """The files of the trace's folder."""
    return sorted(Path(plan.trace).parent.iterdir(), key=lambda path: path.suffix)


def test_nothing_received_is_nothing_to_tell(plan):
    """No turn, and nothing left beside the trace."""
    with Receiving(PRESETS["otel"], ["x"], {}, plan) as found:
        assert found.settle(0.2) == ()
        assert found.record(Rotation(), (0, 1)) == ()
    assert beside(plan) == []


def test_several_turns_and_what_lay_around_them(plan):
    """The first start and the last end count."""
    with Receiving(PRESETS["otel"], ["x"], {}, plan) as found:
        for number in (1, 2):
            send(found, as_agent(traces(1, trace_id=number, first=number * 10**6)))
        (remark,) = found.record(Rotation(), (T0_NS, T0_NS + 4 * 10**9))
    assert remark == "it ran 1.000 s before the first turn (start-up) and 2.000 s after the last"


def test_damaged_requests_are_told_of(plan):
    """The receiver lets through only what it can parse; a file that was changed since is another matter."""
    with Receiving(PRESETS["otel"], ["x"], {}, plan) as found:
        send(found, traces(1))
        (folder,) = Path(plan.trace).parent.glob("*.otlp")
        with (folder / "traces.jsonl").open("w") as file:
            file.write('{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz"}]}]}]}\n')
        first, _ = found.record(Rotation(), (0, T0_NS * 2))
    assert first == "1 records that were received could not be read"


def test_a_trace_that_does_not_take_the_turns(plan, monkeypatch):
    """What came is kept, and a line says so."""

    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr(receiving, "record_run", full)
    with Receiving(PRESETS["otel"], ["x"], {}, plan) as found:
        send(found, traces(1))
        (remark,) = found.record(Rotation(), (0, 1))
    assert remark == "what was received is kept beside the trace, which does not take it: no space"
    assert [path.suffix for path in beside(plan)] == [".otlp", ".part"]


def send(found, body):
    """What an exporter does."""
    endpoint = found.environment["OTEL_EXPORTER_OTLP_ENDPOINT"]
    headers = {"content-type": PROTOBUF}
    assert httpx.post(f"{endpoint}/v1/traces", content=body, headers=headers).status_code == 200


def _blocks(thread, number):
    """Whether a thread is never given a signal."""
    status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
    return int(re.search(r"SigBlk:\s*(\w+)", status)[1], 16) >> (number - 1) & 1


def test_the_agents_own_configuration_is_read(plan, tmp_path):
    """Where codex sends its traces by itself stands in its file; a file that cannot be read says nothing."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        '[otel]\ntrace_exporter = {otlp-http = {endpoint = "http://b.example/v1/traces"}}'
    )
    with Receiving(PRESETS["codex"], ["codex"], {"CODEX_HOME": str(home)}, plan) as found:
        assert found.remarks == ("codex sends its own telemetry to b.example, which still gets it",)
    with Receiving(PRESETS["codex"], ["codex"], {"CODEX_HOME": str(tmp_path / "none")}, plan) as found:
        assert found.remarks == ()


@pytest.mark.parametrize("error", [ConfigurationError("no port"), OSError("no disk")])
def test_what_cannot_be_received_does_not_stop_the_command(plan, monkeypatch, error):
    """It starts as it was given, and a line says what is missing."""

    def broken(*_, **__):
        raise error

    monkeypatch.setattr(receiving, "Reception", broken)
    with Receiving(PRESETS["otel"], ["x"], {}, plan) as found:
        assert (found.argv, found.environment) == (["x"], {})
        assert found.remarks == (f"what the command sends is not received: {error}",)
        assert found.settle(1) == ()
        assert beside(plan) == []


def test_requests_have_a_journal_from_the_first_moment_on(plan, monkeypatch):
    """A kill in between leaves none that no later run would take up, or clear away."""
    seen = []
    monkeypatch.setattr(receiving, "Reception", lambda *_, **__: seen.extend(beside(plan)) or 1 / 0)
    with pytest.raises(ZeroDivisionError), Receiving(PRESETS["otel"], ["x"], {}, plan):
        pass
    assert [path.suffix for path in seen] == [".part"]
