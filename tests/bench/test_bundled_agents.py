"""The bundled agents as programs of their own, and what surrounds a run: set-up, log-in, no sandbox, an interrupt."""

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from turntrace.bench.agents import agent_of
from turntrace.bench.campaign import campaign
from turntrace.bench.isolation_folder import RunFolder, _open_up
from turntrace.bench.isolation_group import ProcessGroups, Watchdog
from turntrace.bench.isolation_sandbox import bubblewrap, interpreter_prefixes
from turntrace.bench.loading import load_suite
from turntrace.bench.order import Turn
from turntrace.bench.probe import Barrier, ProbeServer
from turntrace.bench.reference_agent import BARRIER, MODEL_URL, SERIAL
from turntrace.bench.reference_script import Solution, reference_script
from turntrace.bench.rows import Row
from turntrace.bench.runner import Runner, SetUpError, Wish
from turntrace.bench.sight import program_prefixes
from turntrace.bench.solutions import SolutionError, solution_of
from turntrace.demo.model_server import ModelServer
from turntrace.files.read import read_paths

SOLUTION = Solution(files={"new/a.txt": "x", "old.txt": None}, answer="all done")


def start(module, *words, cwd, **variables):
    """Run a module as an agent; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", f"turntrace.bench.{module}", *words], cwd=cwd, capture_output=True, text=True,
        env={**os.environ, **variables}, timeout=60, input=variables.pop("stdin", None),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "handlers", "serial"), [("fallback", 0, ""), ("parallel", 2, ""), ("parallel", 2, "1")]
)
def test_the_reference_agent_changes_files_and_tells_its_turn(tmp_path, name, handlers, serial):
    """Over real HTTP, with a second model where the first is busy."""
    (tmp_path / "old.txt").write_text("x")
    barrier = Barrier(2, 0.2 if serial else 30)
    probe = ProbeServer(tmp_path / "b", barrier) if handlers else nullcontext()
    with probe, ModelServer(reference_script(name, SOLUTION, handlers)) as server:
        said = start(
            "reference_agent", "solve it", cwd=tmp_path,
            **{MODEL_URL: server.base_url, BARRIER: str(tmp_path / "b"), SERIAL: serial},
            TURNTRACE_TRACE=str(tmp_path / "t.ndjson"),
        )  # fmt: skip
    assert said == "all done"
    assert (tmp_path / "new" / "a.txt").read_text() == "x"
    assert not (tmp_path / "old.txt").exists()
    turn = read_paths([str(tmp_path / "t.ndjson")]).turns[0]
    assert turn.counters["model_requests"] == 3
    if handlers:
        assert barrier.record().verdict == ("serial" if serial else "proven")


def test_a_function_is_an_agent(tmp_path):
    """Its result is the answer, its call a turn."""
    said = start(
        "python_agent", "json", "dumps", "hi", cwd=tmp_path, TURNTRACE_TRACE=str(tmp_path / "t.ndjson")
    )
    assert said == '"hi"\n'
    assert read_paths([str(tmp_path / "t.ndjson")]).turns[0].root_name


def test_the_oracle_applies_a_patch(tmp_path):
    """And says the answer."""
    task = {task.id: task for task in load_suite("mock").tasks}["parallel"]
    shutil.copy(task.fixture / "ledger.py", tmp_path)
    solution = {"patch": (task.folder / "solution.patch").read_text(), "answer": "x"}
    done = subprocess.run(
        [sys.executable, "-m", "turntrace.bench.solving_agent"], cwd=tmp_path, input=json.dumps(solution), text=True,
        capture_output=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "x")
    assert "sum(values)\n" in (tmp_path / "ledger.py").read_text()


@pytest.fixture
def process():
    """No sandbox."""
    with Watchdog() as watchdog:
        yield ProcessGroups(watchdog, threading.Event())


def changed(**fields):
    """The mock suite with one task, changed."""
    from dataclasses import replace

    suite = load_suite("mock")
    return replace(suite, tasks=(replace(suite.tasks[-1], **fields),))


def test_set_up_runs_once_and_is_no_change_of_the_agents(process, tmp_path):
    """The agent starts from what it made, and so does the judge."""
    code = f"open('made.txt','w').write('x'); open({str(tmp_path / 'log')!r},'a').write('.')"
    suite = changed(set_up=((sys.executable, "-c", code),))
    with Runner(suite, Wish(agent=agent_of("oracle", None)), process, os.environ, Path.home()) as runner:
        rows = [runner.run(Turn(suite.tasks[0].id, number, 0)) for number in (1, 2)]
    assert [(row.passed, row.outside) for row in rows] == [(True, ())] * 2
    assert (tmp_path / "log").read_text() == "."


def test_a_set_up_that_fails_stops_with_its_words(process):
    """No run would say anything."""
    suite = changed(set_up=((sys.executable, "-c", "raise SystemExit('no compiler here')"),))
    runner = Runner(suite, Wish(agent=agent_of("oracle", None)), process, os.environ, Path.home())
    with runner, pytest.raises(SetUpError, match="no compiler here"):
        runner.run(Turn(suite.tasks[0].id, 1, 0))


def test_login_files_come_along_only_when_asked(process, tmp_path):
    """Copied into the run's own home."""
    from dataclasses import replace

    (tmp_path / ".agent").mkdir()
    (tmp_path / ".agent" / "auth.json").write_text("{}")
    code = "import os,pathlib; print((pathlib.Path(os.environ['HOME'])/'.agent'/'auth.json').exists())"
    agent = replace(
        agent_of(None, "x"),
        argv=(sys.executable, "-c", f"{code}; raise SystemExit(0)"),
        login=(".agent/auth.json",),
    )
    suite = changed(strict=True)
    for login in (True, False):
        wish = Wish(agent=agent, login=login, trace=False)
        with Runner(suite, wish, process, os.environ, tmp_path) as runner:
            row = runner.run(Turn(suite.tasks[0].id, 1, 0))
        assert row.output_bytes == len(f"{login}\n")


