"""The holes of the harness before this one, P1 to P15, as far as suites and oracles have them, and D5."""

import re
import shutil

import pytest

from turntrace.bench.attempts import apply_patch, workspace_of
from turntrace.bench.cheats import CHEATS
from turntrace.bench.judging import judge
from turntrace.bench.loading import load_suite
from turntrace.bench.plain_child import run_plain_child
from turntrace.bench.proofs import prove_task
from turntrace.bench.tasks import CommandOracle, ProgramOracle, Tier
from turntrace.bench.trees import tree_sha256

TASKS = load_suite("examples").tasks
each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)


def verdict(task, attempt):
    """The verdict after ``attempt`` has changed a copy of the fixture; it returns the answer."""
    with workspace_of(task) as at:
        return judge(task, at, attempt(at), 3, run_plain_child).status


@each_task
def test_p1_deleting_files_passes_nothing(task):
    """Without tests, without the fixture's files, without anything: no oracle passes."""
    assert verdict(task, lambda at: CHEATS["deleted tests"](at, task)) == "fail"

    def emptied(at):
        shutil.rmtree(at)
        at.mkdir()
        return ""

    assert verdict(task, emptied) == "fail"


@each_task
@pytest.mark.parametrize(
    "name", ["exit at import", "exit hooks", "conftest", "sitecustomize", "patched assertions"]
)
def test_p2_a_planted_start_passes_nothing(task, name):
    """What runs before or instead of a test decides nothing."""
    assert verdict(task, lambda at: CHEATS[name](at, task)) == "fail"


@each_task
def test_p3_a_link_at_the_oracles_place_leads_nowhere(task, tmp_path):
    """Nothing is written through it and nothing passes."""
    victim = tmp_path / "victim"
    victim.write_text("mine")

    def linked(at):
        for name in ("oracle.py", "oracle_test.go", ".zero-answer.txt"):
            (at / name).symlink_to(victim)
        return ""

    assert verdict(task, linked) == "fail"
    assert victim.read_text() == "mine"


@each_task
def test_p13_an_answer_cannot_be_guessed_from_the_prompt(task):
    """The words of the prompt, alone or with every file, do not pass."""
    assert verdict(task, lambda at: task.prompt) == "fail"
    assert verdict(task, lambda at: CHEATS["every file quoted"](at, task)) == "fail"


def test_p4_a_parallel_task_needs_every_file(tmp_path):
    """No file of the parallel task can be left unread: without it the answer is not to be had."""
    [task] = [task for task in TASKS if task.task_class == "parallel"]
    right = (task.folder / "answer.txt").read_text()
    facts = [
        re.findall(r"^(?:settled|mark) (\w+)$", path.read_text(), re.MULTILINE)
        for path in sorted((task.fixture / "ledgers").iterdir())
    ]
    assert len(facts) == 6
    numbers = [int(word) for fact in facts for word in fact if word.isdigit()]
    assert f"sum: {sum(numbers)}\n" in right
    assert all(word in right for fact in facts for word in fact if not word.isdigit())


def test_p15_the_solution_of_every_task_matches_the_published_tiers():
    """A run of the reference solutions end to end gives the tiers that the suite says."""
    passed = {}
    for task in TASKS:
        patch, answer = task.folder / "solution.patch", task.folder / "answer.txt"

        def solve(at, patch=patch, answer=answer):
            if patch.exists():
                apply_patch(at, patch.read_bytes(), run_plain_child)
            return answer.read_text() if answer.exists() else ""

        passed[task.id] = (task.tier, verdict(task, solve))
    assert set(passed.values()) == {(Tier.CORRECTNESS, "pass")}


def test_d5_a_task_that_is_not_parallel_has_no_probe():
    """Only tasks of the class parallel ask for a record of overlap."""
    assert {task.task_class: task.parallel_probe is not None for task in TASKS} == {
        "edit": False,
        "fix": False,
        "nav": False,
        "parallel": True,
    }


def test_the_fixture_is_byte_identical_after_a_proof():
    """Some fifty attempts on copies leave the checked-in folder as it was."""
    task = next(task for task in TASKS if task.id == "fix-windows")
    before = tree_sha256(task.folder)
    prove_task(task, run_plain_child)
    assert tree_sha256(task.folder) == before


def test_shipped_oracles_are_programs():
    """Tests stamped beside the agent's files are for zero's manifests and commands, never for shipped tasks."""
    assert all(
        isinstance(task.oracle, ProgramOracle) and not isinstance(task.oracle, CommandOracle)
        for task in TASKS
    )
