"""Whole benchmarks with real agents: rows, resuming, integrity. Statements of the plan are in the names."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from bench.hostility import FOUND, HOSTILE, digest, needs_sandbox, survivors
from turntrace.bench.loading import load_suite
from turntrace.bench.rows import read_results
from turntrace.bench.shipped import SUITES
from turntrace.cli.main import app

BEST = "sandbox" if FOUND else "process"
MOCK = SUITES / "mock"


def bench(*words, status=0):
    """Run the command in this process; its output."""
    found = CliRunner().invoke(app, ["bench", *map(str, words)])
    assert found.exit_code == status, found.output
    return found.output


def run(out, *words, suite="mock", status=0):
    """Run a benchmark; its output and its results."""
    said = bench("run", suite, "-o", out, *words, status=status)
    return said, read_results(out)


def rows_of(path):
    """The rows as they stand in a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines() if b'"type":"row"' in line]


@pytest.fixture
def no_network(monkeypatch):
    """Every connection outside loopback raises."""
    connect = socket.socket.connect

    def only_loopback(self, address):
        if self.family != socket.AF_UNIX and address[0] not in {"127.0.0.1", "::1"}:
            raise AssertionError(f"connects to {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", only_loopback)


def test_e1_the_mock_suite_attempts_twelve_runs_and_proves_overlap(tmp_path, no_network):
    """Four cases, three iterations, no network; the missing usage is reported as the suite expects."""
    said, found = run(tmp_path / "m.ndjson", "--agent", "reference", "--seed", "7")
    assert "12 attempted runs (4 tasks x r=3)" in said
    assert "overlap: proven in 3" in said
    assert found.ended
    by_class = {}
    for row in found.rows:
        by_class.setdefault(row.task_class, []).append(row)
    assert {name: len(rows) for name, rows in by_class.items()} == dict.fromkeys(
        ("sequential", "parallel", "fallback", "missing-usage"), 3
    )
    for row in by_class["parallel"]:
        assert row.overlap["verdict"] == "proven"
        assert row.overlap["all_started_before_first_completed"]
    for row in by_class["missing-usage"]:
        assert (row.failures, row.usage["input_tokens"], row.verdict) == (("usage_incomplete",), None, "pass")
        assert row.usage["missing"] == ["request 3"]
    for row in by_class["fallback"]:
        assert (row.attempts_refused, row.requests, row.usage["owed"]) == (1, 3, 3)
        assert row.usage["total_tokens"] == row.usage["input_tokens"] + row.usage["output_tokens"]
    assert all(row.trace == "ok" and not row.trace_issues for row in found.rows)
    assert [row.position for row in found.rows] == list(range(12))


def test_e2_a_serial_executor_fails_by_the_name_of_the_case(tmp_path):
    """Both events succeeded, the oracle passed, and the case does not."""
    said, found = run(
        tmp_path / "m.ndjson",
        "--agent",
        "reference",
        "--serial",
        "-r",
        1,
        "-w",
        0,
        "-k",
        "parallel",
        status=1,
    )
    assert "failed: parallel (parallel): expected to pass, passed 0 of 1; overlap_serial in 1" in said
    row = found.rows[0]
    assert (row.verdict, row.passed, row.failures) == ("pass", False, ("overlap_serial",))
    assert (row.overlap["started"], row.overlap["completed"], row.overlap["timed_out"]) == (2, 2, True)
    assert row.wall_ns < 10e9


def test_e3_failing_runs_are_attempts(tmp_path):
    """An agent that does nothing fails everything and is counted."""
    said, found = run(tmp_path / "m.ndjson", "--agent", "nop", "-r", 1, "-w", 0, status=1)
    assert "4 attempted runs" in said
    assert [row.passed for row in found.rows] == [False] * 4


def test_d5_cases_without_a_probe_have_no_record(tmp_path):
    """Null, not a record of nothing."""
    _, found = run(tmp_path / "m.ndjson", "--agent", "reference", "-r", 1, "-w", 0, "-k", "sequential")
    assert found.rows[0].overlap is None
    assert found.rows[0].passed


