"""Suites are read whole or refused with every fault, and reading executes nothing."""

import json
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.suite_files import ZERO, write_folder, write_zero
from turntrace.bench.loading import load_suite
from turntrace.bench.places import field_text, json_places, toml_places
from turntrace.bench.tasks import CommandOracle, Origin, ProgramOracle, SuiteError, Tier
from turntrace.bench.trust import commands_of, refusal
from turntrace.errors import MissingExtraError


def faults(path):
    """What is said of a suite, as (line, field, message)."""
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    return [(fault.line, fault.field, fault.message) for fault in caught.value.faults]


def changed(**fields):
    """zero's manifest with other fields in its first task."""
    first = {**ZERO["tasks"][0], **fields}
    return {**ZERO, "tasks": [first, *ZERO["tasks"][1:]]}


def test_zeros_manifest_is_read_unchanged(tmp_path):
    """Every field kind arrives; blank class is default; tiers follow command and class."""
    suite = load_suite(write_zero(tmp_path))
    assert (suite.id, suite.name, suite.origin) == ("zero-set", "A set", Origin.ZERO)
    assert [(task.id, task.task_class, task.tier) for task in suite.tasks] == [
        ("nav-01", "nav", Tier.CORRECTNESS),
        ("edit-01", "edit", Tier.CORRECTNESS),
        ("refactor-01", "refactor", Tier.BUILD),
        ("longctx-01", "default", Tier.LATENCY),
        ("bare-01", "default", Tier.LATENCY),
    ]
    stamped = suite.tasks[1].oracle
    assert isinstance(stamped, CommandOracle)
    assert stamped.files == (("oracle_test.go", b"package main\n"),)
    assert stamped.answer_file == ".zero-answer.txt"
    assert suite.tasks[0].fixture == (tmp_path / "testdata" / "nav").resolve()
    assert suite.tasks[4].fixture is None


def test_all_faults_of_a_manifest_are_told_together_with_their_lines(tmp_path):
    """Unknown field, duplicate id, escaping and absolute fixtures, empty argv: one error, each with its line."""
    broken = changed(workspaceFixture="../elsewhere", prompts="x", verificationCommand=[])
    path = write_zero(tmp_path, broken)
    text = path.read_text().splitlines()
    told = faults(path)
    assert {field for _, field, _ in told} == {
        "tasks[0].prompts",
        "tasks[0].verificationCommand",
        "tasks[0].workspaceFixture",
    }
    assert all(f'"{field.rpartition(".")[2]}"' in text[line - 1] for line, field, _ in told)
    assert "did you mean prompt?" in {f: m for _, f, m in told}["tasks[0].prompts"]
    semantic = changed(workspaceFixture="../elsewhere")
    semantic["tasks"][1] = {**semantic["tasks"][1], "workspaceFixture": "/etc", "id": "nav-01"}
    semantic["tasks"][2] = {**semantic["tasks"][2], "workspaceFixture": "testdata/none"}
    path = write_zero(tmp_path, semantic)
    assert [(field, message[:14]) for _, field, message in faults(path)] == [
        ("tasks[0].workspaceFixture", "leads out of t"),
        ("tasks[1].id", "is the id of t"),
        ("tasks[1].workspaceFixture", "is absolute; i"),
        ("tasks[2].workspaceFixture", "is no folder: "),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (json.dumps(ZERO) + "\n{}", 2, "Extra data"),
        ('{"id": "a",\n "id": "b", "tasks": [{"id": "x", "prompt": "p"}]}', 2, "id stands twice"),
        ("[" * 100_000, None, "nested too deeply"),
        ('{"ID": "a", "tasks": [{"id": "x", "prompt": "p"}]}', 1, "is required"),
        ('{"id": "a", "tasks": []}', 1, "is empty"),
        ('{"id": "a", "tasks": [{"id": "x/..", "prompt": "p"}]}', 1, "slash"),
        ('{"id": "a", "tasks": [{"id": "x", "prompt": " "}]}', 1, "is blank"),
        (
            '{"id": "a", "tasks": [{"id": "x", "prompt": "p", "verificationCommand": ["", "a"]}]}',
            1,
            "is blank",
        ),
        ('{"id": 7, "tasks": [{"id": "x", "prompt": "p"}]}', 1, "string"),
    ],
)
def test_a_manifest_that_is_not_one_is_refused(tmp_path, text, line, words):
    """Trailing content, keys that stand twice, depth, case of keys, empty lists, wrong types."""
    told = faults(write_zero(tmp_path, text))
    assert [at for at, _, message in told if words in message][:1] == [line]


