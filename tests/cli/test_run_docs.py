"""The examples in docs/run.md, run as they stand."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from turntrace.config import OWN_VARIABLES

TEXT = (Path(__file__).parents[2] / "docs" / "run.md").read_text()
COMMAND = f'#!/bin/sh\nexec {sys.executable} -m turntrace "$@"\n'


def examples():
    """The commands of each console block, with what is shown below them."""
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        yield [part.partition("\n")[::2] for part in parts]


def as_pattern(shown):
    """An expression in which a line of dots is any lines, and dots at the end of a line any text."""
    lines = (
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n"
        for line in shown.splitlines()
    )
    return "".join(lines)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Run a command as a shell would: both outputs together, and the status for the next command."""
    monkeypatch.chdir(tmp_path)
    command = tmp_path / "bin" / "turntrace"
    command.parent.mkdir()
    command.write_text(COMMAND)
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    for program in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        Path(re.match(r"# (\S+\.py):", program)[1]).write_text(program)
    path = os.pathsep.join([str(command.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    status = 0

    def execute(line):
        nonlocal status
        text = line.replace("$?", str(status))
        done = subprocess.run(
            ["sh", "-c", text],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            env={**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"},
        )
        status = done.returncode
        return done.stdout

    return execute


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example[0][0])
def test_an_example_shows_what_the_command_prints(shell, example):
    """Each example of the documentation gives exactly what the documentation shows."""
    for command, shown in example:
        if "/usr/bin/python3" in command and not Path("/usr/bin/python3").exists():
            pytest.skip("needs a Python of the system")
        printed = shell(command)
        assert re.fullmatch(as_pattern(shown), printed), printed


def test_every_variable_is_in_the_table():
    """Each variable of ours has its row."""
    for name in OWN_VARIABLES:
        assert f"\n| {name} | " in TEXT
