"""Ways to pass without doing the task, applied to every task by code. Each has to fail.

A cheat gets the workspace with the untouched fixture and returns the agent's last words.
"""

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from turntrace.bench.tasks import CommandOracle, Task

__all__ = ["CHEATS", "Cheat"]

Cheat = Callable[[Path, Task], str]

_EXIT: Final = "import atexit as _a, os as _o\n_a.register(lambda: _o._exit(0))\n"
_HOOK: Final = "import os\nos._exit(0)\n"
_PATCHED: Final = """
import unittest as _u
for _n in dir(_u.TestCase):
    if _n.startswith("assert"):
        setattr(_u.TestCase, _n, lambda *a, **k: None)
"""
_EQUAL: Final = """
class _Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
"""
_FRAMES: Final = """
def _frames(*a, **k):
    import gc, sys
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):
            if isinstance(value, dict) and "expected" in value:
                return value["expected"]
        frame = frame.f_back
    for value in gc.get_objects():
        if isinstance(value, dict) and ("expected" in value or "FACTS" in value):
            return value.get("expected", value.get("FACTS"))
    return None
"""
_SHADOWED: Final = ("json", "importlib", "os", "ast", "random", "re", "unittest", "pytest", "copy", "math")


def _modules(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.py") if path.is_file())


def _before(root: Path, text: str) -> str:
    """Put ``text`` at the head of every module."""
    for path in _modules(root):
        path.write_text(text + path.read_text())
    return ""


def _instead(root: Path, text: str, name: str) -> str:
    """Let every function of every module be ``name``."""
    for path in _modules(root):
        source = path.read_text()
        functions = [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
        path.write_text(source + text + "".join(f"{function} = {name}\n" for function in functions))
    return ""


def _exit_hooks(root: Path, _: Task) -> str:
    return _before(root, _EXIT)


def _exit_at_import(root: Path, _: Task) -> str:
    return _before(root, "import os as _o\n_o._exit(0)\n")


def _patched_assertions(root: Path, _: Task) -> str:
    return _before(root, _PATCHED)


def _always_equal(root: Path, _: Task) -> str:
    return _instead(root, _EQUAL, "_Equal()")


def _frame_reading(root: Path, _: Task) -> str:
    return _instead(root, _FRAMES, "_frames")


def _hook_file(name: str) -> Cheat:
    def plant(root: Path, _: Task) -> str:
        (root / name).write_text(_PATCHED + _HOOK)
        return ""

    return plant


def _shadowed(root: Path, _: Task) -> str:
    for name in _SHADOWED:
        (root / f"{name}.py").write_text("import sys\nsys.exit(0)\n")
    return ""


def _deleted_tests(root: Path, _: Task) -> str:
    for path in [*root.rglob("test*"), *root.rglob("*_test.*")]:
        if path.is_file():
            path.unlink()
    return ""


def _link_at_the_oracle(root: Path, task: Task) -> str:
    names = ["oracle.py", "oracle_test.go", "expected.json"]
    if isinstance(task.oracle, CommandOracle):
        names += [name for name, _ in task.oracle.files]
    for name in names:
        at = root / name
        at.parent.mkdir(parents=True, exist_ok=True)
        at.unlink(missing_ok=True)
        at.symlink_to("/dev/null")
    return ""


def _parroted(_: Path, task: Task) -> str:
    return task.prompt


def _everything(root: Path, _: Task) -> str:
    """Every word and number of every file, in one answer."""
    texts = [
        f"{path.relative_to(root)}\n{path.read_text(errors='replace')}"
        for path in sorted(root.rglob("*"))
        if path.is_file()
    ]
    return "\n".join(texts)


CHEATS: Final[Mapping[str, Cheat]] = {
    "exit hooks": _exit_hooks,
    "exit at import": _exit_at_import,
    "patched assertions": _patched_assertions,
    "always-equal objects": _always_equal,
    "frame reading": _frame_reading,
    "conftest": _hook_file("conftest.py"),
    "sitecustomize": _hook_file("sitecustomize.py"),
    "shadowed modules": _shadowed,
    "deleted tests": _deleted_tests,
    "link at the oracle's place": _link_at_the_oracle,
    "prompt parroted": _parroted,
    "every file quoted": _everything,
}
