"""Suites on disk for the tests."""

import json

ZERO = {
    "id": "zero-set",
    "name": "A set",
    "description": "Every kind of field.",
    "buildOnlyClasses": ["refactor"],
    "tasks": [
        {
            "id": "nav-01",
            "name": "count",
            "class": "nav",
            "prompt": "Count the files.",
            "workspaceFixture": "testdata/nav",
            "verificationCommand": ["grep", "-qi", "count: *2", ".zero-answer.txt"],
        },
        {
            "id": "edit-01",
            "class": "edit",
            "prompt": "Set the version.",
            "workspaceFixture": "testdata/nav",
            "verificationCommand": ["go", "test", "./..."],
            "oracleTest": "package main\n",
        },
        {
            "id": "refactor-01",
            "class": "refactor",
            "prompt": "Split it.",
            "workspaceFixture": "testdata/nav",
            "verificationCommand": ["go", "vet"],
        },
        {"id": "longctx-01", "class": " ", "prompt": "Sum it up.", "workspaceFixture": "testdata/nav"},
        {"id": "bare-01", "prompt": "Say hello."},
    ],
}


def write_zero(folder, manifest=ZERO):
    """The manifest with its fixture; the path of the manifest."""
    fixture = folder / "testdata" / "nav"
    fixture.mkdir(parents=True, exist_ok=True)
    (fixture / "main.go").write_text("package main\n")
    (fixture / "go.mod").write_text("module nav\n")
    path = folder / "baseline.json"
    path.write_text(manifest if isinstance(manifest, str) else json.dumps(manifest, indent=2))
    return path


ORACLE = """
import random


def calls(seed):
    draw = random.Random(seed)
    return [["app:double", [draw.randrange(1000)]] for _ in range(20)]


def reference(function, number):
    return number * 2
"""


def write_folder(folder, tasks=("double-01",), *, suite='id = "mine"\n', task='class = "fix"\n'):
    """A suite with one kind of task: double() is to be mended; the folder."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "suite.toml").write_text(suite)
    for name in tasks:
        at = folder / "tasks" / name
        (at / "fixture").mkdir(parents=True)
        (at / "task.toml").write_text(task)
        (at / "prompt.md").write_text("Mend double() in app.py.\n")
        (at / "fixture" / "app.py").write_text("def double(number):\n    return number + 2\n")
        (at / "oracle.py").write_text(ORACLE)
    return folder
