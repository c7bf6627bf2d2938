"""The judge compares outcomes; what the agent leaves behind can neither fool nor break it."""

import json
import os
import py_compile
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.suite_files import ORACLE, write_folder, write_zero
from turntrace.bench import child_calls, child_oracle
from turntrace.bench.child_values import MAX_DEPTH, tagged
from turntrace.bench.equality import same
from turntrace.bench.judging import judge
from turntrace.bench.loading import load_suite
from turntrace.bench.plain_child import run_plain_child
from turntrace.bench.tasks import CommandOracle, CompletedChild, ProgramOracle, Task, Tier
from turntrace.bench.workspace import put, texts


def task(source=ORACLE, **fields):
    """A task with an oracle program."""
    oracle = ProgramOracle(source=source)
    return Task(
        id="t", task_class="fix", tier=Tier.CORRECTNESS, prompt="p", fixture=None, oracle=oracle, **fields
    )


def verdict(folder, code, source=ORACLE, answer="", run=run_plain_child):
    """What the judge says of app.py with ``code``."""
    if code is not None:
        (folder / "app.py").write_text(code)
    return judge(task(source), folder, answer, 7, run)


RIGHT = "def double(number):\n    return number * 2\n"


def test_the_right_program_passes_and_the_same_seed_says_the_same(tmp_path):
    """20 calls are equal; a wrong program is told by counts, never by values."""
    found = verdict(tmp_path, RIGHT)
    assert (found.status, found.details) == ("pass", {"calls": 20, "equal": 20})
    wrong = "def double(number):\n    return number * 2 if number < 500 else 0\n"
    first, second = verdict(tmp_path, wrong), verdict(tmp_path, wrong)
    assert first == second
    assert first.status == "fail"
    assert first.reason.endswith("the first is app:double: returned another int")


CHEATS = {
    "exit hook": "import atexit, os\natexit.register(lambda: os._exit(0))\n",
    "exit at import": "import os\nos._exit(0)\n",
    "sys.exit": "import sys\nsys.exit(0)\n",
    "always equal": "class E(int):\n    def __eq__(self, other): return True\n    __hash__ = None\ndef double(n): return E(3)\n",
    "frame reading": "import sys\ndef double(n):\n    f = sys._getframe()\n    while f:\n        for v in f.f_locals.values():\n            if isinstance(v, dict) and 'expected' in v: return v['expected']\n        f = f.f_back\n    return 0\n",
    "forged output": "import os\nfor fd in range(3, 12):\n    try: os.write(fd, b'[]')\n    except OSError: pass\ndef double(n): return 0\n",
    "nan": "def double(n): return float('nan')\n",
    "deep": "def double(n):\n    x = []\n    for _ in range(100000): x = [x]\n    return x\n",
    "cycle": "def double(n):\n    x = []\n    x.append(x)\n    return x\n",
    "long": "def double(n): return 'x' * 10**8\n",
    "wide": "def double(n): return [0] * 10**6\n",
    "huge": "def double(n): return 1 << 10**6\n",
    "memory": "def double(n): return len(b'x' * (1 << 33))\n",
    "segfault": "import ctypes\ndef double(n): return ctypes.string_at(0)\n",
    "text": "def double(n): return str(n * 2)\n",
    "raises": "def double(n): raise KeyError(n)\n",
    "nothing": "",
    "no Python": "def (\n",
    "builtins": "import json, builtins\njson.dumps = lambda *a, **k: '[]'\ndef double(n): return 0\n",
}


@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_passes(tmp_path, name):
    """Exit hooks, always-equal objects, frames, forged output, depth, size, crashes: all fail, none is an error."""
    assert verdict(tmp_path, CHEATS[name]).status == "fail"


@pytest.mark.parametrize("name", ["json", "importlib", "sitecustomize", "usercustomize", "os"])
def test_the_agents_files_shadow_nothing(tmp_path, name):
    """A module named as one of the standard library's is not loaded by the child."""
    (tmp_path / f"{name}.py").write_text(
        "import os as o, sys\nsys.stdout.write('owned')\n" if name != "os" else "1/0\n"
    )
    assert verdict(tmp_path, RIGHT).status == "pass"
    (tmp_path / "app.py").unlink()
    assert verdict(tmp_path, None).status == "fail"


