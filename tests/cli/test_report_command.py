"""``turntrace report``: formats, choices of turns, exit statuses."""

import dataclasses
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from report.turns import MS, example, span, turn
from turntrace.report.case import examine
from turntrace.report.text import text
from turntrace.report.view import turn_view

TABLE = text(turn_view(examine(example())))


@pytest.fixture
def trace(write_trace):
    """The example as a file."""
    return write_trace("run.ndjson", example())


def test_a_file_gets_the_table_and_the_line_that_names_it(run, trace):
    """Piped: the plain table at 100 columns, the file with its spans and size, what to type next."""
    result = run("report", trace)
    assert result.exit_code == 0
    assert result.stdout.startswith(TABLE)
    named, following = result.stdout.splitlines()[-2:]
    assert re.fullmatch(r"trace  run\.ndjson +26 spans, \d+ kB", named)
    assert following.startswith("next   turntrace view run.ndjson   the same as a picture")
    assert result.stderr == ""


@pytest.mark.parametrize("arguments", [["report"], []])
def test_without_a_file_the_newest_in_the_folder_is_reported(run, write_trace, arguments):
    """`turntrace` alone and `turntrace report` alone are the report of the newest trace."""
    write_trace(".turntrace/20260101-000000-demo.ndjson", example())
    result = run(*arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith(TABLE)
    assert "trace  .turntrace/20260101-000000-demo.ndjson" in result.stdout


@pytest.mark.parametrize("arguments", [["report"], [], ["check"]])
def test_without_any_trace_the_way_to_one_is_told(run, write_trace, arguments):
    """Status 2 and the commands that make a trace."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert "turntrace run -- python agent.py" in result.stderr
    assert "turntrace demo" in result.stderr


@pytest.mark.parametrize("arguments", [["--json"], ["--format", "json"]])
def test_json(run, trace, arguments):
    """The JSON report goes to standard output."""
    [found] = json.loads(run("report", trace, *arguments).stdout)["turns"]
    assert found["wall_ns"] == 8420 * MS


@pytest.mark.parametrize(
    ("output_format", "start"),
    [
        ("markdown", "### `demo-agent`"),
        ("github", "### `demo-agent`"),
        ("tsv", "run_id\tphase\t"),
        ("text", "demo-agent · "),
    ],
)
def test_other_formats(run, trace, output_format, start):
    """Each format on standard output, and the same bytes in a file."""
    shown = run("report", trace, "--format", output_format).stdout
    assert shown.startswith(start)
    assert run("report", trace, "--format", output_format, "-o", "out").exit_code == 0
    assert Path("out").read_text() == shown


def test_an_unknown_format_names_those_that_exist(run, trace):
    """A usage error, and the way out in it."""
    result = run("report", trace, "--format", "html")
    assert result.exit_code == 2
    for known in ("text", "markdown", "tsv", "json"):
        assert known in result.stderr


@pytest.mark.parametrize(
    ("by", "heading"),
    [
        ("phase", "WHERE THE TURN WENT"),
        ("round", "BY ROUND"),
        ("tool", "BY TOOL"),
        ("model", "BY MODEL"),
        ("span", "BY SPAN"),
    ],
)
def test_by(run, trace, by, heading):
    """--by chooses what a row is."""
    assert f"\n{heading} " in run("report", trace, "--by", by).stdout


def test_tree_and_critical_path(run, trace):
    """The details of a turn, alone or together."""
    both = run("report", trace, "--tree", "--critical-path").stdout
    assert "\nTREE " in both
    assert "\nCRITICAL PATH " in both
    assert "WHERE" not in both
    assert "CRITICAL" not in run("report", trace, "--tree").stdout


def three():
    """Three turns of different length, no session."""
    spans = [span("g", "generation", 0, 50)]
    return [turn(spans, wall, run_id=f"run-{wall}", span_id=f"{wall:016x}") for wall in (100, 300, 200)]


def test_many_turns_name_the_command_that_opens_each(run, write_trace):
    """The slowest come with a command that can be pasted, quoted where needed."""
    trace = write_trace("my run.ndjson", *three())
    out = run("report", trace).stdout
    assert "WHERE THE TURNS WENT" in out
    assert "turntrace report 'my run.ndjson' --turn 2" in out
    assert "--turn 3" not in run("report", trace, "--top", "1").stdout


@pytest.mark.parametrize("wanted", ["2", "slowest", "run-300", "run-3", f"{300:016x}"])
def test_one_turn_by_number_id_or_slowest(run, write_trace, wanted):
    """A number counts from 1 in the order of the file; an id may be cut."""
    out = run("report", write_trace("f.ndjson", *three()), "--turn", wanted).stdout
    assert "0.300 s wall" in out


@pytest.mark.parametrize(
    ("wanted", "problem"), [("4", "no turn matches"), ("run-", "several turns match"), ("0", "no turn")]
)
def test_a_turn_that_is_not_there(run, write_trace, wanted, problem):
    """Status 2 with what would work."""
    result = run("report", write_trace("f.ndjson", *three()), "--turn", wanted)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert "use 1 to 3" in result.stderr


def test_of_one_turn_there_is_only_the_first(run, write_trace):
    """No range where there is one number."""
    result = run("report", write_trace("f.ndjson", example()), "--turn", "2")
    assert result.stderr == "turntrace: no turn matches --turn 2; use 1, slowest, or a run id\n"


def test_a_session_is_shown_turn_by_turn(run, write_trace):
    """One session id, one turn after another."""
    later = dataclasses.replace(
        example(run_id="run-2"),
        started_ns=example().completed_ns,
        completed_ns=example().completed_ns + 5 * MS,
        spans=(),
        usage=(),
        marks=(),
    )
    out = run("report", write_trace("f.ndjson", example(), later)).stdout
    assert "TURN BY TURN" in out


def test_details_of_many_turns_follow_each_other(run, write_trace):
    """--tree of three turns prints three trees."""
    trace = write_trace("f.ndjson", *three())
    assert run("report", trace, "--tree").stdout.count("TREE") == 3
    assert run("report", trace, "--by", "round").stdout.count("BY ROUND") == 3


def test_a_file_that_is_not_there(run, write_trace):
    """Status 2, and the file is named."""
    result = run("report", "missing.ndjson")
    assert result.exit_code == 2
    assert "missing.ndjson" in result.stderr


def test_a_file_without_a_turn(run, write_trace):
    """Status 2 with the first thing that is wrong and where."""
    result = run("report", write_trace("empty.ndjson"))
    assert result.exit_code == 2
    assert result.stderr == "turntrace: no turn in empty.ndjson: empty, the input has no lines\n"
    Path("noise.ndjson").write_text("\nnoise\n")
    assert (
        "no turn in noise.ndjson: no trace is found in it; turntrace reads"
        in run("report", "noise.ndjson").stderr
    )


def test_a_trace_of_other_spans_only(run, write_trace):
    """OTLP without anything that is a turn: status 2, and nothing is invented."""
    write_trace("x")
    Path("o.json").write_text('{"resourceSpans":[]}')
    result = run("report", "o.json")
    assert result.exit_code == 2
    assert result.stderr == "turntrace: no turn in o.json\n"


def test_damaged_lines_are_told_on_standard_error(run, trace):
    """What can be read is reported; the damage is named with the command that lists it."""
    with Path(trace).open("ab") as file:
        file.write(b"garbage\n")
    result = run("report", trace)
    assert result.exit_code == 0
    assert result.stdout.startswith("demo-agent")
    assert "run.ndjson: 1 error, the rest is read; all of them: turntrace check run.ndjson" in result.stderr
    assert "warnings · 1 x bad_json_line" in result.stdout
    [found] = json.loads(run("report", trace, "--json").stdout)["turns"]
    assert [one["code"] for one in found["warnings"]] == ["bad_json_line"]


def test_what_is_only_noted_is_not_told(run):
    """A line of an unknown type is no damage."""
    sample = Path(__file__).parents[1] / "data" / "ndjson" / "valid_unknown_type.ndjson"
    result = run("report", sample)
    assert result.exit_code == 0
    assert result.stderr == ""


def test_several_files_are_one_report(run, write_trace):
    """The turns of all files together; no single file is named at the end."""
    one, two, _ = three()
    out = run("report", write_trace("a.ndjson", one), write_trace("b.ndjson", two)).stdout
    assert "2 turns" in out
    assert "turntrace report a.ndjson b.ndjson --turn 2" in out
    assert "trace  " not in out


def test_standard_input_is_a_file_too(execute, trace):
    """A dash reads standard input; it has no size to tell."""
    result = execute("report", "-", input=Path(trace).read_bytes())
    assert result.returncode == 0
    assert result.stdout.decode().endswith("trace  -   26 spans\n")


def test_an_output_that_cannot_be_written(run, trace):
    """Status 2, and the path is named."""
    result = run("report", trace, "--json", "-o", "no/such/folder/out.json")
    assert result.exit_code == 2
    assert "cannot write no/such/folder/out.json" in result.stderr


def test_agents_inside_a_turn_are_listed_below_it(run, trace, monkeypatch):
    """A nested turn has its own line and its own report by id, and is counted in the outer one only."""
    outer = example()
    inner = turn([], 1000, run_id="inner", parent_run_id="run-1", agent="researcher")

    found = SimpleNamespace(turns=[outer, inner], issues=[])
    monkeypatch.setattr("turntrace.cli.selection.read_paths", lambda *_, **__: found)
    out = run("report", trace).stdout
    assert "AGENTS INSIDE IT" in out
    assert "\nresearcher " in out
    assert "26 spans" in out
    assert run("report", trace, "--turn", "inner").stdout.startswith("researcher")
    assert len(json.loads(run("report", trace, "--json").stdout)["turns"]) == 2


@pytest.fixture
def server_trace(write_trace):
    """OTLP JSON of two server spans around model calls."""
    write_trace("x")
    spans = []
    for number, path in enumerate(["/chat", "/other"], start=1):
        shared = {
            "traceId": f"{number:032x}",
            "startTimeUnixNano": "1000000000",
            "endTimeUnixNano": "3000000000",
        }
        server = {"spanId": f"{number:016x}", "name": f"POST {path}", "kind": 2}
        server["attributes"] = [{"key": "http.route", "value": {"stringValue": path}}]
        call = {
            "spanId": f"{number + 10:016x}",
            "parentSpanId": server["spanId"],
            "name": "chat m",
            "kind": 3,
        }
        call["attributes"] = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
        spans += [{**shared, **server}, {**shared, **call}]
    Path("o.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    return "o.json"


@pytest.mark.parametrize("rule", ["name=POST /chat", "http.route=/chat"])
@pytest.mark.parametrize("source", ["option", "environment"])
def test_a_rule_chooses_what_a_turn_is(run, server_trace, monkeypatch, rule, source):
    """--turn NAME=VALUE and TURNTRACE_TURN name the turn's root by span name or attribute."""
    arguments = ["--turn", rule] if source == "option" else []
    if source == "environment":
        monkeypatch.setenv("TURNTRACE_TURN", rule)
    turns = json.loads(run("report", server_trace, "--json", *arguments).stdout)["turns"]
    assert ("rule", "POST /chat") in [(one["turn_source"], one["root"]["name"]) for one in turns]
    assert ("rule", "POST /other") not in [(one["turn_source"], one["root"]["name"]) for one in turns]


@pytest.mark.parametrize("rule", ["POST /chat", "=x"])
def test_a_rule_that_is_none(run, server_trace, monkeypatch, rule):
    """Status 2 with how to write one."""
    monkeypatch.setenv("TURNTRACE_TURN", rule)
    result = run("report", server_trace)
    assert result.exit_code == 2
    assert "write NAME=VALUE" in result.stderr
