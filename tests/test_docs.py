"""The documents are executed: python blocks run, console blocks give what they show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from turntrace.core.contract import PHASES

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "docs/instrumenting.md", "docs/how-it-works.md")
BIN = Path(sys.executable).parent


def blocks(document, language):
    """The fenced blocks of a language in a document, with their first lines."""
    tokens = MarkdownIt().parse((ROOT / document).read_text())
    return [(t.map[0] + 1, t.content) for t in tokens if t.type == "fence" and t.info.strip() == language]


def cases(language):
    """Every block as a test case."""
    return [
        pytest.param(document, code, id=f"{document}:{line}")
        for document in DOCUMENTS
        for line, code in blocks(document, language)
    ]


def run(command, folder):
    """Run a command where the package's commands are found; its standard output."""
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("document", "code"), cases("python"))
def test_python_blocks_run(document, code, tmp_path):
    """Each python block is a program that ends well."""
    script = tmp_path / "block.py"
    script.write_text(code)
    run([sys.executable, "-W", "error", str(script)], tmp_path)


def test_the_readme_shows_what_the_demo_prints(tmp_path):
    """The first command of the README prints what stands below it, figures aside."""
    _, block = blocks("README.md", "console")[0]
    command, _, shown = block.partition("\n")
    assert command == "$ turntrace demo"
    printed = run(["turntrace", "demo"], tmp_path)
    assert stable_rows(shown) == stable_rows(printed)


def stable_rows(text):
    """The rows that a busy machine does not change, without figures: all but small and folded phases."""
    rows = set()
    for line in text.splitlines():
        share = re.match(r"\s*\S+(?: more phases)?\s+\d+\.\d{3}\s+(\d+\.\d)\s", line)
        is_small = share is not None and float(share[1]) < 10
        if (
            not is_small
            and " after " not in line
            and "first tool" not in line
            and not line.startswith("first")
        ):
            rows.add(
                re.sub(r" +", " ", re.sub(r"[\d.,]+", "0", re.sub(r"\d{8}-\d{6}", "DATE", line))).strip()
            )
    return rows


def test_the_readmes_other_commands_work(tmp_path):
    """What the README says to type works on the file that its python block writes."""
    _, code = blocks("README.md", "python")[0]
    (tmp_path / "agent.py").write_text(code)
    run([sys.executable, "agent.py"], tmp_path)
    for _, block in blocks("README.md", "console")[1:]:
        for line in block.splitlines():
            run(line.removeprefix("$ ").split(), tmp_path)


def test_the_readme_fits_and_is_honest_about_links():
    """The README is short, and what it links to exists."""
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 150
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target


def test_every_phase_is_in_the_documents():
    """The table of phases says what the contract says, planned ones marked."""
    text = (ROOT / "docs/instrumenting.md").read_text()
    for phase in PHASES.values():
        name = f"`{phase.name}`" + (" *(planned)*" if phase.planned else "")
        assert f"| {name} | {phase.kind} | {phase.controllable} | {phase.meaning} |" in text
