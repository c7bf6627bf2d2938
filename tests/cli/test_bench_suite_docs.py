"""docs/bench-suites.md is executed: commands give what it shows, and its matrix is the suite's."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.suite_files import write_folder
from turntrace.bench.loading import load_suite
from turntrace.bench.matrix import matrix_markdown
from turntrace.bench.plain_child import run_plain_child
from turntrace.bench.proofs import prove
from turntrace.cli.main import app

TEXT = (Path(__file__).parents[2] / "docs" / "bench-suites.md").read_text()


def masked(text):
    """Hashes as dots: every commit and every change of a suite gives others."""
    return re.sub(r"\b[0-9a-f]{10,64}\b", "…", text)


def commit(folder, message):
    """Commit all of a folder."""
    who = {f"GIT_{role}_{what}": "t@t" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", message]):
        subprocess.run(["git", *words], cwd=folder, env=env, check=True)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a broken suite and a repository."""
    monkeypatch.chdir(tmp_path)
    text = 'class = "fix"\nstrcit = true\ntimeout_s = 0\nfixture = "/etc"\n'
    one = write_folder(tmp_path / "broken", ("one",), task=text) / "tasks" / "one"
    (one / "prompt.md").write_text("\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text("def double(n):\n    return n + 2\n")
    commit(project, "First")
    (project / "app.py").write_text("def double(n):\n    return n * 2\n")
    (project / "test_app.py").write_text("from app import double\nassert double(4) == 8\n")
    commit(project, "Mend double")
    (project / "README.md").write_text("more")
    commit(project, "Say more")
    return tmp_path


def test_the_commands_show_what_the_document_shows(here):
    """In the order of the document, in one folder."""
    count = 0
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found = CliRunner().invoke(app, shlex.split(command)[1:])
            assert found.exit_code in {0, 1}, found.output
            assert masked(found.stdout) == masked(shown), command
            count += 1
    assert count == 6


def test_the_matrix_is_that_of_the_shipped_suite():
    """The table of the document is what a proof gives now."""
    assert "\n".join(matrix_markdown(prove(load_suite("examples"), run_plain_child))) in TEXT