def test_d6_the_record_is_in_the_row_the_json_and_the_text(tmp_path):
    """Its events in order, too."""
    said, _ = run(tmp_path / "m.ndjson", "--agent", "reference", "-r", 1, "-w", 0, "-k", "parallel")
    assert "overlap: proven in 1" in said
    document = json.loads(bench("report", tmp_path / "m.ndjson", "--json"))
    events = document["rows"][0]["overlap"]["events"]
    assert [event["kind"] for event in events][:2] == ["start", "start"]
    assert document["summary"]["overlaps"] == {"proven": 1}


def test_d9_spans_tell_the_same(tmp_path):
    """Two tool spans at once, by the agent's own trace."""
    _, found = run(tmp_path / "m.ndjson", "--agent", "reference", "-r", 1, "-w", 0, "-k", "parallel")
    assert found.rows[0].self_reported["max_concurrency"]["tool_execution"] == 2


def test_c4_c5_unknown_tokens_are_null_and_printed_so(tmp_path):
    """Never 0, in no medium; the sum over tasks is unknown with them."""
    said, _ = run(
        tmp_path / "m.ndjson", "--agent", "reference", "-r", 1, "-w", 0, "-k", "missing-usage or sequential"
    )
    assert "tokens: n/a in, n/a out, usage_incomplete in 1" in said
    document = json.loads(bench("report", tmp_path / "m.ndjson", "--json"))
    assert document["summary"]["input_tokens"] is None
    usage = {row["task"]: row["usage"] for row in document["rows"]}
    assert usage["missing-usage"]["total_tokens"] is None
    assert usage["sequential"]["total_tokens"] > 0


def test_model_elapsed_is_await_only(tmp_path):
    """It is shorter than the wall, and known."""
    _, found = run(tmp_path / "m.ndjson", "--agent", "reference", "-r", 1, "-w", 0, "-k", "sequential")
    told = found.rows[0].self_reported
    assert 0 < told["model_elapsed_ns"] < told["wall_ns"] < found.rows[0].wall_ns


