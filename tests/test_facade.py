"""What ``import turntrace as tt`` gives."""

import os
import runpy
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import turntrace as tt
from files.journals import dead_pid, phase, write_journal
from recordings import Recorded
from turntrace.errors import ConfigurationError, TraceReadError
from turntrace.version import VERSION


def written(path):
    """A trace with one turn."""
    with Recorded(path), tt.turn("agent"), tt.tool("bash"):
        pass
    return path


def test_read_gives_the_turns_of_files_and_their_journals(tmp_path):
    """Turns of several files in order, as reports; strings and paths alike."""
    one, other = written(tmp_path / "a.ndjson"), tmp_path / "b.ndjson"
    other.touch()
    write_journal(other, "r2", dead_pid(), phase(2))
    reports = tt.read(one, str(other))
    assert [report.turn.agent for report in reports] == ["agent", "a"]
    assert [span.phase for span in reports[0].spans] == ["tool_execution"]
    with pytest.raises(TraceReadError, match=r"none\.ndjson"):
        tt.read(tmp_path / "none.ndjson")
    one.write_bytes(one.read_bytes() + b"oops\n")
    with pytest.raises(TraceReadError, match=r"a\.ndjson:"):
        tt.read(one, strict=True)


def test_last_is_the_newest_turn_of_the_newest_file(tmp_path):
    """None where there is no file, or one without a turn."""
    assert tt.last(tmp_path / "none") is None
    assert tt.last(tmp_path) is None
    (tmp_path / "old.ndjson").touch()
    os.utime(tmp_path / "old.ndjson", (1, 1))
    assert tt.last(tmp_path) is None
    written(tmp_path / "new.ndjson")
    assert tt.last(tmp_path).turn.agent == "agent"


def test_last_is_of_the_running_recording_first(tmp_path):
    """While a process records, its own newest turn is meant; None before there is one."""
    with Recorded(tmp_path / "t.ndjson"):
        assert tt.last() is None
        for name in "ab":
            with tt.turn(name):
                pass
        assert tt.last().turn.agent == "b"


def test_a_turn_reports_itself():
    """report() is the table that read() gives, for the turn so far."""
    with Recorded(), tt.turn("agent") as turn:
        with tt.phase("verification"):
            pass
        report = turn.report()
    assert type(report).__name__ == "TurnReport"
    assert report.turn.run_id == turn.run_id


def test_stream_measures_without_a_turn():
    """Any iterator; off or on."""
    chunks = tt.stream(iter("ab"))
    assert list(chunks) == ["a", "b"]
    assert chunks.summary.chunks == 2


def test_child_env_names_the_span_and_the_file(tmp_path):
    """A child finds its parent's span and file; the base is kept, nothing else added."""
    base = {"A": "1"}
    assert tt.child_env(base) == base
    assert tt.child_env()["PATH"] == os.environ["PATH"]
    out = tmp_path / "t.ndjson"
    with Recorded(out) as recorded, tt.turn("a"):
        env = tt.child_env(base)
    root = recorded.spans()["invoke_agent a"].context
    assert env == {
        "A": "1",
        "TRACEPARENT": f"00-{root.trace_id:032x}-{root.span_id:016x}-{root.trace_flags:02x}",
        "TURNTRACE_TRACE": str(out),
    }
    with Recorded(), tt.turn("a"):
        assert "TURNTRACE_TRACE" not in tt.child_env(base)


def test_attach_records_an_application_s_own_provider(tmp_path):
    """Its exporters see what they saw; the file has the turn; attached twice is one handle."""
    provider, seen = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(seen))
    handle = tt.attach(provider, tmp_path / "t.ndjson")
    with tt.turn("a"):
        pass
    handle.flush()
    handle.shutdown()
    provider.shutdown()
    assert [span.name for span in seen.get_finished_spans()] == ["invoke_agent a"]
    [report] = tt.read(tmp_path / "t.ndjson")
    assert report.turn.agent == "a"
    with pytest.raises(ConfigurationError):
        tt.attach(object())


def test_configure_passes_its_arguments_on(tmp_path):
    """In a process of its own: the file is written and emptied as told, the same handle comes twice."""
    code = (
        "import sys, turntrace as tt\n"
        "handle = tt.configure(sys.argv[1], mode='w', journal='sync')\n"
        "assert tt.configure(sys.argv[1], mode='w', journal='sync') is handle\n"
        "with tt.turn('a'): pass\n"
        "handle.shutdown()\n"
    )
    out = tmp_path / "t.ndjson"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code, out], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
    assert len(tt.read(out)) == 1


def test_configure_and_wrap_reach_the_otel_layer(tmp_path, monkeypatch):
    """Every argument is one of the request's, and wrap() gives an exporter around the given one."""
    requests = []
    monkeypatch.setattr(
        "turntrace.otel.setup.configure", lambda request: requests.append(request) or "handle"
    )
    assert (
        tt.configure(tmp_path / "t", mode="w", endpoint="http://x", threads=True, content="keep") == "handle"
    )
    assert tt.configure(flush_on_sigterm=True, journal="off", metrics=False) == "handle"
    assert [request.trace for request in requests] == [str(tmp_path / "t"), None]
    assert (requests[0].mode, requests[0].endpoint, requests[0].threads, requests[0].content) == (
        "w",
        "http://x",
        True,
        "keep",
    )
    assert (requests[1].sigterm, requests[1].journal, requests[1].metrics) == (True, "off", False)
    assert type(tt.wrap(InMemorySpanExporter())).__name__ == "EnrichingExporter"


def test_the_module_is_the_command(monkeypatch, capsys):
    """``python -m turntrace`` is the command line; importing the module runs nothing."""
    monkeypatch.setattr(sys, "argv", ["turntrace", "--version"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("turntrace", run_name="__main__")
    assert end.value.code in {0, None}
    assert VERSION in capsys.readouterr().out
    runpy.run_module("turntrace.__main__", run_name="imported")
    assert tt.__version__ == VERSION
