"""Suites of one's own: a starter, tasks out of commits, and what is left out and why."""

import json
import os
import subprocess

import pytest
from typer.testing import CliRunner

from turntrace.bench.attempts import workspace_of
from turntrace.bench.from_git import Adder, Recipe
from turntrace.bench.history import History, is_test
from turntrace.bench.judging import judge
from turntrace.bench.loading import load_suite
from turntrace.bench.plain_child import run_plain_child
from turntrace.bench.proofs import prove_task
from turntrace.cli.main import app
from turntrace.errors import ConfigurationError


def bench(*words):
    """Run the command in this process."""
    return CliRunner().invoke(app, ["bench", *map(str, words)])


def test_init_writes_a_suite_that_is_proven(tmp_path):
    """What is written can be validated and proven at once; a folder with something in it is left alone."""
    root = tmp_path / "mine"
    dry = bench("init", root, "--dry-run")
    assert not root.exists()
    made = bench("init", root)
    assert (made.exit_code, made.stdout) == (0, dry.stdout)
    suite = load_suite(root)
    assert prove_task(suite.tasks[0], run_plain_child).faults == ()
    again = bench("init", root)
    assert (again.exit_code, "there already" in again.stderr) == (2, True)
    beside = bench("init", root / "suite.toml" / "x")
    assert (beside.exit_code, "cannot write" in beside.stderr) == (2, True)


class Repository:
    """A repository of the tests."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words):
        """Run git; what it printed."""
        who = {f"GIT_{role}_{what}": "t@t" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, message, **files):
        """Commit files by name, dots as two underscores and slashes as three; None removes one; the hash."""
        for name, text in files.items():
            path = self.folder / name.replace("___", "/").replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            elif isinstance(text, bytes):
                path.write_bytes(text)
            else:
                path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")


BROKEN = "def double(n):\n    return n + 2\n"
RIGHT = "def double(n):\n    return n * 2\n"
TEST = "import unittest\nfrom app import double\n\n\nclass T(unittest.TestCase):\n    def test_double(self):\n        assert double(4) == 8\n        print('ok double')\n\n\nunittest.main()\n"
COMMAND = "python3 {tests}"


@pytest.fixture
def repository(tmp_path):
    """One commit that mends something, among others that are no tasks."""
    made = Repository(tmp_path / "repo")
    made.commit(
        "first",
        app__py=BROKEN,
        run__sh="#!/bin/sh\n",
        __gitattributes="test_* export-ignore\n*.py filter=x\n",
    )
    made.git("config", "filter.x.smudge", f"touch {tmp_path / 'smudged'}")
    made.commit("Mend double\n\nIt added.\n\nSigned-off-by: a <b>", app__py=RIGHT, test_app__py=TEST)
    return made


@pytest.fixture
def suite(tmp_path):
    """An empty suite."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "suite.toml").write_text('id = "s"\n')
    return tmp_path / "suite"


def test_a_commit_becomes_a_task(repository, suite, tmp_path):
    """The parent is the fixture, its test the oracle, the rest the solution; no filter of the repository runs."""
    found = bench(
        "add", suite, "--from-git", f"{repository.folder}@HEAD", "--test-command", COMMAND, "--json"
    )
    assert found.exit_code == 0, found.output
    [row] = json.loads(found.stdout)["commits"]
    assert row["subject"] == "Mend double"
    [task] = load_suite(suite).tasks
    assert (task.id, task.task_class) == (row["task"], "fix")
    assert "Signed-off-by" not in task.prompt
    assert "It added." in task.prompt
    assert (task.fixture / "app.py").read_text() == BROKEN
    assert not (task.fixture / "test_app.py").exists()
    assert task.oracle.output_has == ("ok double",)
    assert judged(task, BROKEN).status == "fail"
    assert judged(task, RIGHT).status == "pass"
    assert "did not print" in judged(task, "import os\nos._exit(0)\n").reason
    assert not (tmp_path / "smudged").exists()
    again = bench("add", suite, "--from-git", repository.folder, "--test-command", COMMAND)
    assert "is a task already" in again.stdout


def judged(task, code):
    """The verdict on app.py with ``code``, in a workspace of its own."""
    with workspace_of(task) as at:
        (at / "app.py").write_text(code)
        return judge(task, at, "", 1, run_plain_child)


