"""`turntrace doctor`: what would be recorded and exported, and what stands in the way."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor

from turntrace.cli import diagnosis
from turntrace.cli.diagnosis import diagnose, variables
from turntrace.cli.doctor import _as_text
from turntrace.version import VERSION


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def doctor(*arguments, **env):
    """Run the command."""
    command = [sys.executable, "-m", "turntrace", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **env})


def text(**env):
    """What a person reads, as one line."""
    return " ".join(" ".join(_as_text(diagnose(env))).split())


def test_it_tells_everything_there_is():
    """Versions, the decision, endpoint, folder, abilities, instrumentations, phases; nothing is left behind."""
    done = doctor()

    assert (done.returncode, done.stderr) == (0, "")
    for part in (
        f"turntrace {VERSION}",
        "opentelemetry-sdk 1.",
        "turntrace writes the file; nothing is exported",
        "none: spans go to the trace file only",
        "writable",
        "fork supported, locks supported, signals supported",
        "threading: opentelemetry-instrumentation-threading",
        "tool_planning",
        "no variable of turntrace or OpenTelemetry is set",
    ):
        assert part in done.stdout
    assert not list(Path().iterdir())


def test_the_json_has_the_same_and_a_schema():
    """Keys are stable; the exit status is 0 without a problem."""
    done = doctor("--json", TURNTRACE_STRICT="1")
    found = json.loads(done.stdout)

    assert done.returncode == 0
    assert found["schema"] == 1
    assert set(found) == {
        *("schema", "python", "executable", "platform", "packages", "decision", "endpoint", "folder"),
        *("abilities", "instrumentations", "sources", "variables", "planned_phases", "problems"),
    }
    assert found["variables"] == [
        {"name": "TURNTRACE_STRICT", "value": "1", "known": True, "suggestion": None}
    ]
    assert found["executable"] == sys.executable
    assert found["problems"] == []


def test_the_endpoint_is_looked_at_with_the_rule_for_its_protocol():
    """Whether something listens, and why this protocol."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        alive = text(OTEL_EXPORTER_OTLP_ENDPOINT=url)
    dead = text(OTEL_EXPORTER_OTLP_ENDPOINT=url)

    assert f"turntrace exports spans to {url} (http/protobuf)" in alive
    assert (
        f"{url} over http/protobuf (port 4317 means grpc, any other http/protobuf); something listens"
        in alive
    )
    assert "nothing listens there" in dead


