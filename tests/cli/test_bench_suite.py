"""turntrace bench validate and list: what a person and a program read, and the exit status."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bench.suite_files import write_folder, write_zero
from turntrace.bench.isolation_sandbox import bubblewrap
from turntrace.cli.main import app


def bench(*words):
    """Run the command in this process."""
    return CliRunner().invoke(app, ["bench", *map(str, words)])


def test_a_good_suite_is_told_in_a_line(tmp_path):
    """Status 0, the hash, and JSON with the tasks."""
    root = write_folder(tmp_path / "mine")
    found = bench("validate", root)
    assert (found.exit_code, found.stdout.split(": ")[1][:11]) == (0, "ok, 1 tasks")
    told = json.loads(bench("validate", root, "--json").stdout)
    assert (told["ok"], told["faults"], told["suite"]["tasks"][0]["id"]) == (True, [], "double-01")


def test_faults_end_with_status_1(tmp_path):
    """Every fault on a line, or as JSON with file, line and field."""
    root = write_folder(tmp_path / "mine", ("a", "b"), task='class = "fix"\nstrcit = true\n')
    found = bench("validate", root)
    assert found.exit_code == 1
    assert [line.rpartition("task.toml:")[2] for line in found.stdout.splitlines()] == [
        "2: strcit: is no known field; did you mean strict?"
    ] * 2
    told = json.loads(bench("validate", root, "--json").stdout)
    assert told["ok"] is False
    assert [(fault["line"], fault["field"]) for fault in told["faults"]] == [(2, "strcit")] * 2
    listed = bench("list", root)
    assert listed.exit_code == 2
    assert "1 more faults; turntrace bench validate lists them" in listed.stderr


def test_list_shows_class_tier_and_oracle(tmp_path):
    """A row a task; what would be executed is in the JSON."""
    path = write_zero(tmp_path)
    rows = [line.split() for line in bench("list", path).stdout.splitlines()]
    assert rows[1] == ["nav-01", "nav", "correctness", "command"]
    assert rows[4] == ["longctx-01", "default", "latency", "none"]
    suite = json.loads(bench("list", path, "--json").stdout)["suite"]
    assert suite["executes"] == ["nav-01: oracle grep", "edit-01: oracle go", "refactor-01: oracle go"]
    assert bench("list", "examples").stdout.startswith("examples: 4 tasks (4 correctness), shipped")


@pytest.mark.parametrize("command", ["validate", "list"])
def test_nothing_is_executed(tmp_path, command):
    """An oracle that would leave a mark leaves none, and no child is started."""
    root = write_folder(
        tmp_path / "mine", task='class = "a"\nset_up = [["touch", "%s"]]\n' % (tmp_path / "mark")
    )
    (root / "tasks" / "double-01" / "oracle.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    code = (
        "import sys\n"
        "def hook(event, args):\n"
        "    if event in ('subprocess.Popen', 'os.exec', 'os.posix_spawn', 'os.fork', 'os.system'): raise SystemExit(99)\n"
        "    if event == 'exec' and args[0].co_filename.endswith('oracle.py'): raise SystemExit(98)\n"
        "sys.addaudithook(hook)\n"
        "from turntrace.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "bench", command, root], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "mark").exists()


def test_proving_a_strangers_suite_needs_trust(tmp_path):
    """Without it nothing runs, status 2 and the way out; with it the matrix is told."""
    root = write_folder(tmp_path / "mine")
    refused = bench("validate", root, "--prove", "--isolation", "process")
    assert refused.exit_code == 2
    assert "--trust-manifest" in refused.stderr
    told = bench("validate", root, "--prove", "--isolation", "process", "--trust-manifest")
    assert told.exit_code == 1
    assert "double-01: has no solution" in told.stdout
    assert told.stdout.splitlines()[-1] == "0 of 1 oracles proven by 14 trials"


def test_the_shipped_suite_is_proven_from_the_command_line():
    """`validate examples --prove --json` is ok and holds every trial."""
    told = bench("validate", "examples", "--prove", "--json")
    assert told.exit_code == 0
    found = json.loads(told.stdout)
    assert (found["ok"], [proof["proven"] for proof in found["proofs"]]) == (True, [True] * 4)
    assert {trial["kind"] for proof in found["proofs"] for trial in proof["trials"]} == {
        "untouched",
        "empty",
        "cheat",
        "wrong",
        "mutant",
        "solution",
    }


@pytest.mark.parametrize(
    "words", [["validate"], ["list"], ["init"], ["add"], ["import"], ["import", "harbor"]]
)
def test_every_command_of_the_group_has_help_with_examples(words):
    """As the commands beside it."""
    for option in ("--help", "-h"):
        found = bench(*words, option)
        assert found.exit_code == 0
        assert f"  turntrace bench {' '.join(words)}" in found.stdout


@pytest.mark.skipif(bubblewrap()[0] is None, reason="no sandbox works on this machine")
def test_a_strangers_oracle_is_proven_in_the_sandbox_without_trust(tmp_path):
    """It runs, and what it writes outside its own folder is nowhere afterwards."""
    root = write_folder(tmp_path / "mine")
    mark = tmp_path / "mark"
    oracle = root / "tasks" / "double-01" / "oracle.py"
    hostile = f"import contextlib\nwith contextlib.suppress(OSError):\n    open({str(mark)!r}, 'w').close()\n"
    oracle.write_text(hostile + oracle.read_text())
    told = bench("validate", root, "--prove", "--isolation", "sandbox")
    assert told.stdout.splitlines()[-1] == "0 of 1 oracles proven by 14 trials"
    assert "double-01: has no solution" in told.stdout
    assert not mark.exists()
    assert bench("validate", root, "--prove", "--isolation", "process", "--trust-manifest").exit_code == 1
    assert mark.exists()
