"""What is decided and said before a command runs."""

import os
import socket
import sys
from pathlib import Path

import pytest

from turntrace.cli.launch import recognised
from turntrace.cli.output import UsageError
from turntrace.cli.preparation import Wish, announcement, labels_of, plan_of, shown
from turntrace.config import Settings
from turntrace.errors import TraceWriteError
from turntrace.otel.destination import destination
from turntrace.otel.launch import new_traceparent

AGENT = recognised([sys.executable, "agent.py"])
DEFAULTS = Wish()
OTHER = recognised(["sh", "-c", "x"])
PARENT = "00-000000000000000000000000000000ab-00000000000000cd-01"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def plan(command=AGENT, *, wish=DEFAULTS, **env):
    """The plan for a command."""
    return plan_of(wish, command, Settings.from_env(env))


def test_the_trace_goes_to_the_flag_then_the_variable_then_a_new_file(tmp_path):
    """--trace wins over TURNTRACE_TRACE; without both a file of the agent's name is made in .turntrace."""
    wish = Wish(trace="flag-{agent}.ndjson")

    assert plan(wish=wish, TURNTRACE_TRACE="var.ndjson").trace == str(tmp_path / "flag-agent.ndjson")
    assert plan(TURNTRACE_TRACE="var.ndjson").trace == str(tmp_path / "var.ndjson")
    assert plan().trace.startswith(str(tmp_path / ".turntrace"))
    assert plan().trace.endswith("-agent.ndjson")


def test_the_file_is_emptied_before_the_agent_starts(tmp_path):
    """A stale trace is never taken for a new one, nor are its journals."""
    (tmp_path / "t.ndjson").write_text("old")
    (tmp_path / "t.ndjson.run_1.part").write_text("old")
    plan(wish=Wish(trace="t.ndjson"))

    assert [path.name for path in tmp_path.iterdir()] == ["t.ndjson"]
    assert (tmp_path / "t.ndjson").read_text() == ""


def test_a_run_inside_a_recorded_agent_does_not_empty_its_file(tmp_path):
    """With the agent's TRACEPARENT and TURNTRACE_TRACE the file is the agent's; with --trace it is not."""
    (tmp_path / "t.ndjson").write_text("the agent's")
    found = plan(TURNTRACE_TRACE="t.ndjson", TRACEPARENT=PARENT, TRACESTATE="v=1")
    assert (tmp_path / "t.ndjson").read_text() == "the agent's"
    assert (found.traceparent, found.tracestate, found.appends) == (PARENT, "v=1", True)

    plan(wish=Wish(trace="t.ndjson"), TURNTRACE_TRACE="t.ndjson", TRACEPARENT=PARENT)
    assert (tmp_path / "t.ndjson").read_text() == ""


@pytest.mark.parametrize("given", [None, "nonsense"])
def test_a_parent_is_made_when_there_is_none(given):
    """Without a valid TRACEPARENT every run is a trace of its own, and a lone TRACESTATE is not its."""
    env = {} if given is None else {"TRACEPARENT": given}
    first, second = plan(**env, TRACESTATE="v=1"), plan(**env)

    assert first.traceparent != second.traceparent
    assert first.tracestate is None


def test_a_file_that_cannot_be_written_is_known_before(tmp_path):
    """A folder in the place of the file is an error before anything runs."""
    with pytest.raises(TraceWriteError):
        plan(wish=Wish(trace=str(tmp_path)))


@pytest.mark.parametrize("env", [{}, {"TURNTRACE_TRACE": "-"}])
def test_standard_error_is_the_agents(env):
    """A trace on standard error would mix with what the agent says there."""
    wish = Wish() if env else Wish(trace="-")
    with pytest.raises(UsageError, match="standard error"):
        plan(wish=wish, **env)


def test_only_a_direct_python_is_told_its_parent():
    """A launcher's agent is a grandchild."""
    assert plan().parent_pid == os.getpid()
    assert plan(recognised(["uv", "run", "agent.py"])).parent_pid is None


def test_other_programs_and_refusals_are_not_instrumented():
    """Instrumentation needs a Python and the user's consent."""
    assert plan().instrument
    assert not plan(OTHER).instrument
    assert not plan(wish=Wish(instrument=False)).instrument


def test_the_name_that_was_given_wins():
    """--agent is the agent's name, in the file's name too."""
    found = plan(wish=Wish(agent="my bot"))

    assert found.agent == "my bot"
    assert found.trace.endswith("-my-bot.ndjson")


def test_labels_are_key_and_value():
    """Spaces around them do not count; a value may hold an equals sign and may be empty."""
    assert labels_of(["a=1", " b = x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize("text", ["a", "=1", "a=1,b=2", ""])
def test_what_is_no_label_is_refused(text):
    """A mistake in a label is told before the agent runs."""
    with pytest.raises(UsageError, match="KEY=VALUE"):
        labels_of([text])


def said(command=AGENT, wish=DEFAULTS, goal=None):
    """The lines before the agent's first."""
    return list(announcement(plan(command, wish=wish), command, goal))


def test_the_first_line_says_what_where_and_what_is_left_out():
    """Agent, file, content."""
    wish = Wish(trace="t.ndjson")

    assert said(wish=wish) == ["recording agent to t.ndjson; prompts and outputs left out"]
    assert said(wish=Wish(trace="t.ndjson", content="keep")) == [
        "recording agent to t.ndjson; prompts and outputs kept"
    ]


def test_a_program_that_is_not_instrumented_is_named():
    """The reader learns that nothing will be recorded from inside it, and why."""
    wish = Wish(trace="t.ndjson", instrument=False)

    assert said(OTHER, wish) == [
        "sh is no Python command; it gets TRACEPARENT, and TURNTRACE_TRACE for t.ndjson"
    ]
    assert "agent is not instrumented" in said(AGENT, wish)[0]


def test_what_may_be_secret_in_an_endpoint_is_not_said():
    """A token may stand in its path, a password before its host."""
    goal = destination("http://me:secret@127.0.0.1:1/token/x", Settings())
    first, _ = said(wish=Wish(trace="t.ndjson"), goal=goal)
    assert "sending spans to http://127.0.0.1:1 (http/protobuf)" in first


def test_a_dead_endpoint_is_said_with_where_the_trace_is():
    """The endpoint is probed; when nothing answers a second line says so."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        alive = said(wish=Wish(trace="t.ndjson"), goal=destination(url, Settings()))
    dead = said(wish=Wish(trace="t.ndjson"), goal=destination(url, Settings()))

    assert alive == [
        f"recording agent to t.ndjson and sending spans to {url} (http/protobuf); prompts and outputs left out"
    ]
    assert dead == [*alive, f"nothing listens at {url.removeprefix('http://')}; the trace is in t.ndjson"]


def test_paths_are_shown_as_one_would_type_them(tmp_path):
    """Relative below the working folder, absolute elsewhere."""
    assert shown(str(tmp_path / "a" / "b")) == str(Path("a", "b"))
    assert shown("/elsewhere/b") == "/elsewhere/b"


def test_parents_that_are_made_are_valid():
    """What a plan hands out is what OpenTelemetry reads."""
    assert plan().traceparent.count("-") == new_traceparent().count("-") == 3
