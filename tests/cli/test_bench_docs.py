"""The examples in docs/bench.md, run as they stand, and its schema against a real result."""

import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from jsonschema import Draft202012Validator

from turntrace.bench.rows import Header, Row

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "bench.md").read_text()
COMMAND = f'#!/bin/sh\nexec {sys.executable} -m turntrace "$@"\n'


def as_pattern(shown):
    """A line of dots is any lines, dots in a line any text."""
    lines = (
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n"
        for line in shown.splitlines()
    )
    return "".join(lines)


def test_examples_show_what_commands_print_and_results_fit_the_schema(tmp_path):
    """All blocks in order in one folder, then every line of the files they wrote."""
    program = tmp_path / "bin" / "turntrace"
    program.parent.mkdir()
    program.write_text(COMMAND)
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
    status = 0
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            done = subprocess.run(
                ["sh", "-c", command.replace("$?", str(status))],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path, env=env, timeout=120,
            )  # fmt: skip
            status = done.returncode
            assert re.fullmatch(as_pattern(shown), done.stdout), f"{command}\n{done.stdout}"
    validator = Draft202012Validator(json.loads((DOCS / "bench.schema.json").read_text()))
    lines = [json.loads(line) for path in tmp_path.glob("*.ndjson") for line in path.read_text().splitlines()]
    assert len(lines) > 14
    for line in lines:
        validator.validate(line)


def test_the_schema_names_every_field():
    """Neither more nor less."""
    schema = json.loads((DOCS / "bench.schema.json").read_text())["$defs"]
    assert set(schema["row"]["properties"]) == {field.name for field in fields(Row)} | {"type"}
    own = {"type", "schema", "schema_version"}
    assert set(schema["header"]["properties"]) == {field.name for field in fields(Header)} | own