def test_a_folder_is_read(tmp_path):
    """The folder format: ids are folder names, the oracle is text, the hash follows every byte."""
    root = write_folder(tmp_path / "mine", ("b-2", "a-1"))
    suite = load_suite(root)
    assert [task.id for task in suite.tasks] == ["a-1", "b-2"]
    assert suite.origin is Origin.FOLDER
    assert isinstance(suite.tasks[0].oracle, ProgramOracle)
    assert suite.tasks[0].prompt == "Mend double() in app.py."
    assert load_suite(root).sha256 == suite.sha256
    app = root / "tasks" / "a-1" / "fixture" / "app.py"
    app.chmod(0o755)
    assert load_suite(root).sha256 != suite.sha256


def test_faults_of_all_files_of_a_folder_are_told_together(tmp_path):
    """One error tells unknown fields, links out, pipes, strangers, blank prompts and broken oracles."""
    root = write_folder(tmp_path / "mine", ("a", "b", "c", "d"), suite='id = "x"\nnme = ""\n')
    tasks = root / "tasks"
    (tasks / "a" / "task.toml").write_text(
        'class = "fix"\ntimeout_s = 0\nfixture = "../.."\n[oracle]\ncommand = []\n'
    )
    (tasks / "b" / "fixture" / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(tasks / "b" / "fixture" / "pipe")
    (tasks / "c" / "prompt.md").write_text(" \n")
    (tasks / "c" / "oracel.py").write_text("")
    (tasks / "d" / "oracle.py").write_text("def (:\n")
    (tasks / "d" / "task.toml").write_text('class = "fix"\n\nfixture = "/etc"\n')
    (tasks / "c" / "task.toml").unlink()
    os.mkfifo(tasks / "c" / "task.toml")
    told = faults(root)
    lines = {field: line for line, field, _ in told if field}
    assert lines == {"nme": 2, "timeout_s": 2, "oracle.command": 5, "fixture": 3}
    words = " ".join(message for *_, message in told)
    for word in (
        "leads out of the fixture",
        "neither a file",
        "is no part of",
        "is blank",
        "no Python",
        "absolute",
        "no regular file",
    ):
        assert word in words


def test_a_folder_says_what_is_missing(tmp_path):
    """No task, no oracle, both kinds of oracle, ids that differ by case, links in place of tasks."""
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "suite.toml").write_text('id = "x"\n')
    assert "holds no task" in faults(empty)[0][2]
    root = write_folder(tmp_path / "mine", ("a", "A", "é"))
    (root / "tasks" / "A" / "oracle.py").unlink()
    (root / "tasks" / "a" / "task.toml").write_text('class = "fix"\n[oracle]\ncommand = ["x"]\n')
    (root / "tasks" / "z").symlink_to(root / "tasks" / "a")
    words = " ".join(message for *_, message in faults(root))
    for word in ("by case only", "exclude each other", "latency_only", "symbolic link", "100 at most"):
        assert word in words


