"""``turntrace check``: issues with their place, required keys, the coverage gate, three modes."""

import gzip
import json
import os
from pathlib import Path
from threading import Thread

import jsonschema
import pytest

from report.turns import example, span, turn

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "check.schema.json").read_text())
SAMPLES = ROOT / "tests" / "data" / "ndjson"
TRACES = ROOT / "tests" / "data" / "traces"


@pytest.fixture
def trace(write_trace):
    """The example as a file."""
    return write_trace("run.ndjson", example())


def as_json(result):
    """The parsed result, valid by the published schema."""
    parsed = json.loads(result.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(parsed)
    return parsed["files"]


def test_the_schema_is_a_schema():
    """The published file is valid JSON Schema 2020-12."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_good_file(run, trace):
    """Status 0 without a word, and the keys of schema 1 in JSON."""
    result = run("check", trace)
    assert result.exit_code == 0
    assert result.stdout == ""
    [found] = as_json(run("check", trace, "--json"))
    assert list(found) == ["path", "ok", "turns", "keys", "missing", "issues"]
    assert (found["ok"], found["turns"], found["missing"], found["issues"]) == (True, 1, [], [])
    assert "span:generation" in found["keys"]


def test_without_a_file_the_newest_is_checked(run, write_trace):
    """The newest trace of the folder, as for a report."""
    write_trace(".turntrace/a.ndjson", example())
    [found] = as_json(run("check", "--json"))
    assert found["path"] == ".turntrace/a.ndjson"


@pytest.mark.parametrize("option", ["--contract", "--required"])
def test_the_seven_keys_of_the_contract(run, write_trace, option):
    """A turn without a model call lacks keys: status 1, each named."""
    trace = write_trace("f.ndjson", turn([span("a", "plan", 0, 5)], 10))
    result = run("check", trace, option)
    assert result.exit_code == 1
    assert "  missing  span:provider_connect\n" in result.stdout


def test_the_contract_holds_for_the_example(run, trace):
    """A normal model turn has all seven."""
    assert run("check", trace, "--contract").exit_code == 0


def test_required_keys_are_repeatable(run, trace):
    """Each --require counts; what is there is not listed."""
    result = run("check", trace, "--require", "span:verification", "--require", "span:handoff", "--json")
    assert result.exit_code == 1
    assert as_json(result)[0]["missing"] == ["span:handoff"]


def test_the_coverage_gate(run, trace):
    """Below the asked share the turn fails, with its line; at it, it holds."""
    assert run("check", trace, "--min-coverage", "0.9").exit_code == 0
    result = run("check", trace, "--min-coverage", "0.999", "--json")
    assert result.exit_code == 1
    [issue] = as_json(result)[0]["issues"]
    assert (issue["code"], issue["severity"], issue["line"]) == ("coverage_low", "error", 1)
    assert issue["message"] == "0.993 of the turn is accounted for, 0.999 was asked for"
    assert run("check", trace, "--compat", "--min-coverage", "0.999").exit_code == 1
    assert run("check", trace, "--min-coverage", "2").exit_code == 2


def test_damage_fails_strictly_and_is_reported_leniently(run, trace):
    """An error that costs a line fails the default and not --lenient; both name line and byte."""
    size = Path(trace).stat().st_size
    with Path(trace).open("ab") as file:
        file.write(b"garbage\n")
    lines = Path(trace).read_bytes().count(b"\n")
    strict = run("check", trace)
    assert strict.exit_code == 1
    assert "run.ndjson: failed" in strict.stdout
    place = f"  error    bad_json_line (line {lines}, byte {size}): "
    assert place in strict.stdout
    lenient = run("check", trace, "--lenient")
    assert lenient.exit_code == 0
    assert place in lenient.stdout


@pytest.mark.parametrize("mode", ["strict", "lenient", "compat"])
@pytest.mark.parametrize(
    "sample", json.loads((SAMPLES / "index.json").read_text())["samples"], ids=lambda s: s["file"]
)
def test_every_sample_has_its_verdict(run, sample, mode):
    """For each hand-written file the status follows the published table of outcomes."""
    path = SAMPLES / sample["file"]
    holds = sample["zero"]["ok"] if mode == "compat" else sample["recommended"][mode] != "reject"
    result = run("check", path, f"--{mode}", "--json")
    assert result.exit_code == (0 if holds else 1)
    assert as_json(result)[0]["ok"] is holds


def test_modes_exclude_each_other(run, trace):
    """Two modes are a usage error."""
    result = run("check", trace, "--lenient", "--compat")
    assert result.exit_code == 2
    assert "exclude each other" in result.stderr


def test_several_files_and_one_that_fails(run, trace, write_trace):
    """The file that fails has its lines, the good one goes without saying; status 1."""
    empty = write_trace("empty.ndjson")
    result = run("check", trace, empty)
    assert result.exit_code == 1
    assert "run.ndjson" not in result.stdout
    assert "empty.ndjson: failed, 0 turns, 0 event keys\n  error    empty" in result.stdout


def test_a_file_that_cannot_be_opened(run, write_trace):
    """Status 2, and the file is named."""
    result = run("check", "missing.ndjson")
    assert result.exit_code == 2
    assert "cannot read missing.ndjson: No such file or directory" in result.stderr


def test_standard_input(execute, trace):
    """A dash reads standard input, which is read more than once inside."""
    result = execute("check", "-", "--contract", input=Path(trace).read_bytes())
    assert result.returncode == 0
    assert result.stdout == b""


def test_a_named_pipe(execute, trace, tmp_path):
    """A file that can be read but once, as a shell's process substitution is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_bytes(Path(trace).read_bytes()))
    writer.start()
    result = execute("check", str(pipe), "--contract")
    writer.join()
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def test_a_long_list_of_issues_is_cut_in_text(run, trace):
    """Twenty lines for people; JSON has all."""
    with Path(trace).open("ab") as file:
        file.write(b"x\n" * 30)
    shown = run("check", trace).stdout
    assert shown.count("bad_json_line") <= 20
    assert " more; --json lists them" in shown
    assert (
        sum(issue["code"] == "bad_json_line" for issue in as_json(run("check", trace, "--json"))[0]["issues"])
        == 30
    )


def test_hostile_names_are_escaped(run, write_trace):
    """A file name or a required key cannot act on the terminal."""
    trace = write_trace("a\x1b[31m.ndjson", example())
    result = run("check", trace, "--require", "x\x1by")
    assert "\x1b" not in result.stdout
    assert "a\\x1b[31m.ndjson: failed" in result.stdout


@pytest.mark.parametrize("name", ["13-pydantic-ai.json", "edge/e01-lines-in-end-order.jsonl"])
def test_a_trace_of_another_tool_holds_when_nothing_of_it_is_damaged(run, name, tmp_path):
    """As it is and compressed: silent in a pipe, status 0."""
    packed = tmp_path / "t.gz"
    packed.write_bytes(gzip.compress((TRACES / name).read_bytes()))
    for path in (TRACES / name, packed):
        done = run("check", str(path))
        assert (done.exit_code, done.stdout) == (0, "")


def test_every_loss_of_a_trace_of_another_tool_is_told(run, tmp_path):
    """With its line and byte; what report only counts stands here."""
    done = run("check", str(TRACES / "edge" / "e07-last-line-cut.jsonl"))
    assert done.exit_code == 1
    assert "error    truncated_tail (line 21, byte 19513): the last line is cut" in done.stdout
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress((TRACES / "edge" / "e01-lines-in-end-order.jsonl").read_bytes())[:-200])
    done = run("check", str(cut))
    assert done.exit_code == 1
    assert "the compressed input is cut" in done.stdout


def test_our_own_trace_may_be_compressed(run, trace, tmp_path):
    """It is checked as if it were not; cut, it says so."""
    packed = gzip.compress(Path(trace).read_bytes())
    (tmp_path / "t.gz").write_bytes(packed)
    assert run("check", str(tmp_path / "t.gz")).exit_code == 0
    (tmp_path / "t.gz").write_bytes(packed[:-9])
    done = run("check", str(tmp_path / "t.gz"))
    assert (done.exit_code, "the compressed input is cut" in done.stdout) == (1, True)


def test_what_is_no_trace_at_all_says_what_would_be_one(run, tmp_path):
    """The formats are named."""
    (tmp_path / "x").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    done = run("check", str(tmp_path / "x"))
    assert done.exit_code == 1
    assert "OTLP as JSON or protobuf" in done.stdout
