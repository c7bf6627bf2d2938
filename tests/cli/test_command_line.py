"""The command line as a whole: help, aliases, suggestions, terminals, colours, versions."""

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from report.turns import example
from turntrace.cli import output
from turntrace.cli.main import ALIASES, app, main
from turntrace.version import VERSION

COMMANDS = sorted(get_command(app).commands)


def test_help_shows_panels_and_only_what_exists(run):
    """Commands stand in their panels in order; none is listed that cannot be run."""
    shown = run("--help").stdout
    panels = re.findall(r"─ (Look|Record|Compare|Files) ─", shown)
    assert panels == [name for name in ("Look", "Record", "Compare", "Files") if name in panels]
    assert {"Look", "Files"} <= set(panels)
    listed = {line[1:].split()[0] for line in shown.splitlines() if re.match(r"│ [a-z]", line)}
    assert listed == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(run, command):
    """The help of a command is its docstring, with commands to paste."""
    for option in ("--help", "-h"):
        result = run(command, option)
        assert result.exit_code == 0
        assert "For example:" in result.stdout
        assert f"  turntrace {command}" in result.stdout


@pytest.mark.parametrize(("wrong", "right"), [("reports", "report"), ("checks", "check"), ("demos", "demo")])
def test_an_unknown_command_suggests_the_nearest(run, wrong, right):
    """Status 2 and the name that was meant."""
    result = run(wrong)
    assert result.exit_code == 2
    assert right in result.stderr


def test_a_file_where_a_command_stands_is_told_the_command(run, write_trace):
    """Status 2, and what to type to see that file; a command's name stays the command's."""
    name = write_trace("my run.ndjson", example())
    result = run(name)
    assert result.exit_code == 2
    assert result.stderr == (
        "turntrace: my run.ndjson is a file, not a command; write turntrace report 'my run.ndjson'\n"
    )
    Path("doctor").write_text("")
    assert "is a file" not in run("doctor").stderr


def test_aliases(run):
    """A guessed name runs the command it means; the command does not appear twice in the help."""
    assert ALIASES == {"export": "convert", "diff": "compare", "watch": "tail", "validate": "check"}
    assert "Validate trace files" in run("validate", "--help").stdout
    assert "validate" not in run("--help").stdout
    assert run("export").exit_code == 2 or "convert" in COMMANDS


def test_the_version(run):
    """--version prints it and nothing else."""
    assert run("--version").stdout == f"turntrace {VERSION}\n"


def test_an_unknown_option_is_a_usage_error(run):
    """Status 2, as for every wrong use."""
    assert run("report", "--no-such-option").exit_code == 2


def test_shell_completion_is_offered(run):
    """The usual two options install and show it."""
    shown = run("--help").stdout
    assert "--install-completion" in shown
    assert "--show-completion" in shown


def on_a_terminal(arguments, **env):
    """What a command prints on a terminal of 100 columns."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from turntrace.cli.main import main; main()", *arguments],
        stdout=follower,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "100", "TERM": "xterm-256color", **env},
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_gets_bars_and_colours(write_trace):
    """On a terminal the table has bars and escape sequences."""
    shown = on_a_terminal(["report", write_trace("run.ndjson", example())])
    assert "██████████▎" in shown
    assert "\x1b[1m" in shown
    assert "\x1b[34m██████████▎" in shown  # the model's
    assert "\x1b[35m███▌" in shown  # the person's


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_is_honoured(write_trace, env):
    """With NO_COLOR or on a dumb terminal there are bars and no escape sequence."""
    shown = on_a_terminal(["report", write_trace("run.ndjson", example())], **env)
    assert "██████████▎" in shown
    assert "\x1b" not in shown


def test_piped_there_are_neither_bars_nor_colours(execute, write_trace):
    """In a pipe: the same rows, plain, even where FORCE_COLOR is set for other tools."""
    result = execute("report", write_trace("run.ndjson", example()), env={"FORCE_COLOR": "1"})
    assert result.returncode == 0
    assert b"\x1b" not in result.stdout
    assert "█".encode() not in result.stdout
    assert (
        b"generation                        3.480   41.3       4   3.480      3.480   61 tokens/s"
        in result.stdout
    )


def test_an_output_that_cannot_hold_a_character(execute, write_trace):
    """An ASCII pipe gets question marks, not a traceback."""
    result = execute("report", write_trace("run.ndjson", example()), env={"PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0
    assert result.stdout.startswith(b"demo-agent ? gpt-demo ? ok")


def test_errors_are_one_line_without_a_traceback(execute, write_trace):
    """A person sees what is wrong and nothing of the program; control characters are escaped."""
    write_trace("run.ndjson")
    result = execute("report", "no\x1b[31m.ndjson")
    assert result.returncode == 2
    assert result.stdout == b""
    assert b"Traceback" not in result.stderr
    assert b"\x1b" not in result.stderr
    assert result.stderr.startswith(b"turntrace: ")


def test_main_survives_streams_that_cannot_be_reconfigured(monkeypatch):
    """Replaced standard streams need not be text files of a process."""
    monkeypatch.setattr(sys, "argv", ["turntrace", "--version"])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0


def test_write_to_standard_output_and_dash(capfdbinary):
    """None and a dash are standard output."""
    output.write([b"a", b"b"], None)
    output.write([b"c"], "-")
    assert capfdbinary.readouterr().out == b"abc"
