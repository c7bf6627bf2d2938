"""``turntrace view``: where the page goes, who opens it, and what is said when it cannot be made."""

import gzip
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import turntrace
from cli.test_command_line import on_a_terminal
from report.turns import example


def embedded(page):
    """The report that stands in a page."""
    [found] = re.findall(r'<script type="application/json" id="report">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def test_the_page_of_the_newest_trace(run, write_trace):
    """Without a file the newest is drawn, into the same folder, which stays out of version control."""
    write_trace(".turntrace/20261130-demo.ndjson", example())
    result = run("view", "--no-open")
    assert result.exit_code == 0, result.output
    page = Path(".turntrace/20261130-demo.html")
    assert embedded(page.read_text())["turns"][0]["wall_ns"] == 8_420_000_000
    assert re.fullmatch(
        r"view  \.turntrace/20261130-demo\.html   1 turn, \d+ kB, one file, no network\n", result.stdout
    )


def test_a_file_elsewhere_is_drawn_into_the_default_folder(run, write_trace):
    """The page of any trace goes where traces go; the folder is made, with its .gitignore."""
    trace = write_trace("run.v1.ndjson", example())
    Path("run.v1.ndjson.gz").write_bytes(gzip.compress(Path(trace).read_bytes()))
    assert run("view", f"{trace}.gz", "--no-open").exit_code == 0
    page = Path(".turntrace/run.v1.html")
    assert page.stat().st_mode & 0o777 == 0o600
    assert Path(".turntrace/.gitignore").read_text() == "*\n"


def test_many_files_in_one_page(run, write_trace):
    """The turns of all files stand in one page, whose line counts them."""
    first = write_trace("a.ndjson", example())
    second = write_trace("b.ndjson", replace(example(), run_id="run-2"), replace(example(), run_id="run-3"))
    result = run("view", first, second, "-o", "both.html", "--no-open")
    assert "both.html   3 turns, " in result.stdout
    page = Path("both.html").read_text()
    assert len(embedded(page)["turns"]) == 3
    assert "<title>3 turns · turntrace</title>" in page


def test_two_files_beside_each_other(run, write_trace):
    """The page holds the turns of both, and what `report --beside` prints of them."""
    before = write_trace("before.ndjson", example())
    after = write_trace(
        "after.ndjson", replace(example(), run_id="run-2"), replace(example(), run_id="run-3")
    )
    assert run("view", before, after, "--beside", "-o", "page.html").exit_code == 0
    page = Path("page.html").read_text()
    assert len(embedded(page)["turns"]) == 3
    [words] = re.findall(r'<script type="application/json" id="words">(.*?)</script>', page, re.DOTALL)
    blocks = json.loads(words)["beside"]
    printed = run("report", before, after, "--beside").stdout
    rows = [row for block in blocks for row in block.get("rows", [])]
    assert len(rows) > 10
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert all(" ".join([row["label"], *filter(None, row["cells"])]) in lines for row in rows)
    alone = run("view", before, "--beside")
    assert alone.exit_code == 2
    assert "--beside takes two files" in alone.stderr


def test_standard_output_gets_the_page_alone(execute, write_trace):
    """With -o - nothing else is printed, and standard input is read as any file."""
    trace = write_trace("run.ndjson", example())
    piped = execute("view", "-", "-o", "-", input=Path(trace).read_bytes())
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout.startswith(b"<!doctype html>")
    assert piped.stdout.rstrip().endswith(b"</html>")
    kept = execute("view", "-", "--no-open", input=Path(trace).read_bytes())
    assert b".turntrace/view.html" in kept.stdout


@pytest.fixture
def browser(tmp_path):
    """A program in the place of a browser, which writes down what it is asked to open."""
    program = tmp_path / "browser"
    program.write_text(
        f'#!{sys.executable}\nimport sys\nopen({str(tmp_path / "asked")!r}, "w").write(sys.argv[1])\n'
    )
    program.chmod(0o755)
    return program


def test_a_terminal_opens_the_browser(write_trace, tmp_path, browser):
    """Typed at a terminal the page is opened from the disk; with --no-open it is not."""
    trace = write_trace("run.ndjson", example())
    on_a_terminal(["view", trace, "--no-open"], BROWSER=str(browser))
    assert not (tmp_path / "asked").exists()
    on_a_terminal(["view", trace], BROWSER=str(browser))
    assert (tmp_path / "asked").read_text() == (tmp_path / ".turntrace/run.html").as_uri()


def test_a_pipe_opens_none(execute, write_trace, tmp_path, browser):
    """A program that calls the command gets the file, and no window."""
    trace = write_trace("run.ndjson", example())
    assert execute("view", trace, env={"BROWSER": str(browser)}).returncode == 0
    assert not (tmp_path / "asked").exists()


def test_a_machine_without_a_display(terminal_errors, write_trace):
    """Where no browser can be, the command says where the page is and what to do."""
    trace = write_trace("run.ndjson", example())
    assert b"no display here" in terminal_errors(
        "view", trace, drop=("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )


def test_a_browser_that_does_not_start(terminal_errors, write_trace):
    """A browser that fails is said, and the page is there all the same."""
    trace = write_trace("run.ndjson", example())
    assert b"no browser could be started" in terminal_errors("view", trace, BROWSER="/nowhere/browser %s")
    assert Path(".turntrace/run.html").exists()


@pytest.fixture
def terminal_errors():
    """What a command that ends well says on standard error while its output is a terminal."""
    import pty
    import subprocess

    def start(*arguments, drop=(), **env):
        leader, follower = pty.openpty()
        variables = {**os.environ, **env}
        for name in drop:
            variables.pop(name, None)
        command = [sys.executable, "-c", "from turntrace.cli.main import main; main()", *arguments]
        done = subprocess.run(
            command, stdout=follower, stderr=subprocess.PIPE, env=variables, timeout=60, check=False
        )
        os.close(follower)
        os.close(leader)
        assert done.returncode == 0, done.stderr
        return done.stderr

    return start


def test_what_cannot_be_written_is_said(run, write_trace):
    """A folder that is a file, and a path in no folder: status 2 and the way out."""
    trace = write_trace("run.ndjson", example())
    nowhere = run("view", trace, "-o", "no/such/folder.html")
    assert nowhere.exit_code == 2
    assert "cannot write no/such/folder.html" in nowhere.stderr
    Path(".turntrace").write_text("")
    blocked = run("view", trace)
    assert blocked.exit_code == 2
    assert "cannot write to .turntrace" in blocked.stderr
    assert "name a file with -o" in blocked.stderr


def test_without_a_trace_the_way_out_is_named(run, write_trace):
    """Nothing recorded yet: the error says how to record."""
    assert "turntrace demo" in run("view").stderr


def test_the_report_names_the_next_step(run, write_trace):
    """A report of one file ends with the command that draws it; standard input cannot be read again."""
    trace = write_trace("a run.ndjson", example())
    assert "\nnext   turntrace view 'a run.ndjson' " in run("report", trace).stdout
    write_trace(".turntrace/x.ndjson", example())
    assert "\nnext   turntrace view  " in run("report").stdout


def test_content_stays_out_of_the_page(run, write_trace):
    """What a foreign trace holds of prompts and outputs is not in a page that goes round."""
    attributes = [
        {"key": key, "value": {"stringValue": value}}
        for key, value in (
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.request.model", "gpt-demo"),
            ("gen_ai.input.messages", "the secret prompt"),
        )
    ]
    span = {
        "traceId": "1" * 32,
        "spanId": "2" * 16,
        "name": "chat gpt-demo",
        "startTimeUnixNano": "1000000000",
        "endTimeUnixNano": "3000000000",
        "attributes": attributes,
    }
    Path("foreign.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    assert run("view", "foreign.json", "-o", "page.html").exit_code == 0
    page = Path("page.html").read_text()
    assert "gpt-demo" in page
    assert "secret" not in page


def test_the_documented_commands_work(run, write_trace):
    """Each command of the page on views does what it says."""
    text = (Path(__file__).parents[2] / "docs/view.md").read_text()
    write_trace(".turntrace/newest.ndjson", example())
    for name in ("run.ndjson", "a.ndjson", "b.ndjson"):
        write_trace(name, example())
    [block] = re.findall(r"^```\n(turntrace view.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = block.splitlines()
    assert len(lines) == 5
    for line in lines[:4]:
        assert run(*line.split()[1:]).exit_code == 0, line
    assert "turntrace demo --view" in lines
    assert '`turntrace.read("run.ndjson")[0]`' in text
    assert turntrace.read("run.ndjson")[0]._repr_html_().startswith("<div>")
