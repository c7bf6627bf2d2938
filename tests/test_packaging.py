"""The package as users get it: what an import loads, what modules export, what the wheel runs."""

import ast
import doctest
import importlib
import os
import pkgutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import turntrace

ROOT = Path(__file__).parents[1]
HEAVY = (
    "opentelemetry.sdk",
    "opentelemetry.exporter",
    "google",
    "grpc",
    "requests",
    "rich",
    "typer",
    "numpy",
    "scipy",
    "orjson",
    "asyncio",
)
START_UP = {"turntrace.__main__", "turntrace.otel.autostart.sitecustomize"}
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(turntrace.__path__, "turntrace.")
    if module.name not in START_UP
)
DOCUMENTED = [
    name
    for name in MODULES
    if name.startswith(("turntrace.core.", "turntrace.files.", "turntrace.otel.", "turntrace.instrument."))
]


def run(code, *options):
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_import_loads_nothing_heavy():
    """An application that records nothing pays for the OpenTelemetry API only."""
    loaded = run("import sys; before = set(sys.modules); import turntrace; print(*set(sys.modules) - before)")
    heavy = [
        name
        for name in loaded.split()
        if any(name == prefix or name.startswith(f"{prefix}.") for prefix in HEAVY)
    ]
    assert heavy == []


@pytest.mark.parametrize("name", [*MODULES, "turntrace"])
def test_every_module_says_what_it_exports(name):
    """``__all__`` is there, its names exist, and none stands in it twice; a bare docstring exports nothing."""
    module = importlib.import_module(name)
    is_bare = len(ast.parse(Path(module.__file__).read_text()).body) == 1
    names = [] if is_bare else module.__all__
    assert len(names) == len(set(names))
    assert [missing for missing in names if not hasattr(module, missing)] == []


@pytest.mark.parametrize("name", sorted(START_UP))
def test_modules_that_run_at_start_say_it_too(name):
    """What cannot be imported for a look has an ``__all__`` in its source."""
    tree = ast.parse((ROOT / "src" / f"{name.replace('.', '/')}.py").read_text())
    targets = [
        ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
    ]
    assert "__all__" in targets


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_in_docstrings_are_true(name):
    """What a docstring shows is what happens."""
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_the_core_teaches_by_example():
    """There are examples at all, so that the test above says something."""
    finder = doctest.DocTestFinder()
    examples = [
        example
        for name in DOCUMENTED
        for test in finder.find(importlib.import_module(name))
        for example in test.examples
    ]
    assert len(examples) > 30


def test_it_imports_where_the_platform_lacks_much():
    """Without fcntl, pty, termios, SIGHUP and fork every module still loads, and a turn is recorded."""
    code = f"""
import os, signal, sys
for name in ("fcntl", "pty", "termios", "tty", "resource", "pwd", "grp"):
    sys.modules[name] = None
for owner, names in ((os, ("fork", "forkpty", "register_at_fork", "getuid", "geteuid", "killpg", "setsid")),
                     (signal, ("SIGHUP", "SIGQUIT", "SIGTSTP", "SIGCONT", "SIGSTOP", "SIGUSR1", "SIGKILL"))):
    for name in names:
        delattr(owner, name)
import importlib
for name in {[*MODULES, "turntrace"]!r}:
    importlib.import_module(name)
import tempfile, turntrace as tt
out = os.path.join(tempfile.mkdtemp(), "t.ndjson")
handle = tt.configure(out)
with tt.turn("a"), tt.tool("bash"):
    pass
handle.shutdown()
written = [os.path.join(os.path.dirname(out), name) for name in os.listdir(os.path.dirname(out))]
print(sum(len(tt.read(path)) for path in written if os.path.getsize(path)))
"""
    assert run(code).strip() == "1"


@pytest.mark.slow
def test_the_wheel_runs_the_demo_in_an_empty_environment(tmp_path):
    """Built, installed with its dependencies and nothing else, ``turntrace demo`` tells a turn and draws it."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    [wheel] = tmp_path.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    binaries = tmp_path / "venv" / "bin"
    install = [binaries / "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel]
    subprocess.run(install, check=True, capture_output=True, timeout=250)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE"))}
    demo = subprocess.run(
        [binaries / "turntrace", "demo", "--view"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert demo.returncode == 0, demo.stderr
    assert "generation" in demo.stdout
    assert "tool_execution" in demo.stdout