def test_the_newest_commits_are_tried_and_reasons_are_given(repository, suite):
    """Each commit that makes no task says why."""
    repository.commit("docs", README__md="x")
    repository.commit("tests only", test_other__py="print()\n")
    repository.commit("fixture only", tests___data__json="{}", app__py=RIGHT + "# a\n")
    repository.commit("passes before", app__py=RIGHT + "\n", test_same__py="print()\n")
    repository.commit("fails after", app__py=RIGHT + "\n\n", test_bad__py="raise SystemExit('bad')\n")
    repository.commit("removes a test", app__py=RIGHT, test_bad__py=None)
    found = bench(
        "add", suite, "--from-git", repository.folder, "--newest", 20, "--dry-run", "--test-command", COMMAND
    )
    assert found.exit_code == 0
    told = {
        line.rpartition("(")[2].rstrip(")"): line[12:].rpartition("  (")[0]
        for line in found.stdout.splitlines()
    }
    revision = repository.git("rev-parse", "HEAD~6")[:10]
    assert told == {
        "removes a test": "left out: it changes no test",
        "fails after": "left out: it has tests that fail after it: bad",
        "passes before": "left out: it has tests that pass before it",
        "fixture only": "left out: it changes data of tests only",
        "tests only": "left out: it changes tests only",
        "docs": "left out: it changes no test",
        "Mend double": f"added as git-{revision}",
        "first": "left out: it has no parent, or several",
    }
    assert not (suite / "tasks").exists()


def test_links_and_modes_are_kept(repository, suite):
    """Execute bits and links inside stay; a link out of the tree leaves the commit out."""
    (repository.folder / "run.sh").chmod(0o755)
    (repository.folder / "link").symlink_to("app.py")
    repository.commit("links", app__py=BROKEN)
    repository.commit("mend", app__py=RIGHT, test_app__py=TEST + "\n")
    assert bench("add", suite, "--from-git", repository.folder, "--test-command", COMMAND).exit_code == 0
    [task] = load_suite(suite).tasks
    assert os.access(task.fixture / "run.sh", os.X_OK)
    assert (task.fixture / "link").readlink().as_posix() == "app.py"
    (repository.folder / "out").symlink_to("/etc")
    repository.commit("out", app__py=BROKEN)
    repository.commit("mend again", app__py=RIGHT, test_app__py=TEST)
    found = bench("add", suite, "--from-git", repository.folder, "--test-command", COMMAND)
    assert (found.exit_code, "holds out, which is a symbolic link" in found.stdout) == (1, True)


def test_a_fixture_is_set_up(repository, suite):
    """Set-up commands run before the tests and stand in the task; one that fails leaves the commit out."""
    words = ("add", suite, "--from-git", repository.folder, "--test-command", COMMAND, "--set-up")
    assert "cannot be set up: false" in bench(*words, "false").stdout
    assert bench(*words, "touch 'a b'").exit_code == 0
    assert load_suite(suite).tasks[0].set_up == (("touch", "a b"),)


def test_tests_that_hang_leave_a_commit_out(repository, suite):
    """A time-out is a reason."""
    repository.commit("hangs", app__py=RIGHT + "#", test_slow__py="import time\ntime.sleep(60)\n")
    adder = Adder(suite, Recipe(command=COMMAND, timeout_s=0.5), run_plain_child)
    assert "take too long" in adder.add(History(repository.folder), "HEAD").reason


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from-git", "/none"), "is no folder; clone"),
        (("--from-git", "{repo}@nope"), "has no commit nope"),
        (("--from-git", "{repo}@--output=x"), "has no commit --output=x"),
        (("--from-git", "{repo}@HEAD", "--newest", "2"), "exclude each other"),
        (("--from-git", "{empty}", "--newest", "2"), "git rev-list"),
    ],
)
def test_what_cannot_be_added_is_a_usage_error(repository, suite, tmp_path, words, said):
    """Status 2 and the way out."""
    (tmp_path / "empty").mkdir()
    filled = [word.format(repo=repository.folder, empty=tmp_path / "empty") for word in words]
    found = bench("add", suite, *filled)
    assert (found.exit_code, said in found.stderr) == (2, True), found.output
    assert not list(tmp_path.rglob("x"))


def test_adding_needs_a_suite_and_git(repository, tmp_path, monkeypatch):
    """No suite.toml, no git: each says what to do."""
    found = bench("add", tmp_path, "--from-git", repository.folder)
    assert "turntrace bench init" in found.stderr
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="needs git"):
        History(repository.folder).newest(1)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("tests/a.json", True),
        ("a/test/b", True),
        ("x_test.go", True),
        ("conftest.py", True),
        ("web/a.spec.ts", True),
        ("contest.py", False),
        ("src/testing_tools.py", False),
    ],
)
def test_what_looks_like_a_test(path, found):
    """By folder or by name."""
    assert is_test(path) is found
