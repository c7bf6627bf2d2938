"""``report A B --beside`` in each format: the same figures, no verdict."""

import dataclasses
import json
from pathlib import Path

import jsonschema
import pytest

from report.turns import example, span, turn
from turntrace.report.strings import UNKNOWN

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "beside.schema.json").read_text())


@pytest.fixture
def two(write_trace):
    """A file with two turns of the example, and one with a slower turn and one that never ended."""
    before = write_trace("before.ndjson", example(), example(run_id="run-2", trace_id="2" * 32))
    slow = turn([span("g", "generation", 0, 5000), span("x", "tool_execution", 5000, 5600, tool="new")], 6000)
    torn = dataclasses.replace(slow, run_id="t", trace_id="3" * 32, completed_ns=None, status="interrupted")
    return before, write_trace("after.ndjson", slow, torn)


def test_the_text(run, two):
    """Rows as phases, then the whole turn, then counts; differences are those of the printed figures."""
    lines = run("report", *two, "--beside").stdout.splitlines()
    assert lines[0].startswith("before.ndjson beside after.ndjson")
    assert lines[1] == "a: before.ndjson, 2 turns · b: after.ndjson, 2 turns, 1 unfinished left out"
    found = {line.split("  ")[0].strip() or line.split()[0]: line.split() for line in lines[3:] if line}
    assert found["generation"][-6:] == ["3.480", "5.000", "+1.520", "+43.7", "8", "1"]
    assert found["new"][-6:] == ["0.000", "0.600", "+0.600", UNKNOWN, "0", "1"]
    assert found["whole turn"][-4:] == ["8.420", "6.000", "-2.420", "-28.7"]
    assert found["first token"][-4:] == ["0.310", UNKNOWN, UNKNOWN, UNKNOWN]
    assert found["tokens in"][-4:] == ["18,240", UNKNOWN, UNKNOWN, UNKNOWN]
    assert "verdict" in lines[0]


def test_markdown_has_the_cells_of_the_text(run, two):
    """Each figure of the text stands in the Markdown."""
    text = run("report", *two, "--beside").stdout
    markdown = run("report", *two, "--beside", "--format", "markdown").stdout
    for line in text.splitlines()[3:]:
        for word in line.split():
            assert word.lower() in markdown.lower().replace("\\", "")


def test_the_json_is_exact_and_has_a_schema(run, two):
    """Nanoseconds, null for unknown, valid by what is published."""
    document = json.loads(run("report", *two, "--beside", "--json").stdout)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    [generation] = [row for row in document["phases"] if row["phase"] == "generation"]
    assert generation["difference_ns"] == 1_520_000_000
    assert document["first_token"]["b"]["median_ns"] is None
    assert document["b"] == {"path": "after.ndjson", "turns": 2, "ended": 1}


def test_without_the_flag_both_are_pooled(run, two):
    """Two files are one lot of turns unless they are to stand beside each other."""
    assert "4 turns" in run("report", *two).stdout


@pytest.mark.parametrize("arguments", [["a"], ["a", "b", "c"], [], ["a", "b", "--format", "tsv"]])
def test_it_takes_two_files(run, arguments):
    """Anything else is said before a file is read."""
    result = run("report", *arguments, "--beside")
    assert (result.exit_code, "takes two files" in result.stderr) == (2, True)
