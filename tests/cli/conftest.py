"""A folder with traces and a runner for commands."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from turntrace.cli.main import app
from turntrace.core.attribution import attribute
from turntrace.core.codec.encode import encode_block

MAIN = "from turntrace.cli.main import main; main()"


def with_real_ids(turn):
    """The turn with 16 hex digits for every readable id of the examples."""
    names = [turn.span_id, *(span.span_id for span in turn.spans)]
    ids = {name: name if len(name) == 16 else f"{number:016x}" for number, name in enumerate(names, start=1)}
    ids.setdefault("root", ids[turn.span_id])
    return replace(
        turn,
        span_id=ids[turn.span_id],
        trace_id=turn.trace_id or f"{1:032x}",
        spans=tuple(
            replace(one, span_id=ids[one.span_id], parent_id=ids[one.parent_id]) for one in turn.spans
        ),
        usage=tuple(replace(one, span_id=ids[one.span_id]) for one in turn.usage),
        marks=tuple(replace(one, span_id=ids[one.span_id]) for one in turn.marks),
    )


@pytest.fixture
def write_trace(tmp_path, monkeypatch):
    """Write turns to a file in the current folder, which is an empty one; return its name."""
    monkeypatch.chdir(tmp_path)
    for name in ("TURNTRACE_TRACE", "TURNTRACE_TURN", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def write(name, *turns):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            for turn in map(with_real_ids, turns):
                made = attribute(
                    turn.spans,
                    started_ns=turn.started_ns,
                    completed_ns=turn.completed_ns,
                    root_id=turn.span_id,
                )
                file.writelines(encode_block(turn, made))
        return name

    return write


@pytest.fixture
def run():
    """Run a command in this process: its result has exit_code, stdout, stderr."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def execute():
    """Run a command in a process of its own, as a person does."""

    def start(*arguments, env=None, **more):
        return subprocess.run(
            [sys.executable, "-c", MAIN, *map(str, arguments)],
            check=False,
            capture_output=True,
            env={**os.environ, **(env or {})},
            timeout=60,
            **more,
        )

    return start