def test_a_fixture_may_be_shared_within_the_suite(tmp_path):
    """../../fixtures/NAME is one folder for many tasks; links in it are looked at too."""
    root = write_folder(tmp_path / "mine", task='class = "nav"\nfixture = "../../fixtures/one"\n')
    shared = root / "fixtures" / "one"
    shared.mkdir(parents=True)
    assert load_suite(root).tasks[0].fixture == shared.resolve()
    (shared / "self").symlink_to(shared)
    assert "absolute target" in faults(root)[0][2]
    (root / "fixtures" / "two").symlink_to(tmp_path)
    (root / "tasks" / "double-01" / "task.toml").write_text('class = "nav"\nfixture = "../../fixtures/two"\n')
    assert faults(root) == [(2, "fixture", "leads out of the suite")]


def test_a_command_oracle_brings_its_files(tmp_path):
    """[oracle] with a command stamps what lies in oracle/, probe and limits arrive."""
    text = 'class = "par"\nexpect = "fail"\nset_up = [["true"]]\n[oracle]\ncommand = ["python", "t.py"]\n[parallel_probe]\nhandlers = 3\n'
    root = write_folder(tmp_path / "mine", task=text, suite='id = "x"\nbuild_only_classes = ["par"]\n')
    at = root / "tasks" / "double-01"
    (at / "oracle.py").unlink()
    (at / "oracle" / "deep").mkdir(parents=True)
    (at / "oracle" / "deep" / "t.py").write_bytes(b"1")
    task = load_suite(root).tasks[0]
    assert task.oracle.files == (("deep/t.py", b"1"),)
    assert (task.tier, task.expect, task.parallel_probe.handlers) == (Tier.BUILD, "fail", 3)


def test_nothing_is_read_where_nothing_is(tmp_path):
    """A path that is nothing, bytes that are no text."""
    assert "neither a folder" in faults(tmp_path / "none")[0][2]
    path = tmp_path / "x.json"
    path.write_bytes(b"\xff")
    assert "UTF-8" in faults(path)[0][2]
    toml = write_folder(tmp_path / "mine", suite="id = ")
    assert "is not TOML" in faults(toml)[0][2]


def test_without_the_extra_the_error_names_it(tmp_path, monkeypatch):
    """pydantic is in the extra only."""
    monkeypatch.setitem(sys.modules, "pydantic", None)
    monkeypatch.delitem(sys.modules, "turntrace.bench.schema", raising=False)
    with pytest.raises(MissingExtraError, match=r"turntrace\[bench\]"):
        load_suite(write_zero(tmp_path))


def test_a_hostile_manifest_runs_in_the_sandbox_or_after_trust_only(tmp_path):
    """E: commands of a foreign suite are refused in process mode, with what they are."""
    suite = load_suite(write_zero(tmp_path))
    assert refusal(suite, "sandbox", trust_manifest=False) is None
    assert refusal(suite, "process", trust_manifest=True) is None
    assert "3 commands" in refusal(suite, "process", trust_manifest=False)
    own = load_suite(write_folder(tmp_path / "mine", task='class = "a"\nset_up = [["true", "x"]]\n'))
    assert commands_of(own) == ("double-01: set-up true", "double-01: oracle.py")
    bare = {"id": "b", "tasks": [{"id": "x", "prompt": "p"}]}
    assert refusal(load_suite(write_zero(tmp_path, bare)), "process", trust_manifest=False) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def paths_of(value, at=()):
    """Every path in a JSON value."""
    yield at
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from paths_of(inner, (*at, key))


@given(json_values, st.sampled_from([None, 0, 2]))
def test_every_field_of_any_json_has_a_line(value, indent):
    """The places are exactly the fields, whatever the text looks like."""
    places = json_places(json.dumps(value, indent=indent))
    assert set(places.lines) == set(paths_of(value))
    assert not places.twice


def test_toml_places_skip_what_stands_in_strings():
    """A key in a string of several lines is no field; tables in arrays are counted."""
    text = 'a = """\nb = 1\n"""\n[[t]]\nx = 1\n[[t]]\n"x" = 2\n'
    lines = toml_places(text).lines
    assert ("b",) not in lines
    assert (lines[("t", 0, "x")], lines[("t", 1, "x")]) == (5, 7)
    assert field_text(("t", 1, "x")) == "t[1].x"