def test_the_json_has_the_endpoint():
    """Endpoint, protocol, rule and whether it answers."""
    found = json.loads(doctor("--json", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9").stdout)

    assert found["endpoint"] == {
        "endpoint": "http://127.0.0.1:9",
        "protocol": "http/protobuf",
        "rule": "port 4317 means grpc, any other http/protobuf",
        "listening": False,
    }


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ({"TURNTRACE_JOURNAL": "often"}, "TURNTRACE_JOURNAL"),
        ({"OTEL_TRACES_EXPORTER": "no-such"}, "no-such"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "h:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "http/json"),
    ],
)
def test_a_setting_that_loses_turns_is_a_problem(env, problem):
    """The problem is named and the exit status is 1."""
    done = doctor(**env)

    assert done.returncode == 1
    assert problem in done.stdout.splitlines()[-1]


def test_a_folder_that_takes_no_file_is_a_problem(monkeypatch):
    """The trace could not be written."""

    def refuse(**_):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(diagnosis.tempfile, "TemporaryDirectory", refuse)
    found = diagnose({"TURNTRACE_TRACE": "/somewhere/{date}/t.ndjson"})

    assert (found.folder.path, found.folder.is_writable, found.folder.can_lock) == ("/", False, False)
    assert found.problems == ("no file can be written in /",)
    assert "folder / : not writable".replace(" :", ":") in " ".join(" ".join(_as_text(found)).split())


def test_the_folder_is_the_nearest_that_is_there(tmp_path):
    """A folder that will be made is looked for above."""
    assert diagnose({"TURNTRACE_TRACE": "a/b/t.ndjson"}).folder.path == str(tmp_path)
    assert not Path("a").exists()


def test_switched_off_is_said():
    """With recording switched off that is the decision."""
    assert "nothing is recorded" in diagnose({"TURNTRACE_DISABLED": "1"}).decision


def test_instrumentations_have_a_verdict(monkeypatch):
    """What starts, what is left out and why."""
    monkeypatch.setattr(
        HTTPX2ClientInstrumentor, "instrumentation_dependencies", lambda self: ("no-such-library >= 1",)
    )
    found = text(OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="threading, x")

    assert "httpx: opentelemetry-instrumentation-httpx" in found
    assert "left out: OTEL_PYTHON_DISABLED_INSTRUMENTATIONS" in found
    assert "left out:" in found.partition("httpx2: opentelemetry-instrumentation-httpx")[2]
    assert "no-such-library" in found


def test_each_sdk_has_one_source_and_a_reason():
    """Native spans where there are some, else our adapter, and the variable that forbids it."""
    found = text()
    off = text(OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="openai", ANTHROPIC_OPEN_TELEMETRY="false")

    assert re.search(r"anthropic [\d.]+: its own spans, since this version makes them", found)
    assert re.search(r"openai [\d.]+: spans of turntrace run's adapter, since it makes none itself", found)
    assert re.search(r"anthropic [\d.]+: spans of turntrace run's adapter", off)
    assert re.search(r"openai [\d.]+: no spans, since OTEL_PYTHON_DISABLED_INSTRUMENTATIONS says so", off)


def test_misspelt_variables_are_recognised():
    """A name near to one that exists gets a suggestion; values that may be secret are not shown."""
    env = {
        "TURNTRACE_TRCAE": "a",
        "TURNTRACE_XYZZY_QUUX": "b",
        "TURNTRACE_TRACE": "c",
        "TURNTRACE_RUN_AGENT": "d",
        "OTEL_EXPORTER_OTLP_ENDPIONT": "e",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=secret",
        "OTEL_SOMETHING_OF_ANOTHER_PACKAGE": "f",
        "PATH": "g",
    }
    found = {
        one.name: one for one in variables(env, ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"])
    }

    assert {name: (one.is_known, one.suggestion) for name, one in found.items()} == {
        "TURNTRACE_TRCAE": (False, "TURNTRACE_TRACE"),
        "TURNTRACE_XYZZY_QUUX": (False, None),
        "TURNTRACE_TRACE": (True, None),
        "OTEL_EXPORTER_OTLP_ENDPIONT": (False, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        "OTEL_EXPORTER_OTLP_HEADERS": (True, None),
        "OTEL_SOMETHING_OF_ANOTHER_PACKAGE": (True, None),
    }
    assert found["OTEL_EXPORTER_OTLP_HEADERS"].value == "(not shown)"


def test_misspelt_variables_are_told():
    """The line names the variable and the one that was meant."""
    found = text(TURNTRACE_TRCAE="a", TURNTRACE_XYZZY_QUUX="b", TURNTRACE_STRICT="1")

    assert "TURNTRACE_TRCAE=a is no variable that is read; did you mean TURNTRACE_TRACE?" in found
    assert "TURNTRACE_XYZZY_QUUX=b is no variable that is read" in found
    assert found.count("did you mean") == 1


def test_hostile_values_are_harmless():
    """A control character in a variable does not reach the terminal."""
    assert "\x1b" not in doctor(TURNTRACE_LABELS="a=\x1b[31m").stdout


def test_without_instrumentations_that_is_said(monkeypatch):
    """A Python without any says so."""
    monkeypatch.setattr(diagnosis, "installed", lambda disabled, env: ())

    assert "no instrumentation is installed" in text()
