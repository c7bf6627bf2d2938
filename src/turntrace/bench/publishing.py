"""Writing the tasks of templates as a folder: what is shipped, and what --suite-seed would draw anew."""

import difflib
import inspect
import json
import pprint
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Final

from turntrace.bench.shipped import SUITES
from turntrace.bench.templates import edit_rename, fix_windows, nav_setting, parallel_ledgers
from turntrace.bench.trees import tree_sha256
from turntrace.bench.variants import Attempt, Variant

__all__ = ["EXAMPLES", "TEMPLATES", "oracle_source", "patch_text", "write_examples", "write_task"]

TEMPLATES: Final[Mapping[str, ModuleType]] = {
    "nav-setting": nav_setting,
    "edit-rename": edit_rename,
    "fix-windows": fix_windows,
    "parallel-ledgers": parallel_ledgers,
}
EXAMPLES: Final = "examples"
_SEED: Final = 1
_OTHER_SEED: Final = 2
_HEAD: Final = (
    '"""Written by turntrace from the template {name}, seed {seed}; change the template instead."""\n\n'
)
_IMPORTS: Final = "import ast\nimport random\nimport re\nfrom typing import Any\n\n"


def write_examples(root: Path = SUITES / EXAMPLES, seed: int = _SEED) -> None:
    """Write the suite of one task a template to ``root``; what is there is replaced."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    head = f'id = "{EXAMPLES}"\nname = "Examples"\n'
    (root / "suite.toml").write_text(f'{head}description = "One task of each class that has a template."\n')
    for name in TEMPLATES:
        write_task(root / "tasks" / name, name, seed)


def write_task(folder: Path, name: str, seed: int) -> None:
    """Write the task that the template ``name`` makes of ``seed``."""
    template = TEMPLATES[name]
    made: Variant = template.variant(seed)
    for relative, text in made.files.items():
        _write(folder / "fixture" / relative, text)
    _write(folder / "prompt.md", made.prompt + "\n")
    _write(folder / "task.toml", _task_toml(template.TASK_CLASS, made))
    _write(folder / "oracle.py", oracle_source(name, seed))
    _write_attempt(folder, "solution", "answer", made, made.solution)
    other: Variant = template.variant(_other_seed(template, made, seed))
    attempts = {**made.wrong, "of-another-variant": other.solution}
    for label, attempt in attempts.items():
        _write_attempt(folder / "mutants", label, label, made, attempt)


def _other_seed(template: ModuleType, made: Variant, seed: int) -> int:
    """The next seed that gives another solution: names are drawn from few words."""
    other = seed + _OTHER_SEED - _SEED
    while template.variant(other).solution == made.solution:
        other += 1
    return other


def oracle_source(name: str, seed: int) -> str:
    """The oracle of a variant as a program of its own: its facts, then the template's functions."""
    template = TEMPLATES[name]
    facts = pprint.pformat(dict(template.variant(seed).facts), sort_dicts=False)
    functions = "\n\n".join(inspect.getsource(function) for function in template.ORACLE)
    return f"{_HEAD.format(name=name, seed=seed)}{_IMPORTS}FACTS = {facts}\n\n\n{functions}"


def patch_text(before: Mapping[str, str], after: Mapping[str, str | None]) -> str:
    """A patch for ``git apply`` that turns the files of ``before`` that ``after`` names into its own."""
    text = ""
    for path in sorted(after):
        old, new = before.get(path), after[path]
        text += "".join(
            difflib.unified_diff(
                (old or "").splitlines(keepends=True),
                (new or "").splitlines(keepends=True),
                "/dev/null" if old is None else f"a/{path}",
                "/dev/null" if new is None else f"b/{path}",
            )
        )
    return text


def _write_attempt(folder: Path, patch: str, answer: str, made: Variant, attempt: Attempt) -> None:
    if attempt.files:
        _write(folder / f"{patch}.patch", patch_text(made.files, attempt.files))
    if attempt.answer:
        _write(folder / f"{answer}.txt", attempt.answer)


def _task_toml(task_class: str, made: Variant) -> str:
    text = f'class = "{task_class}"\ntimeout_s = 300\n'
    if made.probe is not None:
        text += f"\n[parallel_probe]\nhandlers = {made.probe.handlers}\ntimeout_s = {made.probe.timeout_s}\n"
    for mutant, reason in made.equivalent.items():
        text += f"\n[[equivalent]]\nmutant = {json.dumps(mutant)}\nreason = {json.dumps(reason)}\n"
    return text


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    write_examples()
    print(tree_sha256(SUITES / EXAMPLES))  # noqa: T201 - the hash for turntrace.bench.shipped
