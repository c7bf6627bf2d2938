"""``turntrace demo``: a real agent against a real server on loopback, then its report."""

import json
import re
from pathlib import Path

import pytest


@pytest.fixture
def empty(write_trace, monkeypatch):
    """An empty current folder, and an environment that sends nothing anywhere."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED", "TURNTRACE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    return Path.cwd()


def test_the_demo_records_and_reports(execute, run, empty):
    """Standard error says where it records; standard output is the report, the file and what to do next."""
    result = execute("demo", "--trace", "demo.ndjson")
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith(b"turntrace: recording to demo.ndjson; ")
    shown = result.stdout.decode()
    assert shown.startswith("demo-agent · ")
    assert "\nWHERE THE TURN WENT " in shown
    assert re.search(r"\n 1  retry_wait +one 429 in round 2; nothing else ran while it waited ", shown)
    trace, first, second = shown.splitlines()[-3:]
    assert re.fullmatch(r"trace  demo\.ndjson +\d\d spans, \d+ kB, no prompts or outputs inside", trace)
    assert first.startswith("next   turntrace view demo.ndjson ")
    assert second.startswith("       turntrace run -- python agent.py ")
    assert run("check", "demo.ndjson", "--contract", "--min-coverage", "0.95").exit_code == 0
    [turn] = json.loads(run("report", "demo.ndjson", "--json").stdout)["turns"]
    assert turn["usage"]["complete"] is True
    assert turn["counters"]["retry_count"] == 1


def test_the_default_file_is_the_newest_of_the_folder(execute, run, empty):
    """Without --trace the file lies in .turntrace, where `turntrace` alone finds it."""
    result = execute("demo", "--service", "0.01")
    assert result.returncode == 0, result.stderr
    [trace] = Path(".turntrace").glob("*-demo.ndjson")
    assert f"trace  {trace}" in result.stdout.decode()
    assert f"trace  {trace}" in run().stdout


def test_the_demo_as_a_picture(execute, empty):
    """With --view there is a page too; without a terminal no browser is started."""
    result = execute("demo", "--view", "--service", "0.01")
    assert result.returncode == 0, result.stderr
    [trace] = Path(".turntrace").glob("*-demo.ndjson")
    page = trace.with_suffix(".html")
    assert page.read_bytes().startswith(b"<!doctype html>")
    assert f"view  {page} " in result.stdout.decode()
    assert "next   turntrace view  " in result.stdout.decode()


@pytest.mark.parametrize("variable", ["TURNTRACE_DISABLED", "OTEL_SDK_DISABLED"])
def test_switched_off_it_says_so(execute, empty, variable):
    """With recording switched off there is nothing to report: status 2 and the variable's name."""
    result = execute("demo", env={variable: "true"})
    assert result.returncode == 2
    assert variable.encode() in result.stderr


def test_a_file_that_cannot_be_written(execute, empty):
    """Status 2 before the agent runs."""
    result = execute("demo", "--trace", str(empty))
    assert result.returncode == 2
    assert b"not a regular file" in result.stderr


def test_a_file_elsewhere_is_named_in_full(execute, empty, tmp_path_factory):
    """A trace outside of the current folder is shown by its absolute path."""
    out = tmp_path_factory.mktemp("elsewhere") / "demo.ndjson"
    result = execute("demo", "--trace", out, "--service", "0.01")
    assert f"trace  {out}" in result.stdout.decode()


def test_with_content_kept_nothing_is_promised(execute, empty):
    """The note on prompts is left out where the environment asks for content."""
    variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    result = execute("demo", "--trace", "demo.ndjson", "--service", "0.01", env={variable: "span_only"})
    assert result.returncode == 0, result.stderr
    assert b"no prompts" not in result.stdout