def test_what_a_child_can_open_holds_no_expected_value(tmp_path):
    """The child with the agent's code gets inputs only; neither its argv nor its input has the reference."""
    seen = []

    def run(argv, *, cwd, stdin, timeout_s):
        seen.append((cwd, "\n".join(argv), json.loads(stdin)))
        return run_plain_child(argv, cwd=cwd, stdin=stdin, timeout_s=timeout_s)

    source = ORACLE.replace("number * 2", "number * 2  # secret")
    assert verdict(tmp_path, RIGHT, source, run=run).status == "pass"
    (reference_cwd, _, _), (cwd, argv, calls) = seen
    assert (reference_cwd, cwd) == (None, tmp_path)
    assert "secret" not in argv
    assert all(target == "app:double" and len(arguments) == 1 for target, arguments in calls)


def test_what_runs_is_the_source(tmp_path):
    """Bytecode left beside the source, marked as not to be checked, is not what is called."""
    (tmp_path / "app.py").write_text(RIGHT)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(tmp_path / "app.py"), invalidation_mode=mode)
    assert list((tmp_path / "__pycache__").iterdir())
    assert verdict(tmp_path, "def double(n): return 0\n").status == "fail"


def test_inputs_follow_the_seed(tmp_path):
    """Another run's seed draws other inputs, so a table of answers passes once."""
    calls = child_oracle.prepared(names(ORACLE), 7)["calls"]
    table = {arguments[0]: arguments[0] * 2 for _, arguments in calls}
    (tmp_path / "app.py").write_text(f"def double(n): return {table!r}[n]\n")
    assert judge(task(), tmp_path, "", 7, run_plain_child).status == "pass"
    assert judge(task(), tmp_path, "", 8, run_plain_child).status == "fail"


def names(source):
    """The names of an oracle program."""
    found = {}
    exec(source, found)  # noqa: S102 - the tests' own text
    return found


STRUCTURE = """
import ast


def structure(files):
    tree = ast.parse(files.get("app.py", ""))
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return [] if "double" in found else ["double is gone"]
"""


def test_structure_is_read_as_text(tmp_path):
    """An AST oracle sees files, runs none of them, and a text that breaks the parser is the agent's failure."""
    marker = tmp_path / "ran"
    code = f"def double(n): return 1\nopen({str(marker)!r}, 'w')\n"
    assert verdict(tmp_path, code, STRUCTURE).status == "pass"
    assert not marker.exists()
    assert verdict(tmp_path, "def triple(n): return 1\n", STRUCTURE).reason == "double is gone"
    assert verdict(tmp_path, "(" * 5000, STRUCTURE).status == "fail"
    assert verdict(tmp_path, "x = " + "-" * 100_000 + "1\n", STRUCTURE).status == "fail"


def test_an_answer_is_judged_with_nothing_on_disk(tmp_path):
    """The oracle of an answer gets the words; lone surrogates do not stop it."""
    source = "def answer(text):\n    return [] if 'count: 4' in text else ['no count']\n"
    assert verdict(tmp_path, None, source, answer="count: 4\ud800").status == "pass"
    assert verdict(tmp_path, None, source, answer="").reason == "no count"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "has none of calls"),
        ("1/0", "ZeroDivisionError"),
        (ORACLE.replace("range(20)", "range(19)"), "19 calls; at least 20"),
        (ORACLE.replace("number * 2", "object()"), "cannot be compared"),
        ("import sys\nsys.exit()\n", "wrote nothing"),
    ],
)
def test_a_bad_oracle_is_an_error_and_no_verdict(tmp_path, source, reason):
    """What the oracle does wrong is never the agent's."""
    found = verdict(tmp_path, RIGHT, source)
    assert (found.status, reason in found.reason) == ("error", True), found.reason


def test_time_is_bounded(tmp_path, monkeypatch):
    """Code that never ends fails, an oracle that never ends is an error."""
    monkeypatch.setattr("turntrace.bench.judging.CHILD_TIMEOUT_S", 1.0)
    started = time.monotonic()
    assert "too long" in verdict(tmp_path, "def double(n):\n    while True: pass\n").reason
    assert verdict(tmp_path, RIGHT, "while True: pass").status == "error"
    assert time.monotonic() - started < 20


