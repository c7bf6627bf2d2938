"""The examples in docs/cli.md, run as they stand."""

import re
import shlex
from pathlib import Path

import pytest

from report.turns import example, span, turn

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "data" / "ndjson"
TEXT = (ROOT / "docs" / "cli.md").read_text()


def examples():
    """The commands of all console blocks with the output that is shown below each."""
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def as_pattern(shown):
    """The shown output as an expression in which a line of three dots is any number of lines."""
    lines = [r"(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown.splitlines()]
    return "".join(lines)


@pytest.fixture
def traces(write_trace):
    """The files that the examples read."""
    write_trace("run.ndjson", example())
    for name, sample in (
        ("good.ndjson", "valid_full.ndjson"),
        ("damaged.ndjson", "weak_truncated_middle.ndjson"),
    ):
        Path(name).write_bytes((SAMPLES / sample).read_bytes())
    turns = [turn([span("g", "generation", 0, 50)], wall, run_id=f"run-{wall}") for wall in (100, 300, 200)]
    write_trace("many.ndjson", *turns)


@pytest.mark.parametrize(("command", "shown"), list(examples()), ids=[command for command, _ in examples()])
@pytest.mark.usefixtures("traces")
def test_an_example_shows_what_the_command_prints(run, command, shown):
    """Each example of the documentation gives exactly what the documentation shows."""
    program, *arguments = shlex.split(command)
    assert program == "turntrace"
    result = run(*arguments)
    assert result.exit_code in {0, 1}
    assert re.fullmatch(as_pattern(shown), result.stdout), result.stdout


def test_every_command_is_documented(run):
    """Each command has its section."""
    from turntrace.cli.main import app

    for name in (command.name for command in app.registered_commands):
        assert f"\n## {name}\n" in TEXT
