"""docs/collect.md, run as it stands."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from otlp_receiver import refused_endpoint
from turntrace.collect.gathering import Waits
from turntrace.collect.limits import Limits
from turntrace.collect.spool import SpoolBounds

TEXT = (Path(__file__).parents[2] / "docs" / "collect.md").read_text()
COMMAND = f'#!/bin/sh\nexec {sys.executable} -m turntrace "$@"\n'


@pytest.fixture
def folder(tmp_path):
    """A folder with the agent, and with the command on the path."""
    command = tmp_path / "bin" / "turntrace"
    command.parent.mkdir()
    command.write_text(COMMAND)
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "agent.py").write_text(blocks("python")[0])
    return tmp_path


def blocks(language):
    """The fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def as_pattern(shown):
    """An expression in which a line of dots is any lines, and dots at the end of a line any text."""
    return "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n"
        for line in shown.splitlines()
    )


@pytest.mark.parametrize("block", blocks("console"))
def test_the_example_prints_what_is_shown(folder, block):
    """The commands of a block, one shell, with another port; what all of them print is what stands there."""
    block = block.replace("4318", refused_endpoint().rpartition(":")[2])
    parts = [part.partition("\n")[::2] for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    waits = {command: "; sleep 4" if command.endswith("&") else "" for command, _ in parts}
    script = "\n".join(f"{command}\n{waits[command].lstrip('; ')}" for command, _ in parts)
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert re.fullmatch("".join(as_pattern(shown) for _, shown in parts), done.stdout), done.stdout


@pytest.mark.parametrize("code", blocks("python")[1:])
def test_the_programs_run(tmp_path, code):
    """The other python blocks end well."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "{}\n"), done.stderr


def test_the_figures_are_the_bounds():
    """The numbers in the text are those of the code."""
    limits, waits, bounds = Limits(), Waits(), SpoolBounds()
    for figure in (
        f"{limits.request_bytes >> 20} MiB",
        f"{limits.memory_bytes >> 20} MiB",
        f"JSON larger than {limits.json_bytes >> 20} MiB",
        f"{limits.messages:,} messages",
        f"{limits.requests_per_s:,} requests a second",
        f"{limits.head_s:g} s for the head",
        f"longer than {limits.request_s:g} s",
        f"idle for {limits.idle_s:g} s",
        f"{limits.connections} connections",
        f"{limits.streams} calls at once",
        f"{limits.attributes:,} a span",
        f"{waits.idle_s / 60:g} minutes",
        f"{waits.remote_s:g} seconds",
        f"{waits.max_spans:,} spans",
        f"{waits.max_bytes >> 20} MiB of them",
        f"{bounds.max_bytes >> 30} GiB",
    ):
        assert figure in TEXT, figure
