"""What run hands to a command: its environment, the notes that come back, names of agents."""

import os
from pathlib import Path

import pytest

from turntrace.otel import launch
from turntrace.otel.launch import (
    Note,
    Plan,
    child_environment,
    is_launcher,
    new_traceparent,
    read_notes,
    target_name,
)
from turntrace.otel.remote import context_from

PLAN = Plan(trace="/t/out.ndjson", traceparent="00-0a-0b-01", parent_pid=7, notes="/t/notes", agent="bot")


def test_a_command_that_is_not_instrumented_gets_the_parent_and_the_file_only():
    """Without instrumentation nothing but TRACEPARENT and TURNTRACE_TRACE is added."""
    plan = Plan(trace="/t/out.ndjson", traceparent="00-0a-0b-01", instrument=False)

    assert child_environment({"A": "1"}, plan) == {
        "A": "1",
        "TURNTRACE_TRACE": "/t/out.ndjson",
        "TRACEPARENT": "00-0a-0b-01",
    }


def test_an_instrumented_command_finds_the_folder_first_on_its_path():
    """The folder of the sitecustomize comes before what PYTHONPATH held."""
    child = child_environment({"PYTHONPATH": "/mine"}, PLAN)

    folder, rest = child["PYTHONPATH"].split(os.pathsep)
    assert Path(folder, "sitecustomize.py").is_file()
    assert rest == "/mine"


def test_an_empty_path_gains_no_empty_entry():
    """An empty entry would put the working folder on the path."""
    assert os.pathsep not in child_environment({"PYTHONPATH": ""}, PLAN)["PYTHONPATH"]


def test_what_is_handed_over_has_one_prefix_and_no_empty_value():
    """Everything beyond the lasting variables is recognised by its prefix, so that it can be taken back."""
    child = child_environment({}, PLAN)

    added = set(child) - {"TURNTRACE_TRACE", "TRACEPARENT", "PYTHONPATH"}
    assert added == {launch.AGENT, launch.CONTENT, launch.NOTES, launch.PARENT}
    assert all(name.startswith(launch.HANDED_PREFIX) and child[name] for name in added)


def test_a_direct_child_is_told_its_parent_and_a_launched_one_to_hand_on():
    """Only the direct child of run is the agent, unless a launcher stands in between."""
    launched = child_environment({}, Plan(trace="/o", traceparent="t"))

    assert child_environment({}, PLAN)[launch.PARENT] == "7"
    assert launch.THROUGH not in child_environment({}, PLAN)
    assert launched[launch.THROUGH] == "1"
    assert launch.PARENT not in launched


def test_children_are_recorded_whatever_their_parent():
    """With children the parent's id does not decide."""
    child = child_environment({}, Plan(trace="/o", traceparent="t", parent_pid=7, children=True))

    assert child[launch.CHILDREN] == "1"
    assert launch.PARENT not in child


def test_labels_are_added_to_those_that_are_there():
    """Labels of the command line follow those of the variable, so that they win."""
    plan = Plan(trace="/o", traceparent="t", labels={"a": "2", "b": "3"}, instrument=False)

    assert child_environment({"TURNTRACE_LABELS": "a=1"}, plan)["TURNTRACE_LABELS"] == "a=1,a=2,b=3"
    assert child_environment({}, plan)["TURNTRACE_LABELS"] == "a=2,b=3"


def test_the_state_of_another_parent_is_taken_away():
    """TRACESTATE belongs to the TRACEPARENT it came with."""
    fresh = child_environment({"TRACESTATE": "v=1"}, PLAN)
    kept = child_environment({"TRACESTATE": "v=1"}, Plan(trace="/o", traceparent="t", tracestate="v=1"))

    assert "TRACESTATE" not in fresh
    assert kept["TRACESTATE"] == "v=1"


@pytest.mark.parametrize("rest", ["", ":/mine"])
def test_what_another_run_added_is_taken_out(rest):
    """Inside a run with --children only the inner run decides what starts."""
    outer = child_environment({}, PLAN)
    outer["PYTHONPATH"] += rest
    inner = child_environment(outer, Plan(trace="/o", traceparent="t", instrument=False))

    assert inner == {"TURNTRACE_TRACE": "/o", "TRACEPARENT": "t", "PYTHONPATH": rest.lstrip(":")}
    assert launch.AGENT not in child_environment(outer, Plan(trace="/o", traceparent="t"))


def test_the_environment_that_was_given_is_not_changed():
    """The caller's mapping stays as it was."""
    env = {"PYTHONPATH": "/mine"}
    child_environment(env, PLAN)

    assert env == {"PYTHONPATH": "/mine"}


def test_a_new_parent_is_a_valid_sampled_one():
    """A made-up TRACEPARENT is one that OpenTelemetry accepts, and no two are the same."""
    first, second = new_traceparent(), new_traceparent()

    assert context_from(first, None) is not None
    assert first.endswith("-01")
    assert first != second


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["python"], None),
        (["python", "-c", "x"], None),
        (["python", "-u", "-W", "error", "a/agent.py", "-m", "b"], "agent"),
        (["python", "-m", "pkg.agent"], "agent"),
        (["python", "-Im", "pkg"], "pkg"),
        (["python", "tool"], "tool"),
        (["python", "--check-hash-based-pycs=m", "agent.py"], "agent"),
    ],
)
def test_the_target_of_a_python_is_its_script_or_module(words, name):
    """Options of the interpreter, with or without a value, are not the target; its arguments neither."""
    assert target_name(words) == name


def test_launchers_are_known_by_script_and_by_module():
    """A Python that runs poetry is not the agent; one that has the word as an argument is."""
    assert is_launcher(["python", "/bin/poetry", "run"])
    assert is_launcher(["python", "-m", "uv", "run"])
    assert not is_launcher(["python", "agent.py", "poetry"])


def test_notes_are_read_as_they_were_written(tmp_path):
    """Each line is one Python's note; lines that are none are passed over, a missing file has none."""
    path = tmp_path / "notes"
    assert read_notes(path) == ()

    path.write_text("lacking\t/usr/bin/python3\t\nfailed\t/p\tOSError: no\nhalf a line")
    assert read_notes(path) == (
        Note(outcome="lacking", python="/usr/bin/python3"),
        Note(outcome="failed", python="/p", message="OSError: no"),
    )