def test_output_is_bounded(tmp_path):
    """More than the bound, or JSON that is too deep, is no outcome."""
    plan = json.dumps(
        {"calls": [["a:b", []]] * 20, "expected": [["v", "int", "0x1"]] * 20, "asks": ["calls"]}
    )
    for flood in (b"[" * 100_000, b"[" + b" " * (5 << 20) + b"]", b"[1]"):
        assert said(tmp_path, plan, flood).status == "fail"
    assert said(tmp_path, plan, json.dumps([7] * 20).encode()).reason.endswith("returned no outcome")


def said(folder, plan, outcomes):
    """The verdict where the children write these bytes."""
    outputs = iter([plan.encode() + b'\n{"faults": []}\n', outcomes])
    return judge(
        task(), folder, "", 1, lambda *a, **k: CompletedChild(status=0, stdout=next(outputs), stderr=b"")
    )


def test_a_task_without_an_oracle_has_no_verdict(tmp_path):
    """Latency-only is said, it is neither pass nor fail."""
    assert judge(replace(task(), oracle=None), tmp_path, "", 1, run_plain_child).status == "none"


def by_command(folder, argv, **fields):
    """The verdict of a command."""
    oracle = CommandOracle(argv=tuple(argv), timeout_s=5.0, **fields)
    return judge(replace(task(), oracle=oracle), folder, "the answer", 1, run_plain_child)


def test_p3_a_link_at_the_oracles_place_is_removed_and_never_followed(tmp_path):
    """The stamped test replaces links, folders and parents that are links; nothing outside is written."""
    outside = tmp_path / "outside"
    outside.mkdir()
    victim = outside / "victim"
    victim.write_text("mine")
    work = tmp_path / "work"
    work.mkdir()
    (work / "oracle_test.go").symlink_to(victim)
    (work / "deep").symlink_to(outside)
    (work / ".zero-answer.txt").mkdir()
    (work / ".zero-answer.txt" / "x").write_text("")
    files = (("oracle_test.go", b"test"), ("deep/victim", b"test"))
    argv = ["grep", "-c", "answer", ".zero-answer.txt"]
    assert by_command(work, argv, files=files, answer_file=".zero-answer.txt").status == "pass"
    assert victim.read_text() == "mine"
    assert (work / "oracle_test.go").read_bytes() == b"test"
    assert (work / "deep" / "victim").read_bytes() == b"test"


def test_a_command_that_does_nothing_does_not_pass(tmp_path):
    """Status, expected lines, time and a missing program decide."""
    assert by_command(tmp_path, ["true"]).status == "pass"
    assert by_command(tmp_path, ["sh", "-c", "echo why; exit 3"]).reason == "why"
    assert by_command(tmp_path, ["false"]).reason == "status 1"
    assert by_command(tmp_path, ["echo", "ran 0"], output_has=("ran 1",)).reason.endswith("ran 1")
    assert by_command(tmp_path, ["echo", "ran 1"], output_has=("ran 1",)).status == "pass"
    assert by_command(tmp_path, ["no-such-program"]).status == "fail"
    slow = replace(CommandOracle(argv=("sleep", "60")), timeout_s=0.2)
    assert "took more" in judge(replace(task(), oracle=slow), tmp_path, "", 1, run_plain_child).reason
    gone = by_command(tmp_path / "gone", ["true"], files=(("a", b""),))
    assert gone.status == "error"