def test_a_run_that_is_killed_resumes_to_the_same_rows(tmp_path):
    """SIGKILL in the middle, then --resume: every run once, none twice, in the order of an unkilled one."""
    words = ["bench", "run", "mock", "--agent", "oracle", "-r", "3", "-w", "0", "--seed", "11"]
    whole, cut = tmp_path / "whole.ndjson", tmp_path / "cut.ndjson"
    bench(*words[1:], "-o", whole, status=1)
    with subprocess.Popen(
        [sys.executable, "-m", "turntrace", *words, "-o", str(cut)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        late = time.monotonic() + 60
        while not cut.exists() or len(rows_of(cut)) < 3:
            assert time.monotonic() < late
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert len(rows_of(cut)) < 12
    with cut.open("ab") as file:
        file.write(b'{"type":"row","task":"cut o')
    bench(*words[1:], "--resume", cut, status=1)
    same = [
        [(row[k]) for k in ("task", "iteration", "position", "seed", "verdict", "passed")]
        for row in rows_of(whole)
    ]
    assert [
        [row[k] for k in ("task", "iteration", "position", "seed", "verdict", "passed")]
        for row in rows_of(cut)
    ] == same
    assert read_results(cut).ended
    bench(*words[1:], "--resume", cut, status=1)
    assert len(rows_of(cut)) == 12


def test_resuming_other_runs_is_refused(tmp_path):
    """Another seed, another agent: the fields are named."""
    out = tmp_path / "m.ndjson"
    run(out, "--agent", "oracle", "-r", 1, "-w", 0, "--seed", 1, "-k", "sequential")
    said = bench(
        "run", "mock", "--agent", "nop", "-r", 1, "--seed", 2, "-k", "sequential", "--resume", out, status=2
    )
    assert "agent_sha256, seed differ" in said
    said = bench("run", "mock", "--agent", "oracle", "-o", out, status=2)
    assert f"--resume {out}" in said.replace("\n", "")


def test_an_interrupt_keeps_rows_and_exits_130(tmp_path):
    """And leaves no agent behind."""
    out = tmp_path / "m.ndjson"
    marker = f"interrupt-{os.getpid()}"
    agent = f"{sys.executable} -I -S {HOSTILE} hang {marker}"
    argv = [
        sys.executable,
        "-m",
        "turntrace",
        "bench",
        "run",
        "mock",
        "--agent-cmd",
        agent,
        "-w",
        "0",
        "-o",
        str(out),
    ]
    argv += ["--ro", str(HOSTILE.parent)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        late = time.monotonic() + 30
        while len(survivors(marker)) < 2:
            assert time.monotonic() < late
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()
        assert process.wait(20) == 130, said
    assert f"--resume {out}" in said
    assert survivors(marker) == []
    assert not rows_of(out)


CANARY = "canary-4711-value"


def test_no_secret_reaches_a_disk(tmp_path, monkeypatch):
    """Variables called like secrets, the one that is passed on, and keys by their shape, in every written file."""
    monkeypatch.setenv("SOME_API_KEY", CANARY)
    monkeypatch.setenv("PASSED_ON", f"passed-{CANARY}")
    key = "sk-" + "a1b2" * 8
    code = (
        "import os,sys; v=os.environ; assert 'SOME_API_KEY' not in v;"
        f"sys.stderr.write(v['PASSED_ON']); print(v['PASSED_ON'], '{key}');"
        f"open(v['PASSED_ON'],'w').write('x'); open('{key}','w').write('x'); sys.exit(3)"
    )
    agent = f'{sys.executable} -I -S -c "{code}"'
    out = tmp_path / "m.ndjson"
    run(
        out,
        "--agent-cmd",
        agent,
        "--auth",
        "env:PASSED_ON",
        "-r",
        1,
        "-w",
        0,
        "--no-trace",
        "-k",
        "sequential",
        status=1,
    )
    row = rows_of(out)[0]
    assert row["exit"] == 3
    for path in tmp_path.rglob("*"):
        text = path.read_text() if path.is_file() else ""
        assert CANARY not in text
        assert key not in text.replace(" ", "") or path == out
    assert CANARY not in json.dumps(row)


@needs_sandbox
@pytest.mark.parametrize("deed", ["fork", "write", "read", "link", "plant", "flood"])
def test_a_hostile_agent_leaves_a_row_and_nothing_else(tmp_path, deed):
    """The suite is byte for byte what it was; the row says how it ended."""
    before = digest(MOCK)
    agent = f"{sys.executable} -I -S {HOSTILE} {deed} {MOCK}"
    _, found = run(
        tmp_path / "m.ndjson", "--agent-cmd", agent, "--ro", HOSTILE.parent, "-r", 1, "-w", 0, "--no-trace",
        "-k", "sequential", status=1,
    )  # fmt: skip
    row = found.rows[0]
    assert (row.exit, row.passed, row.verdict) == (0, False, "fail")
    assert digest(MOCK) == before
    assert not survivors(f"hostile.py {deed}".replace(" ", "\0"))
    if deed == "flood":
        assert (row.output_bytes, row.output_cut_bytes > 0) == (10**9, True)
    if deed == "plant":
        assert set(row.outside) == {
            "conftest.py",
            "sitecustomize.py",
            "usercustomize.py",
            "x.pth",
            "pytest.ini",
        }


def test_a_time_out_is_a_row_that_says_so(tmp_path):
    """Asked, then killed, no latency sample, no pass."""
    agent = f"{sys.executable} -I -S {HOSTILE} ignore"
    said, found = run(
        tmp_path / "m.ndjson", "--agent-cmd", agent, "--ro", HOSTILE.parent, "-r", 1, "-w", 0, "--no-trace",
        "--timeout", 0.5, "-k", "sequential", status=1,
    )  # fmt: skip
    row = found.rows[0]
    assert (row.timed_out, row.forced, row.samples, row.passed) == (True, True, False, False)
    assert "the agent took too long" in row.reason or "differ" in row.reason
    assert "12 attempted" not in said


def test_an_agent_that_is_not_there_errors_everywhere_and_exits_1(tmp_path):
    """It is no failure of a task."""
    said, found = run(
        tmp_path / "m.ndjson", "--agent-cmd", "/no/such/agent", "-r", 1, "-w", 0, "--no-trace",
        "--isolation", "process", "-k", "sequential", status=1,
    )  # fmt: skip
    assert "every run errored" in said
    assert found.rows[0].exit is None
    assert found.rows[0].verdict == "error"


def test_without_any_trace_the_run_fails_unless_none_was_asked_for(tmp_path):
    """P5: nobody is told figures of nothing."""
    agent = f"{sys.executable} -I -S -c pass"
    words = ("--agent-cmd", agent, "-r", 1, "-w", 0, "-k", "missing-usage")
    said, _ = run(tmp_path / "a.ndjson", *words, status=1)
    assert "no run left a usable trace" in said
    run(tmp_path / "b.ndjson", *words, "--no-trace")


@pytest.mark.parametrize("isolation", [pytest.param("sandbox", marks=needs_sandbox), "process"])
def test_both_isolations_judge_alike(tmp_path, isolation):
    """And say what they cannot stop."""
    said, found = run(
        tmp_path / "m.ndjson",
        "--agent",
        "oracle",
        "-r",
        1,
        "-w",
        0,
        "-j",
        2,
        "--isolation",
        isolation,
        status=1,
    )
    assert all(row.verdict == "pass" for row in found.rows)
    assert found.header.isolation == isolation
    assert "cannot stop" in said


def test_fail_on_and_formats_and_zeros_document(tmp_path):
    """One file, every way out of it."""
    out, zero = tmp_path / "m.ndjson", tmp_path / "zero.json"
    run(out, "--agent", "reference", "-r", 1, "-w", 0, "-k", "sequential or parallel")
    assert "| sequential | sequential | correctness | passed at r=1 |" in bench(
        "report", out, "--format", "markdown"
    )
    assert "it is 1" in bench("report", out, "--fail-on", "correctness>=90%", status=1)
    bench("report", out, "--fail-on", "correctness<90%", "--fail-on", "wall_p50>60s", "--export-zero", zero)
    document = json.loads(zero.read_text())
    assert (document["schemaVersion"], document["tasksVerified"], document["tasksPassed"]) == (5, 2, 2)
    assert document["perSpan"]["generation"]["count"] == 6
    assert document["totals"]["modelRequests"] == 6
    assert "--fail-on" in bench("report", out, "--fail-on", "nonsense", status=2)


def test_a_dry_run_executes_nothing_and_writes_nothing(tmp_path, monkeypatch):
    """Only the plan is printed."""
    monkeypatch.chdir(tmp_path)
    said = bench("run", "mock", "--agent", "oracle", "--dry-run", "-r", 2, "--seed", 3)
    assert "8 runs with oracle" in said
    assert not list(tmp_path.iterdir())


def test_verdicts_are_equal_in_a_hundred_repeats(tmp_path):
    """100 runs of the parallel case: proven every time, passed every time."""
    _, found = run(
        tmp_path / "m.ndjson", "--agent", "reference", "-r", 100, "-w", 0, "-j", 2, "-k", "parallel"
    )
    assert len(found.rows) == 100
    assert {(row.verdict, row.passed, row.overlap["verdict"], row.failures) for row in found.rows} == {
        ("pass", True, "proven", ())
    }


def test_the_published_hash_is_of_the_files():
    """Changed bytes are not trusted."""
    assert load_suite("mock").origin == "shipped"


def test_usage_errors_name_the_way_out(tmp_path):
    """Status 2, one line."""
    for words, expected in (
        (("--agent", "nobody"), "no agent is called nobody"),
        ((), "name one agent"),
        (("--agent", "opencode"), "needs --model"),
        (("--agent", "nop", "-k", "nothing-like-it"), "keeps none"),
        (("--agent", "nop", "-k", "a and"), "write words"),
        (("--agent", "nop", "-k", "a + b"), "write words"),
        (("--agent", "python:x"), "write python:MODULE:FUNC"),
        (("--agent", "nop", "--auth", "x"), "write env:NAME or login"),
    ):
        assert expected in bench("run", "mock", *words, "-o", tmp_path / "x", status=2).replace("\n", " ")
    assert not (tmp_path / "x").exists()
