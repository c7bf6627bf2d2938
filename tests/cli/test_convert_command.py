"""``turntrace convert``: every format, where it goes, and what cannot be."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from cli.conftest import MAIN
from cli.terminal import Terminal
from report.turns import HOSTILE, example, span, turn
from turntrace.cli.convert import To
from turntrace.core.exports.span_rows import COLUMNS


@pytest.fixture
def trace(write_trace):
    """A file with two turns."""
    return write_trace(
        "run.ndjson", example(), turn([span("a", "plan", 0, 5)], 10, run_id="run-2", trace_id="2" * 32)
    )


def converted(run, trace, to):
    """What ``convert --to`` prints."""
    result = run("convert", trace, "--to", to)
    assert result.exit_code == 0, result.stderr
    return result.stdout_bytes


def figures(run, path):
    """The phases of the turns of a file, exactly."""
    return [line.split("\t")[1:] for line in run("report", path, "--format", "tsv").stdout.splitlines()]


def test_ndjson_is_written_as_it_was(run, trace, tmp_path):
    """A block that is written again is the same to the byte."""
    assert converted(run, trace, "ndjson") == (tmp_path / trace).read_bytes()


def test_otlp_json_is_reported_with_the_same_figures(run, trace, tmp_path):
    """A request a line; reading it gives the figures of the file."""
    (tmp_path / "o.jsonl").write_bytes(converted(run, trace, "otlp-json"))
    assert figures(run, "o.jsonl") == figures(run, trace)


def test_perfetto_holds_each_turn_as_a_process(run, trace):
    """One JSON document; the first turn's start is its origin."""
    document = json.loads(converted(run, trace, "perfetto"))
    assert {event["pid"] for event in document["traceEvents"]} == {1, 2}
    assert document["otherData"]["started_at_ns"] == "1796072700000000000"


def test_speedscope_holds_the_profiles_of_each_turn(run, trace):
    """Lanes, shares and critical path of both turns share their frames."""
    document = json.loads(converted(run, trace, "speedscope"))
    names = [profile["name"] for profile in document["profiles"]]
    assert names[:2] == ["demo-agent: the turn", "demo-agent: beside it 1"]
    assert names.count("demo-agent: critical path") == 2


def test_folded_stacks_are_lines(run, trace):
    """A stack and its nanoseconds."""
    assert b"demo-agent;generation 3480000000\n" in converted(run, trace, "folded")


def test_csv_has_a_row_for_each_turn_and_span(run, trace):
    """Exact nanoseconds; unknown is an empty cell."""
    rows = list(csv.DictReader(io.StringIO(converted(run, trace, "csv").decode())))
    assert list(rows[0]) == list(COLUMNS)
    assert [row["kind"] for row in rows].count("turn") == 2
    shares = sum(
        int(row["wall_share_ns"]) for row in rows if row["run_id"] == "run-1" and row["kind"] == "phase"
    )
    assert shares == 8_360_000_000
    assert rows[0]["wall_share_ns"] == ""
    assert {row["detached"] for row in rows} == {"false"}


def test_csv_runs_nothing_in_a_spreadsheet(run, write_trace):
    """A name that begins like a formula is written so that it is none."""
    name = write_trace(
        "h.ndjson", turn([span("a", "tool_execution", 0, 1, tool="=1+1", name=HOSTILE[:20])], 2)
    )
    [_, row] = csv.DictReader(io.StringIO(converted(run, name, "csv").decode()))
    assert row["tool"] == "\\x3d1+1"
    assert "\x1b" not in row["name"]


def test_parquet_is_the_same_table(run, trace):
    """What DuckDB reads of the file are the rows of the CSV, with types."""
    assert run("convert", trace, "--to", "parquet", "-o", "p.parquet").exit_code == 0
    with duckdb.connect() as database:
        found = database.sql("SELECT * FROM 'p.parquet'")
        assert dict(zip(found.columns, map(str, found.types), strict=True)) == COLUMNS
        rows = found.fetchall()
    kept = list(csv.reader(io.StringIO(converted(run, trace, "csv").decode())))[1:]
    assert [["" if v is None else str(v).lower() for v in row] for row in rows] == [
        [value.lower() for value in row] for row in kept
    ]


def test_parquet_goes_to_a_pipe_and_not_to_a_terminal(execute, trace, tmp_path):
    """Bytes may be piped; a terminal gets the way out."""
    done = execute("convert", trace, "--to", "parquet")
    assert done.stdout.startswith(b"PAR1")
    arguments = [sys.executable, "-c", MAIN, "convert", trace, "--to", "parquet"]
    with Terminal(tmp_path, *arguments) as terminal:
        assert b"PAR1" not in terminal.read_until(b"-o PATH")


def test_without_the_extra_parquet_names_it(tmp_path, trace):
    """The error says what to install."""
    (tmp_path / "duckdb.py").write_text("raise ImportError('no')\n")
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "convert", trace, "--to", "parquet", "-o", "p"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "pip install 'turntrace[query]'" in done.stderr


@pytest.mark.parametrize("to", [one for one in To if one is not To.NDJSON])
def test_errors_name_the_file(run, trace, to):
    """A folder that is not there, a file that holds no turn, a format that is unknown."""
    result = run("convert", trace, "--to", to, "-o", "no/such/file")
    assert (result.exit_code, "cannot write no/such/file" in result.stderr) == (2, True)


def test_unreadable_input_and_unknown_formats(run, trace, tmp_path):
    """Status 2, with the way out."""
    (tmp_path / "empty.ndjson").write_text("")
    assert "no turn in empty.ndjson" in run("convert", "empty.ndjson", "--to", "csv").stderr
    assert run("convert", "empty.ndjson", "--to", "csv").exit_code == 2
    result = run("convert", trace, "--to", "svg")
    assert result.exit_code == 2
    assert "perfetto" in result.stderr


def test_export_is_another_name(run, trace):
    """The name that people guess works."""
    assert run("export", trace, "--to", "folded").stdout == run("convert", trace, "--to", "folded").stdout


@pytest.mark.parametrize("to", [To.FOLDED, To.PERFETTO, To.CSV])
def test_a_conversion_of_a_damaged_file_says_what_is_missing(run, trace, to):
    """As every command that reads it: a pipeline may not take a part for the whole."""
    whole = Path(trace).read_bytes()
    Path(trace).write_bytes(whole.replace(b'"type":"span"', b'"type":', 1))
    result = run("convert", trace, "--to", to)
    assert result.exit_code == 0
    assert "run.ndjson: 2 errors, the rest is read; all of them: turntrace check run.ndjson" in result.stderr
    Path(trace).write_bytes(whole)
    assert "error" not in run("convert", trace, "--to", to).stderr


def test_a_turn_without_phases_has_no_stacks_and_that_is_said(run, write_trace):
    """Nothing is written without a word."""
    result = run("convert", write_trace("bare.ndjson", turn([], 0)), "--to", "folded")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "there are no stacks" in result.stderr