def test_zeros_tests_are_stamped(tmp_path):
    """A task of zero's manifest is judged by its command over the answer file."""
    suite = load_suite(write_zero(tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    assert judge(suite.tasks[0], work, "Count: 2", 1, run_plain_child).status == "pass"
    assert judge(suite.tasks[0], work, "many", 1, run_plain_child).status == "fail"


def test_a_folders_task_is_judged(tmp_path):
    """From disk to verdict."""
    only = load_suite(write_folder(tmp_path / "mine")).tasks[0]
    assert judge(only, only.fixture, "", 1, run_plain_child).status == "fail"
    (only.fixture / "app.py").write_text(RIGHT)
    assert judge(only, only.fixture, "", 1, run_plain_child).status == "pass"


def test_a_left_workspace_is_read_without_following_or_blocking(tmp_path):
    """Links, pipes, binaries and large files are left out."""
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bin").write_bytes(b"\xff")
    (tmp_path / "big").write_bytes(b"x" * (1024 * 1024 + 1))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("x")
    assert texts(tmp_path) == {"a.py": "1"}


def test_a_file_is_put_where_a_file_was(tmp_path):
    """A plain file in the place of a folder gives way."""
    (tmp_path / "a").write_text("")
    put(tmp_path, "a/b/c.txt", b"1")
    put(tmp_path, "a/b/c.txt", b"2")
    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == b"2"


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
        | st.frozensets(st.integers() | st.text(), max_size=4)
    ),
    max_leaves=12,
)


@given(plain)
def test_a_value_equals_its_own_encoding(value):
    """Encoding is stable and survives JSON; a value differs from one wrapped in a list."""
    first = json.loads(json.dumps(tagged(value)))
    assert same(first, json.loads(json.dumps(tagged(value))))
    assert not same(first, tagged([value]))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (1, 1.0),
        ([1], (1,)),
        ("1", 1),
        (b"a", "a"),
        (0.1, 0.2),
        (float("nan"), 1.0),
        ({1: 2}, {1: 3}),
        ([1], [1, 2]),
    ],
)
def test_different_values_differ(left, right):
    """Types are exact, contents too."""
    assert not same(tagged(left), tagged(right))


def test_sums_in_another_order_are_equal():
    """Floats have a tolerance, which forged floats do not use."""
    assert same(tagged(0.1 + 0.2), tagged(0.3))
    assert same(tagged(float("nan")), tagged(float("nan")))
    assert not same(["v", "float", "0x1p0"], ["v", "float", "no number"])
    assert same(tagged({1, 2}), tagged({2, 1}))


def test_bounds_of_values():
    """Depth, objects and subclasses are out of bounds."""
    deep = 1
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    assert tagged(deep) == ["x", "too deep"]
    assert tagged(object()) == ["x", "no plain value"]
    assert tagged(type("S", (str,), {})("a"))[0] == "x"


def test_the_children_are_programs_too(tmp_path, monkeypatch):
    """Run as modules they do what the judge's children do."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "app_of_children.py").write_text("class A:\n    def f(x): return x\n")
    assert child_calls.outcome("app_of_children:A.f", [1]) == ["v", "int", "0x1"]
    assert child_calls.outcome("app_of_children:A.g", [1]) == ["e", "AttributeError"]
    request = {"source": ORACLE, "seed": 1, "answer": "", "files": {}}
    done = subprocess.run(
        [sys.executable, "-m", "turntrace.bench.child_oracle"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
    )
    first, second = done.stdout.splitlines()
    assert len(json.loads(first)["expected"]) == 20
    assert json.loads(second) == {"faults": []}
    done = subprocess.run(
        [sys.executable, "-m", "turntrace.bench.child_calls"],
        input='[["app_of_children:A.f", [2]]]',
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert json.loads(done.stdout) == [["v", "int", "0x2"]]


def test_the_oracles_child_keeps_what_it_says_short():
    """Faults of structure and answer come together, cut in number and length; no question is no fault."""
    names = {"structure": lambda files: ["x" * 900] * 15, "answer": lambda text: [text] * 15}
    found = child_oracle.faults(names, "no", {})
    assert (len(found), len(found[0]), found[-1]) == (20, 200, "no")
    assert child_oracle.faults({}, "no", {}) == []
    assert child_oracle.prepared({}, 1) == {"calls": [], "expected": [], "asks": []}


def test_what_is_too_large_or_not_finite_is_encoded_so():
    """Long texts and numbers are out of bounds, infinite floats are not."""
    assert tagged("x" * 70_000) == ["x", "too large"]
    assert tagged(1 << 70_000) == ["x", "too large"]
    assert tagged(float("-inf")) == ["v", "float", "-inf"]
    assert tagged([None] * 20_000) == ["x", "too many items"]
