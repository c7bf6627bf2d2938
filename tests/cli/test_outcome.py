"""What is known of a run when its command has ended."""

from dataclasses import replace
from pathlib import Path

import pytest

from report.turns import example
from turntrace.cli import outcome
from turntrace.cli.outcome import outcome_of
from turntrace.config import Settings
from turntrace.otel.launch import Plan, new_traceparent


@pytest.fixture
def recorded(write_trace):
    """The outcome of a run that left these turns and notes."""

    def of(*turns, notes="", since_ns=0, status=0, **plan):
        name = write_trace("out.ndjson", *turns)
        Path("notes").write_text(notes)
        path = Path(name).absolute()
        return outcome_of(
            Plan(trace=str(path), traceparent=new_traceparent(), notes=str(path.with_name("notes")), **plan),
            Settings(),
            since_ns,
            status,
        )

    return of


def test_a_whole_turn_is_a_whole_trace(recorded):
    """The turns are there to be shown, under the name a person would type."""
    found = recorded(example())

    assert found.is_whole
    assert found.remarks == ()
    assert found.selection.paths == ("out.ndjson",)
    assert len(found.selection.cases) == 1


@pytest.mark.parametrize("change", [{"status": "interrupted"}, {"dropped": 3}])
def test_an_interrupted_turn_or_lost_records_are_not_whole(recorded, change):
    """--strict is about these."""
    assert not recorded(replace(example(), **change)).is_whole


def test_damaged_lines_are_not_whole(recorded):
    """A line that cannot be read makes the trace incomplete."""
    whole = recorded(example())
    path = Path("out.ndjson")
    path.write_bytes(path.read_bytes() + b'{"type": "span", "na\n')
    found = outcome_of(Plan(trace=str(path.absolute()), traceparent=new_traceparent()), Settings(), 0)

    assert whole.is_whole
    assert not found.is_whole
    assert found.selection is not None


def test_turns_of_before_are_not_this_runs(recorded):
    """In a file that is appended to only what started since counts."""
    started_ns = example().started_ns

    assert recorded(example(), since_ns=started_ns).selection is not None
    assert recorded(example(), since_ns=started_ns + 1).selection is None


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        ("", "no Python that reads PYTHONPATH was started"),
        ("lacking\t/usr/bin/python3\t\n", "this Python (/usr/bin/python3) has no turntrace installed"),
        (
            "failed\t/p\tConfigurationError: TURNTRACE_LINGER\n",
            "did not start (ConfigurationError: TURNTRACE_LINGER)",
        ),
        ("lacking\t/launcher\t\nstarted\t/p\t\n", "no model call, tool or agent was seen"),
    ],
)
def test_the_reason_is_given_when_there_is_no_turn(recorded, notes, reason):
    """What the Pythons told decides what a person is told."""
    found = recorded(notes=notes)

    assert (found.selection, found.is_whole) == (None, False)
    assert reason in found.remarks[-1]


def test_a_command_that_failed_before_it_did_anything(recorded):
    """Its status is the likelier reason than what is instrumented."""
    (remark,) = recorded(notes="started\t/p\t\n", status=2).remarks
    assert remark.endswith("ended with status 2 before a model call, tool or agent was seen")


def test_a_program_that_was_not_instrumented_has_its_own_reason(recorded):
    """Nothing is expected of it but what it writes itself."""
    assert "nothing that the command started sent spans or wrote to" in recorded(instrument=False).remarks[-1]


def test_what_was_said_at_the_start_is_repeated(recorded):
    """Warnings that would have been printed into the agent's standard error come now."""
    assert recorded(
        example(), notes="said\t/p\tinstrumentation x did not start\nstarted\t/p\t\n"
    ).remarks == ("instrumentation x did not start",)


def test_one_reason_is_enough(recorded):
    """When nothing started, the loader's own words about that are left out."""
    assert len(recorded(notes="said\t/p\tconfiguration failed\nfailed\t/p\tOSError: no\n").remarks) == 1


def test_a_disk_that_takes_no_more_is_told(recorded, monkeypatch):
    """An error of ours after the agent's end is a line, never an exception."""

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outcome, "finish_dead", full)
    found = recorded(example())

    assert not found.is_whole
    assert "No space left" in found.remarks[0]
