"""Shipped tasks: what is committed is what the templates write, and the templates can be drawn anew."""

import compileall
import re
import subprocess

import pytest

from turntrace.bench.loading import load_suite
from turntrace.bench.plain_child import run_plain_child
from turntrace.bench.proofs import prove_task
from turntrace.bench.publishing import EXAMPLES, TEMPLATES, oracle_source, patch_text, write_examples
from turntrace.bench.shipped import PUBLISHED, SUITES
from turntrace.bench.tasks import Origin, Tier
from turntrace.bench.trees import files_of, tree_sha256

SEEDS = range(1, 13)


def contents(root):
    """Every file with its bytes."""
    return {path.relative_to(root): path.read_bytes() for path in files_of(root)}


def test_the_committed_suite_is_what_the_templates_write(tmp_path):
    """`python -m turntrace.bench.publishing` would change nothing."""
    write_examples(tmp_path / EXAMPLES)
    assert contents(tmp_path / EXAMPLES) == contents(SUITES / EXAMPLES)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_shipped_suite_is_trusted_by_its_hash(name, tmp_path):
    """The published hash is that of the files; one changed byte and it is a stranger's folder."""
    assert tree_sha256(SUITES / name) == PUBLISHED[name]
    assert load_suite(name).origin is Origin.SHIPPED
    subprocess.run(["cp", "-r", SUITES / name, tmp_path], check=True)
    assert load_suite(tmp_path / name).origin is Origin.SHIPPED
    compileall.compile_dir(tmp_path / name, quiet=2)  # as installers do
    assert list((tmp_path / name).rglob("*.pyc"))
    assert load_suite(tmp_path / name).origin is Origin.SHIPPED
    prompt = next((tmp_path / name / "tasks").glob("*/prompt.md"))
    prompt.write_text(prompt.read_text() + ".")
    assert load_suite(tmp_path / name).origin is Origin.FOLDER


def test_the_published_tiers_are_the_suites():
    """Four classes, every task with an oracle of its own."""
    suite = load_suite(EXAMPLES)
    assert {task.id: (task.task_class, task.tier) for task in suite.tasks} == {
        "edit-rename": ("edit", Tier.CORRECTNESS),
        "fix-windows": ("fix", Tier.CORRECTNESS),
        "nav-setting": ("nav", Tier.CORRECTNESS),
        "parallel-ledgers": ("parallel", Tier.CORRECTNESS),
    }
    assert [task.id for task in suite.tasks if task.parallel_probe] == ["parallel-ledgers"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_prompt_never_holds_its_answers_values(name, seed):
    """What the answer has to say is in the fixture only; every variant brings two wrong solutions."""
    made = TEMPLATES[name].variant(seed)
    assert len(made.wrong) == 2
    if made.solution.answer:
        values = re.findall(r": (\S+)", made.solution.answer)
        assert values
        words = set(re.findall(r"[\w./-]+", made.prompt))
        assert [value for value in values if value in words] == []


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_seed_always_makes_the_same_task_and_seeds_differ(name):
    """Fresh seeds draw fresh tasks."""
    template = TEMPLATES[name]
    assert template.variant(3) == template.variant(3)
    assert len({str(template.variant(seed)) for seed in SEEDS}) > len(SEEDS) // 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TEMPLATES)
def test_the_functions_of_a_template_judge_every_variant(name, seed, monkeypatch, tmp_path):
    """In this process, so that a fault shows where it is: right passes, both wrong ones do not."""
    template = TEMPLATES[name]
    made = template.variant(seed)
    monkeypatch.setattr(template, "FACTS", dict(made.facts))
    assert judged(template, made, made.solution, seed) == "right"
    for attempt in made.wrong.values():
        assert judged(template, made, attempt, seed) == "wrong"
    assert judged(template, made, type(made.solution)(), seed) == "wrong"
    compile(oracle_source(name, seed), "oracle.py", "exec")


def judged(template, made, attempt, seed):
    """What the oracle functions of a template say of an attempt."""
    files = {**made.files, **attempt.files}
    faults = []
    if hasattr(template, "answer"):
        faults += template.answer(attempt.answer)
    if hasattr(template, "structure"):
        faults += template.structure(files)
    if hasattr(template, "calls") and not faults:
        faults += different(template, files, seed)
    return "wrong" if faults else "right"


def different(template, files, seed):
    """Calls whose outcome is not the reference's, made in this process with the files as modules."""
    import sys
    import types

    modules = {}
    for path in sorted(
        files, key=lambda path: (path.count("/"), "__init__" not in path, "pricing" not in path, path)
    ):
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        module = modules[name] = sys.modules[name] = types.ModuleType(name)
        if "__init__" in path:
            module.__path__ = []
        exec(files[path], module.__dict__)  # noqa: S102 - the template's own text
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, module)
    try:
        wrong = []
        for target, arguments in template.calls(seed):
            module, _, name = target.partition(":")
            expected = outcome(template.reference, [name, *arguments])
            if outcome(getattr(modules[module], name, None), arguments) != expected:
                wrong.append(target)
        return wrong
    finally:
        for name in modules:
            sys.modules.pop(name, None)


def outcome(function, arguments):
    """A value or the type of an exception."""
    try:
        return function(*arguments)
    except Exception as error:
        return type(error)


def test_a_patch_makes_changes_and_removes(tmp_path):
    """git takes what patch_text writes: changed, new and deleted files."""
    before = {"a.txt": "1\n2\n", "b.txt": "gone\n"}
    for name, text in before.items():
        (tmp_path / name).write_text(text)
    text = patch_text(before, {"a.txt": "1\n3\n", "b.txt": None, "c/d.txt": "new\n"})
    subprocess.run(["git", "apply", "-"], input=text, text=True, cwd=tmp_path, check=True)
    assert contents(tmp_path) == {
        path.relative_to(tmp_path): b
        for path, b in [(tmp_path / "a.txt", b"1\n3\n"), (tmp_path / "c/d.txt", b"new\n")]
    }


def test_another_seed_is_proven_too(tmp_path):
    """A suite drawn anew holds as the published one does."""
    write_examples(tmp_path / "fresh", seed=11)
    task = load_suite(tmp_path / "fresh").tasks[1]
    assert prove_task(task, run_plain_child).faults == ()
