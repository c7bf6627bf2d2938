"""What a command is before it is started."""

import sys
from pathlib import Path

import pytest

from turntrace.cli.launch import interpreter_of, name_of, recognised


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of executables that is the whole PATH; ``folder(name, text)`` writes one."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("#!/usr/bin/python3\n", "/usr/bin/python3"),
        ("#!/opt/pypy3.11\n", "/opt/pypy3.11"),
        ("#! /usr/bin/python3.13t -u\n", "/usr/bin/python3.13t"),
        ("#!/usr/bin/env python3\n", "python3"),
        ("#!/usr/bin/env -S A=1 python3 -u\n", "python3"),
        ("#!/bin/sh\n'''exec' \"/a long/path/python3\" \"$0\" \"$@\"\n' '''\n", "/a long/path/python3"),
        ("#!/bin/sh\n'''exec' /path/python3 \"$0\" \"$@\"\n", "/path/python3"),
        ("#!/bin/sh\nexec python3 agent.py\n", None),
        ("#!/usr/bin/env\n", None),
        ("#!\n", None),
        ("#!/usr/bin/node\n", None),
        ("#!/usr/bin/python3-config\n", None),
        ("no first line python3\n", None),
        ("", None),
    ],
)
def test_a_script_is_python_when_its_first_line_says_so(folder, text, python):
    """The interpreter is the one that the kernel, env or an installer's trampoline would start."""
    command = recognised([folder("my-agent", text), "--go"])

    assert command.python == python
    assert command.can_record is (python is not None)
    assert not command.is_launcher
    assert name_of(command) == "my-agent"


def test_a_binary_is_not_taken_for_text(folder, tmp_path):
    """Bytes that are no text are no first line."""
    path = Path(folder("program", ""))
    path.write_bytes(b"\x7fELF\xff\xfe")

    assert recognised(["program"]).python is None


def test_the_interpreter_itself_is_python(folder, tmp_path):
    """By its own name, or as a link of another name to it."""
    (tmp_path / "run-it").symlink_to(sys.executable)
    direct = recognised([sys.executable, "agent.py"])

    assert (direct.python, direct.is_launcher) == (sys.executable, False)
    assert interpreter_of(tmp_path / "run-it") == str(tmp_path / "run-it")


def test_a_file_that_cannot_be_read_is_no_script(tmp_path):
    """A folder or an unreadable file is another program."""
    assert interpreter_of(tmp_path) is None


def test_a_python_that_is_a_script_leads_on(folder):
    """A wrapper called python starts the real one, which is the agent."""
    folder("python", "#!/bin/sh\n/usr/bin/python3 $@\n")

    assert recognised(["python", "agent.py"]).is_launcher


def test_version_managers_lead_on(folder, tmp_path):
    """Their small scripts for any program start the real one."""
    shim = folder("shims/my-agent", "#!/bin/bash\nexec pyenv exec my-agent\n")

    assert recognised([shim]).can_record


@pytest.mark.parametrize(
    "words", [["uv", "run", "agent.py"], ["poetry", "run", "agent"], ["env", "A=1", "python", "agent.py"]]
)
def test_launchers_lead_on(folder, words):
    """A launcher can end in a Python, whatever it is written in."""
    folder(words[0], "#!/usr/bin/python3\n")

    assert recognised(words).is_launcher
    assert name_of(recognised(words)) == "agent"


def test_a_launcher_run_as_a_module_leads_on():
    """`python -m poetry run` is not the agent."""
    assert recognised([sys.executable, "-m", "poetry", "run", "bot"]).is_launcher


def test_other_programs_and_missing_ones_are_not_recorded(folder):
    """A program that is no Python gets no instrumentation; one that is not there neither."""
    folder("claude", "#!/usr/bin/env node\n")

    assert not recognised(["claude", "-p", "do it"]).can_record
    assert recognised(["claude", "-p", "do it"]).path is not None
    assert recognised(["nothing"]).path is None


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([sys.executable], "python"),
        ([sys.executable, "-c", "pass"], "python"),
        ([sys.executable, "/a/my_agent.py"], "my_agent"),
        ([sys.executable, "-m", "pkg.bot"], "bot"),
        (["./agent.py", "x"], "agent"),
        (["claude", "-p", "python agent.py"], "claude"),
        (["uv", "run", "--with", "httpx", "python", "-m", "pkg.bot"], "bot"),
        (["poetry", "run", "my-agent", "--fast"], "my-agent"),
        (["env", "A=1", "timeout", "10", "my-agent"], "my-agent"),
        (["uv"], "uv"),
        (["uv", "run", "python"], "uv"),
    ],
)
def test_an_agent_is_called_after_its_script_or_module(words, name):
    """The name is what a person would call the agent, not the interpreter or the launcher."""
    assert name_of(recognised(words)) == name
