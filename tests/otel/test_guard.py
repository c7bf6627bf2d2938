"""The guard: errors of ours are said once, without what they quote, and counted."""

import errno

from turntrace.otel.guard import Guard


def test_an_error_is_said_once_for_each_cause_and_place(caplog):
    """The class is told, never the message, which may quote the user's data."""
    guard = Guard()
    for where in ("on_start", "on_start", "on_end"):
        guard.caught(where, ValueError("secret"))
    guard.caught("on_end", KeyError("secret"))
    assert [record.getMessage() for record in caplog.records] == [
        "turntrace lost a record in on_start: ValueError",
        "turntrace lost a record in on_end: ValueError",
        "turntrace lost a record in on_end: KeyError",
    ]
    assert {record.name for record in caplog.records} == {"turntrace"}
    assert guard.dropped == {"error": 4}


def test_drops_are_counted_by_reason():
    """What is left out on purpose is a number, not a line."""
    guard = Guard()
    guard.drop("late")
    guard.drop("late", 2)
    guard.drop("content")
    assert guard.dropped == {"late": 3, "content": 1}


def test_a_line_is_said_once(capsys):
    """The same words are not repeated; others are."""
    guard = Guard()
    for line in ("a", "a", "b"):
        guard.say(line)
    assert capsys.readouterr().err == "turntrace: a\nturntrace: b\n"


def test_a_file_that_takes_no_more_is_said_once_and_counted(capsys):
    """The first failed write is one line for people, the rest is the number of lines lost."""
    guard = Guard()
    for path in ("x.ndjson", "x.ndjson", "y.ndjson"):
        guard.lost(path, OSError(errno.ENOSPC, "No space left on device"), 5)
    assert capsys.readouterr().err == (
        "turntrace: cannot write x.ndjson: No space left on device; the agent goes on\n"
        "turntrace: cannot write y.ndjson: No space left on device; the agent goes on\n"
    )
    assert guard.dropped == {"write_failed": 15}
