"""Rules of the house that no linter knows."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = sorted(path for path in (ROOT / "tests").rglob("test_*.py"))
MODULES = sorted((ROOT / "src").rglob("*.py"))

MAX_LINES = 400


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_every_test_states_its_rule(path):
    """Each test function has a docstring, so that a failure says which rule broke."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    bare = [node.name for node in functions if node.name.startswith("test_") and not ast.get_docstring(node)]
    assert bare == []


def test_modules_can_be_read_in_one_sitting():
    """No module is longer than the limit."""
    long = {str(path): n for path in MODULES if (n := len(path.read_text().splitlines())) > MAX_LINES}
    assert long == {}


def test_no_module_is_named_after_nothing():
    """No utils, helpers, managers: a module is named by what it holds."""
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "misc"}
    assert {path.stem for path in MODULES} & vague == set()


def test_suppressions_say_why():
    """A noqa, type: ignore or pragma carries its code and a reason."""
    unexplained = [
        f"{path}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for mark in ("# noqa", "# type: ignore", "# pragma")
        if mark in line and len(line.split(mark, 1)[1].strip(": ").split()) < 3
    ]
    assert unexplained == []