def test_an_interrupt_in_between_keeps_what_had_finished():
    """A run that was cut short has no row."""
    from bench.test_run_parts import ROW

    stopping = threading.Event()
    told: list[Row] = []

    def run(turn):
        return ROW

    def tell(row):
        told.append(row)
        raise KeyboardInterrupt

    assert not campaign([Turn("t", 1, 0), Turn("t", 2, 1)], run, jobs=1, stopping=stopping, tell=tell)
    assert stopping.is_set()
    assert len(told) == 1

    def fail(turn):
        raise ValueError

    with pytest.raises(ValueError):
        campaign([Turn("t", 1, 0)], fail, jobs=1, stopping=stopping, tell=told.append)


def test_where_there_is_no_bubblewrap_the_reason_is_told(monkeypatch, tmp_path):
    """Not installed, broken, or silent about why."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bubblewrap()[0] is None
    assert "not installed" in bubblewrap()[1]
    fake = tmp_path / "bwrap"
    for text, expected in (("echo 'no namespaces' >&2; exit 1", "no namespaces"), ("exit 3", "status 3")):
        fake.write_text(f"#!/bin/sh\n{text}\n")
        fake.chmod(0o755)
        found, why = bubblewrap()
        assert found is None
        assert expected in why


def test_a_program_is_shown_with_its_prefix_and_never_with_the_home(tmp_path, monkeypatch):
    """A program in ~/bin shows ~/bin."""
    for folder in (tmp_path / "bin", tmp_path / "opt" / "x" / "bin"):
        folder.mkdir(parents=True)
        (folder / f"agent-{folder.parent.name}").write_text("#!/bin/sh\n")
        (folder / f"agent-{folder.parent.name}").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{tmp_path / 'opt' / 'x' / 'bin'}")
    assert program_prefixes([f"agent-{tmp_path.name}"], tmp_path) == (tmp_path / "bin",)
    assert program_prefixes(["agent-x"], tmp_path) == (tmp_path / "opt" / "x",)
    assert program_prefixes(["none"], tmp_path) == ()
    assert interpreter_prefixes()


def test_a_task_without_a_solution_cannot_be_played():
    """The way out is in the words."""
    task = changed(folder=None).tasks[0]
    with pytest.raises(SolutionError, match="neither solution"):
        solution_of(task)


def test_what_was_locked_is_removed(tmp_path):
    """A folder closed to its owner, and a link that is only taken away itself."""
    with RunFolder(None) as folder:
        locked = folder.workspace / "locked"
        locked.mkdir()
        (locked / "file").write_text("x")
        locked.chmod(0)
        _open_up(os.rmdir, str(locked), None)
        assert not locked.exists()
        (folder.workspace / "link").symlink_to(tmp_path)
        _open_up(os.unlink, str(folder.workspace / "link"), None)
    assert tmp_path.exists()
