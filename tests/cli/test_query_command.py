"""``turntrace query``: what is asked, how the answer is written, and what is said where there is none."""

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
from turntrace.report.strings import UNKNOWN

SQL = "SELECT run_id, wall_ns, coverage, first_token_ns, wall_ns > 0 AS is_long FROM turns ORDER BY 1"


@pytest.fixture
def trace(write_trace):
    """A file with two turns."""
    return write_trace(
        "run.ndjson", example(), turn([span("a", "plan", 0, 5)], 10, run_id="run-2", trace_id="2" * 32)
    )


def printed(run, *arguments):
    """What the command prints."""
    result = run("query", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_a_table_aligns_numbers_and_shows_the_unknown(run, trace):
    """Thousands are separated, decimals are even, unknown is a dash."""
    lines = printed(run, SQL, trace).splitlines()
    assert lines[0].split() == ["run_id", "wall_ns", "coverage", "first_token_ns", "is_long"]
    assert lines[1].split()[:2] == ["run-1", "8,420,000,000"]
    assert lines[2].split() == ["run-2", "10,000,000", lines[2].split()[2], UNKNOWN, "true"]
    assert len(lines[1].split()[2]) == len(lines[2].split()[2])


def test_json_csv_and_parquet_hold_the_same(run, trace):
    """One document, lines, or a file with types."""
    document = json.loads(printed(run, SQL, trace, "--json"))
    assert document["schema"] == 1
    assert document["rows"][1]["first_token_ns"] is None
    rows = list(csv.reader(io.StringIO(printed(run, SQL, trace, "--format", "csv"))))
    assert rows[0] == document["columns"]
    assert rows[2] == ["run-2", "10000000", "0.5", "", "true"]
    assert printed(run, SQL, trace, "--format", "parquet", "-o", "o.parquet") == ""
    with duckdb.connect() as database:
        found = [list(row) for row in database.execute("FROM 'o.parquet'").fetchall()]
    assert found == [list(row.values()) for row in document["rows"]]


def test_values_of_other_types_are_text(run, trace):
    """Lists and structs stay what they are in JSON; times and the like are text."""
    sql = "SELECT [1, 2] AS a, {'k': started_at} AS b, 1e300 AS c, DATE '2026-01-02' AS d FROM turns LIMIT 1"
    [row] = json.loads(printed(run, sql, trace, "--json"))["rows"]
    assert row["a"] == [1, 2]
    assert row["b"]["k"].startswith("2026-")
    assert (row["c"], row["d"]) == (1e300, "2026-01-02")
    assert "1e+300" in printed(run, sql, trace)


def test_names_from_data_cannot_act(run, write_trace):
    """Neither on a terminal nor in a spreadsheet."""
    name = write_trace("h.ndjson", turn([], 1, agent="=1+1" + HOSTILE.replace("\ud800", "")))
    assert "\x1b" not in printed(run, "SELECT agent FROM turns", name)
    assert "\n=" not in printed(run, "SELECT agent FROM turns", name, "--format", "csv")


def test_named_queries_take_parameters(run, trace):
    """Each is a number of the query's own."""
    rows = json.loads(printed(run, "--name", "slowest-turns", "--param", "top=1", trace, "--json"))["rows"]
    assert [row["run_id"] for row in rows] == ["run-1"]
    listed = printed(run, "--list")
    assert "--param days=7 --param top=30" in listed


def test_folders_and_the_default(run, trace, tmp_path):
    """A folder means the traces in it; without files .turntrace is meant."""
    count = "SELECT count(*) AS n FROM turns"
    assert json.loads(printed(run, count, tmp_path, "--json"))["rows"] == [{"n": 2}]
    result = run("query", count)
    assert (result.exit_code, "no trace in .turntrace" in result.stderr) == (2, True)
    Path(".turntrace").mkdir()
    Path(".turntrace/a.ndjson").write_bytes(Path(trace).read_bytes())
    assert json.loads(printed(run, count, "--json"))["rows"] == [{"n": 2}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give SQL, or --name with one of: top-phases"),
        (("SELECT 1", "--param", "a=1"), "give SQL, or --name"),
        (("--name", "nope"), "no query is named nope; there are: top-phases"),
        (("--name", "top-phases", "--param", "top=x"), "top is a number, not x"),
        (("--name", "top-phases", "--param", "size=1"), "no parameter size=1; it has: days=7, top=30"),
        (("SELECT nope FROM turns", "run.ndjson"), 'column "nope" not found'),
        (("COPY turns TO 'x.csv'", "run.ndjson"), "--allow-external"),
        (("SELECT 1", "gone.ndjson"), "gone.ndjson"),
        (("SELECT 1", "run.ndjson", "--format", "parquet", "-o", "no/such/x"), "cannot write no/such/x"),
    ],
)
@pytest.mark.usefixtures("trace")
def test_errors_name_the_way_out(run, arguments, said):
    """Status 2 and one line."""
    result = run("query", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_sql_may_touch_files_when_asked(run, trace):
    """With --allow-external COPY writes."""
    printed(run, "COPY turns TO 'x.csv'", trace, "--allow-external")
    assert "run-2" in Path("x.csv").read_text()


def test_issues_are_said(run, trace):
    """How many, and which command shows them."""
    Path("cut.ndjson").write_bytes(Path(trace).read_bytes()[:-20])
    assert (
        "issues in the files; see them with: turntrace check"
        in run("query", "SELECT 1 FROM turns", "cut.ndjson").stderr
    )


def test_an_answer_goes_to_a_file(run, trace):
    """-o writes the table too."""
    assert printed(run, SQL, trace, "-o", "answer.txt") == ""
    assert Path("answer.txt").read_text().startswith("run_id")


def test_progress_is_for_terminals(trace, tmp_path, execute):
    """A bar while files are read, on a terminal's standard error; nothing where it is piped."""
    Path("b.ndjson").write_bytes(Path(trace).read_bytes())
    arguments = ["query", "SELECT count(*) AS n FROM turns", trace, "b.ndjson"]
    assert execute(*arguments).stderr == b""
    with Terminal(tmp_path, sys.executable, "-c", MAIN, *arguments) as terminal:
        assert b"reading" in terminal.read_until(b"4\r\n")


def test_parquet_is_not_for_a_terminal(trace, tmp_path, execute):
    """It may be piped."""
    arguments = ["query", SQL, trace, "--format", "parquet"]
    assert execute(*arguments).stdout.startswith(b"PAR1")
    with Terminal(tmp_path, sys.executable, "-c", MAIN, *arguments) as terminal:
        assert b"-o PATH" in terminal.read_until(b"-o PATH")


def test_without_the_extra_the_error_names_it(tmp_path, trace):
    """The command is there; what it needs is said."""
    (tmp_path / "duckdb.py").write_text("raise ImportError('no')\n")
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "query", "SELECT 1", trace],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "pip install 'turntrace[query]'" in done.stderr


def test_names_are_completed():
    """The shell completes the names of queries."""
    from turntrace.cli.query import _names

    assert [name for name, _ in _names("to")] == ["top-phases", "tokens-by-model"]


def test_a_question_that_fails_leaves_the_file_as_it_was(run, trace):
    """Nothing is emptied for an answer that never came."""
    Path("kept").write_text("before")
    for form in ("parquet", "csv", "json"):
        assert run("query", "SELECT nope FROM turns", trace, "--format", form, "-o", "kept").exit_code == 2
    assert Path("kept").read_text() == "before"
