"""Which commands get a receiver of their own, and that one that cannot be had costs only the recording."""

import signal
import threading
from pathlib import Path

import httpx
import pytest

from otlp_requests import PROTOBUF, traces
from turntrace.cli import receiving
from turntrace.cli.launch import recognised
from turntrace.cli.output import UsageError
from turntrace.cli.receiving import Receiving, folder_of, preset_of
from turntrace.collect.presets import PRESETS
from turntrace.errors import ConfigurationError
from turntrace.otel.launch import Plan


@pytest.fixture
def plan(tmp_path):
    """A run into an empty folder."""
    return Plan(trace=str(tmp_path / "t.ndjson"), traceparent="00-0a-0b-01")


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
    assert not folder_of(plan.trace).exists()


def test_a_receiver_for_the_command(plan):
    """It listens while the block runs, what came lies beside the trace, and no signal reaches its threads."""
    with Receiving(PRESETS["otel"], ["x"], {}, plan) as found:
        endpoint = found.environment["OTEL_EXPORTER_OTLP_ENDPOINT"]
        headers = {"content-type": PROTOBUF}
        assert httpx.post(f"{endpoint}/v1/traces", content=traces(1), headers=headers).status_code == 200
        with Path(f"/proc/self/task/{_native_id()}/status").open() as status:
            blocked = next(line for line in status if line.startswith("SigBlk"))
        assert int(blocked.split()[1], 16) >> (signal.SIGTERM - 1) & 1
        assert found.settle(1) == ()
    assert (folder_of(plan.trace) / "traces.pb").stat().st_size
    found.forget()
    assert not folder_of(plan.trace).exists()


def _native_id():
    return next(one.native_id for one in threading.enumerate() if one is not threading.main_thread())


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
