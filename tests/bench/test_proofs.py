"""A proof finds weak oracles, flaky ones and those that reject the solution; shipped ones hold."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.suite_files import ORACLE, write_folder
from turntrace.bench.loading import load_suite
from turntrace.bench.matrix import matrix_json, matrix_markdown, matrix_text
from turntrace.bench.mutants import answer_mutants, program_mutants
from turntrace.bench.plain_child import run_plain_child
from turntrace.bench.proofs import SOLUTION_RUNS, prove, prove_task
from turntrace.bench.publishing import patch_text

BROKEN = "def double(number):\n    return number + 2\n"
RIGHT = "def double(number):\n    return number * 2\n"


def suite(folder, oracle=ORACLE, *, solution=RIGHT, task='class = "fix"\n', wrong=None):
    """A suite of one task with a solution."""
    root = write_folder(folder / "mine", task=task)
    at = root / "tasks" / "double-01"
    if oracle is None:
        (at / "oracle.py").unlink()
    else:
        (at / "oracle.py").write_text(oracle)
    if solution is not None:
        (at / "solution.patch").write_text(patch_text({"app.py": BROKEN}, {"app.py": solution}))
    if wrong is not None:
        (at / "mutants").mkdir()
        (at / "mutants" / "w.patch").write_text(wrong)
    return root


def faults(root):
    """Why the only task is not proven."""
    return prove_task(load_suite(root).tasks[0], run_plain_child).faults


def test_the_shipped_suite_is_proven():
    """Every oracle rejects what it has to, and accepts its solution 20 times."""
    proofs = prove(load_suite("examples"), run_plain_child)
    assert [proof.faults for proof in proofs] == [()] * 4
    assert all(proof.count("solution", "pass") == (SOLUTION_RUNS, SOLUTION_RUNS) for proof in proofs)
    assert all(proof.count("wrong", "fail") == (3, 3) for proof in proofs)
    rows = list(matrix_markdown(proofs))
    assert len(rows) == 6
    assert json.dumps(matrix_json(proofs))


def test_a_sound_oracle_is_proven(tmp_path):
    """The task of the tests holds, with a wrong solution of its own."""
    wrong = patch_text({"app.py": BROKEN}, {"app.py": BROKEN.replace("+ 2", "* 3")})
    assert faults(suite(tmp_path, wrong=wrong)) == ()


def test_a_weak_oracle_is_found(tmp_path):
    """An oracle with one input that the fault does not touch accepts the untouched program."""
    weak = ORACLE.replace("draw.randrange(1000)", "2")
    found = faults(suite(tmp_path, weak))
    assert "does not reject untouched fixture: pass" in found


def test_stamped_tests_are_not_proven(tmp_path):
    """p1, p2: the usual design, a test stamped into the agent's folder, passes for who leaves early or patches it."""
    test = "import unittest, app\nclass T(unittest.TestCase):\n    def test_double(self):\n        self.assertEqual(app.double(21), 42)\nunittest.main()\n"
    root = suite(tmp_path, None, task='class = "fix"\n[oracle]\ncommand = ["python3", "test_app.py"]\n')
    holder = root / "tasks" / "double-01" / "oracle"
    holder.mkdir()
    (holder / "test_app.py").write_text(test)
    cheats = {fault.split("cheat ")[1].partition(":")[0] for fault in faults(root) if "cheat" in fault}
    assert {"exit hooks", "exit at import", "patched assertions", "always-equal objects"} <= cheats


def test_a_flaky_oracle_is_found(tmp_path):
    """A verdict that differs once in 20 runs fails the proof."""
    flaky = (
        ORACLE
        + "\n\ndef structure(files):\n    import os\n    return ['unlucky'] if os.urandom(1)[0] % 2 else []\n"
    )
    assert "is flaky: the solution's verdict differs from run to run" in faults(suite(tmp_path, flaky))


def test_what_cannot_be_proven_is_said(tmp_path):
    """No solution, a solution that is rejected, one that does not apply."""
    assert faults(suite(tmp_path / "a", solution=None)) == (
        "has no solution: neither solution.patch nor answer.txt",
    )
    wrong = "def double(number):\n    return number * 4\n"
    assert faults(suite(tmp_path / "b", solution=wrong))[0].startswith("rejects the solution: ")
    root = suite(tmp_path / "c")
    (root / "tasks" / "double-01" / "solution.patch").write_text(
        "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n"
    )
    assert faults(root)[0].startswith("cannot be tried: the patch does not apply: error: none")


EQUIVALENT = (
    "def double(number):\n    if number < 0:\n        return number + number\n    return number * 2\n"
)


def test_equivalent_mutants_are_listed_with_a_reason_and_few(tmp_path):
    """A mutant that does the same passes the proof only where it is listed, and the list is checked."""
    bare = faults(suite(tmp_path / "a", solution=EQUIVALENT))
    names = [
        fault.removeprefix("does not tell the mutant ").removesuffix(" from the solution") for fault in bare
    ]
    assert "app.py:2:7 Lt->LtE" in names
    listed = "".join(
        f'[[equivalent]]\nmutant = "{name}"\nreason = "0 doubled is 0"\n' for name in [*names, "none"]
    )
    found = faults(suite(tmp_path / "b", solution=EQUIVALENT, task=f'class = "fix"\n{listed}'))
    assert found[0] == "lists the mutant none as equivalent, which is none"
    assert "more than 5% of its" in found[1]
    told = '[[equivalent]]\nmutant = "app.py:2:4 return->None"\nreason = "wrong"\n'
    assert faults(suite(tmp_path / "c", task=f'class = "fix"\n{told}'))[0].endswith("which is told apart")


def test_an_answers_mutants_are_tried(tmp_path):
    """An answer oracle that looks for one word does not tell the rest."""
    root = suite(
        tmp_path, "def answer(text):\n    return [] if 'count: 4' in text else ['no']\n", solution=None
    )
    at = root / "tasks" / "double-01"
    (at / "answer.txt").write_text("count: 4\nname: abc\n")
    (at / "mutants").mkdir()
    (at / "mutants" / "five.txt").write_text("count: 5\n")
    found = faults(root)
    assert found == (
        "does not tell the mutant line 2 changed from the solution",
        "does not tell the mutant line 2 left out from the solution",
    )


def test_the_matrix_shows_what_fails(tmp_path):
    """Faults stand below the rows."""
    root = suite(tmp_path, ORACLE.replace("draw.randrange(1000)", "2"))
    lines = list(matrix_text(prove(load_suite(root), run_plain_child)))
    assert lines[1].startswith("double-01  0 of 1")
    assert any(line.startswith("double-01: does not reject untouched") for line in lines)


SOURCE = '''
"""Doc."""
import os
LIMIT: "int" = 3
def f(a: "x", b=True) -> "y":
    """Doc."""
    if not (a < 1 and b is None or "s" in a):
        raise ValueError("text" + "more")
    while a == 2.5:
        a += 1
        print(a)
        del a
    return a + b + LIMIT if b else None
def g():
    return None
'''


def test_mutants_change_one_thing_and_leave_texts_alone():
    """Docstrings, annotations and messages stay; every name stands once; every mutant parses and differs."""
    found = dict(program_mutants(SOURCE))
    assert len(found) == len(list(program_mutants(SOURCE)))
    whole = ast.unparse(ast.parse(SOURCE)) + "\n"
    for text in found.values():
        ast.parse(text)
        assert text != whole
        assert text.count("Doc.") == 2
    names = " ".join(found)
    for piece in (
        "Lt->LtE",
        "Is->IsNot",
        "In->NotIn",
        "And->Or",
        "Or->And",
        "negated",
        "return->None",
        "Eq->NotEq",
        "True->False",
        "s->sX",
        "Raise removed",
        "AugAssign removed",
        "Expr removed",
        "Delete removed",
        "2.5->3.5",
        "#2",
    ):
        assert piece in names, piece
    assert "text->" not in names


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), min_size=1, max_size=4))
def test_answer_mutants_differ(lines):
    """Each mutant is another answer."""
    text = "".join(f"{key}: {number}\n" for key, number in lines)
    assert all(mutant != text for _, mutant in answer_mutants(text))


def test_answer_mutants_of_words():
    """Words are turned round, blank lines skipped, lines without a key changed whole."""
    assert dict(answer_mutants("k: abc\n\nword\n")) == {
        "line 1 left out": "\nword\n",
        "line 1 changed": "k: cba\n\nword\n",
        "line 3 left out": "k: abc\n\n",
        "line 3 changed": "k: abc\n\ndrow\n",
    }


@pytest.mark.parametrize("text", ["a", "aa\n"])
def test_a_palindrome_is_left_out_only(text):
    """What reads the same both ways is no mutant."""
    assert [name for name, _ in answer_mutants(text)] == ["line 1 left out"]
