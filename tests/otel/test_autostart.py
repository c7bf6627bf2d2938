"""What happens in a Python that run started, before its own code runs."""

import importlib
import json
import os
import subprocess
import sys
import textwrap
import types
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from turntrace.files.read import read_paths
from turntrace.otel import autostart
from turntrace.otel.autostart import sitecustomize
from turntrace.otel.launch import Plan, child_environment, new_traceparent, read_notes

FOLDER = str(Path(autostart.__file__).parent)

STATE = """
    import json, os, sys
    print(json.dumps({
        "variables": sorted(name for name in os.environ if name.startswith(("OTEL", "TURNTRACE", "TRACE", "PYTHONPATH"))),
        "pythonpath": os.environ.get("PYTHONPATH"),
        "path": sys.path,
        "recorded": "turntrace.otel.setup" in sys.modules,
        "sitecustomize": getattr(sys.modules.get("sitecustomize"), "__file__", None),
    }))
"""
AGENT = """
    from opentelemetry import trace
    tracer = trace.get_tracer("agent")
    with tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent"}):
        with tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
            pass
"""


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """An interpreter without turntrace."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


@pytest.fixture
def plan(tmp_path):
    """How run would start a direct child."""
    return Plan(
        trace=str(tmp_path / "out.ndjson"),
        traceparent=new_traceparent(),
        agent="bot",
        notes=str(tmp_path / "notes"),
        parent_pid=os.getpid(),
    )


def start(plan, *arguments, python=sys.executable, **env):
    """Start Python as run does; its standard error has to be empty."""
    command = [python, *arguments]
    given = {**os.environ, **env}
    done = subprocess.run(
        command, env=child_environment(given, plan), capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def state(plan, *, python=sys.executable, **env):
    """What the agent's code sees of its own process."""
    return json.loads(start(plan, "-c", textwrap.dedent(STATE), python=python, **env))


def outcomes(plan):
    """What the Pythons told run."""
    return [note.outcome for note in read_notes(Path(plan.notes))]


def test_an_agent_that_knows_only_the_api_is_recorded(plan):
    """Its spans become a turn in the file, with nothing but the environment changed."""
    start(plan, "-c", textwrap.dedent(AGENT))

    (turn,) = read_paths([plan.trace]).turns
    assert [span.phase for span in turn.spans] == ["generation"]
    assert turn.trace_id == plan.traceparent.split("-")[1]
    assert outcomes(plan) == ["started"]


def test_nothing_that_starts_recording_is_left(plan):
    """The agent finds its own path and environment, with the file and the parent added."""
    found = state(plan, PYTHONPATH="/mine")

    assert found["recorded"]
    assert found["variables"] == ["PYTHONPATH", "TRACEPARENT", "TURNTRACE_TRACE"]
    assert found["pythonpath"] == "/mine"
    assert FOLDER not in found["path"]
    assert "/mine" in found["path"]


def test_a_path_that_was_not_set_is_not_set_afterwards(plan):
    """PYTHONPATH is gone again when it had not been there."""
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", textwrap.dedent(STATE)]
    done = subprocess.run(
        command, env=child_environment(env, plan), capture_output=True, timeout=60, check=True
    )

    assert json.loads(done.stdout)["pythonpath"] is None


def test_pythons_that_the_agent_starts_are_left_alone(plan):
    """A child process of the agent is not instrumented and has no setting of ours that would do it."""
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {textwrap.dedent(STATE)!r}], check=True)"
    found = json.loads(start(plan, "-c", code))

    assert not found["recorded"]
    assert found["variables"] == ["TRACEPARENT", "TURNTRACE_TRACE"]
    assert outcomes(plan) == ["started"]


def test_with_children_they_are_recorded(plan):
    """The whole environment is kept when that was asked for."""
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {textwrap.dedent(STATE)!r}], check=True)"
    found = json.loads(start(replace(plan, children=True), "-c", code))

    assert found["recorded"]
    assert "TURNTRACE_RUN_CHILDREN" in found["variables"]
    assert not [name for name in found["variables"] if name.startswith("OTEL")]


def test_a_python_that_is_not_the_direct_child_is_not_the_agent(plan):
    """A program in between that cleaned nothing up does not make its children agents."""
    code = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], check=True)"
    found = json.loads(start(plan, "-I", "-c", code, "-c", textwrap.dedent(STATE)))

    assert not found["recorded"]
    assert found["variables"] == ["TRACEPARENT", "TURNTRACE_TRACE"]
    assert outcomes(plan) == []


def test_a_python_without_turntrace_runs_as_if_nothing_had_been(plan, bare_python):
    """It says nothing, finds a clean environment, and run learns which Python it was."""
    found = state(plan, python=bare_python)

    assert not found["recorded"]
    assert found["variables"] == ["TRACEPARENT", "TURNTRACE_TRACE"]
    assert FOLDER not in found["path"]
    (note,) = read_notes(Path(plan.notes))
    assert (note.outcome, note.python) == ("lacking", bare_python)


@pytest.mark.parametrize("notes", [None, "/no/such/folder/notes"])
def test_notes_that_cannot_be_written_disturb_nobody(plan, bare_python, notes):
    """Without a place for notes both kinds of Python run as well."""
    silent = replace(plan, notes=notes)

    assert not state(silent, python=bare_python)["recorded"]
    assert state(silent)["recorded"]


def test_a_launcher_without_turntrace_hands_on_what_it_got(plan, bare_python):
    """`poetry run` and the like run in a Python of their own: the one they start is the agent."""
    code = f"import subprocess, sys; subprocess.run([{sys.executable!r}, *sys.argv[1:]], check=True)"
    found = json.loads(
        start(replace(plan, parent_pid=None), "-c", code, "-c", textwrap.dedent(STATE), python=bare_python)
    )

    assert found["recorded"]
    assert found["variables"] == ["TRACEPARENT", "TURNTRACE_TRACE"]
    assert outcomes(plan) == ["lacking", "started"]


def test_a_launcher_beside_turntrace_is_not_the_agent_either(plan, tmp_path):
    """A launcher installed next to turntrace is known by its name."""
    launcher = tmp_path / "poetry"
    launcher.write_text("import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], check=True)")
    found = json.loads(start(replace(plan, parent_pid=None), str(launcher), "-c", textwrap.dedent(STATE)))

    assert found["recorded"]
    assert found["variables"] == ["TRACEPARENT", "TURNTRACE_TRACE"]
    assert outcomes(plan) == ["started"]


def test_a_sitecustomize_that_is_hidden_runs(plan, tmp_path):
    """The user's own sitecustomize does what it did, and is the module of that name."""
    own = tmp_path / "own" / "sitecustomize.py"
    own.parent.mkdir()
    own.write_text("import os, sys\nos.environ['TURNED'] = str('turntrace' in sys.modules)\n")
    code = "import os, sitecustomize; print(os.environ['TURNED'], sitecustomize.__file__)"

    assert start(plan, "-c", code, PYTHONPATH=str(own.parent)) == f"False {own}\n"
    assert outcomes(plan) == ["started"]


@pytest.mark.parametrize("fault", ["1 / 0", "import no_such_module"])
def test_a_hidden_sitecustomize_that_fails_fails_as_ever(plan, tmp_path, fault):
    """Python says what it says about it without us, and the agent is recorded all the same."""
    (tmp_path / "sitecustomize.py").write_text(fault)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", "print('ran')"]
    alone = subprocess.run(command, env=env, capture_output=True, timeout=60)
    under = subprocess.run(command, env=child_environment(env, plan), capture_output=True, timeout=60)

    assert alone.stderr
    assert (under.stdout, under.stderr) == (alone.stdout, alone.stderr)
    assert outcomes(plan) == ["started"]


def test_a_setting_that_cannot_be_used_leaves_the_agent_alone(plan):
    """The agent runs untraced and silent; run learns why."""
    assert not start(plan, "-c", "pass", TURNTRACE_LINGER="soon")

    (note,) = [note for note in read_notes(Path(plan.notes)) if note.outcome == "failed"]
    assert "TURNTRACE_LINGER" in note.message


def test_what_the_loader_has_to_say_goes_to_run(plan, tmp_path):
    """Warnings about other configurators are not printed into the agent's standard error."""
    info = tmp_path / "site" / "other-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[opentelemetry_configurator]\nother = nowhere:Other\n")
    start(plan, "-c", "pass", PYTHONPATH=str(info.parent))

    said = [note.message for note in read_notes(Path(plan.notes)) if note.outcome == "said"]
    assert len(said) == 1
    assert "other" in said[0]


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({}, "bot"),
        ({"OTEL_SERVICE_NAME": "mine"}, "mine"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=mine"}, "mine"),
    ],
)
def test_the_agent_is_the_service_unless_it_has_a_name(plan, env, name):
    """Spans carry the agent's name as service.name; a name of the user's own wins, and none is left behind."""
    code = """
        import os
        from opentelemetry import trace
        span = trace.get_tracer("a").start_span("x")
        print(span.resource.attributes["service.name"], os.environ.get("OTEL_SERVICE_NAME"))
    """

    found = start(plan, "-c", textwrap.dedent(code), **env)
    assert found == f"{name} {env.get('OTEL_SERVICE_NAME')}\n"


def test_another_distro_of_the_user_is_restored(plan):
    """Variables that name a distro are ours only while recording starts."""
    assert "OTEL_PYTHON_DISTRO" in state(plan, OTEL_PYTHON_DISTRO="mine")["variables"]


def test_the_module_does_nothing_when_it_is_imported_by_another_name(plan):
    """A tool that imports every module of the package starts nothing."""
    code = "import turntrace.otel.autostart.sitecustomize as s, sys; print(s.__all__, 'turntrace.otel.setup' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "[] False\n"


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The sitecustomize of a process that is this one; its folder is an empty one. Returns what it started."""
    calls = []
    folder = tmp_path / "folder"
    monkeypatch.setattr(sitecustomize, "_FOLDER", str(folder))
    monkeypatch.setattr(autostart, "start", lambda handed, forget: calls.append(handed))
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.delitem(sys.modules, "sitecustomize", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), "/mine"]))
    monkeypatch.setenv("TURNTRACE_RUN_AGENT", "bot")
    monkeypatch.setenv("TURNTRACE_RUN_PARENT", str(os.getppid()))
    yield calls
    sys.modules.pop("sitecustomize", None)


def test_the_start_takes_away_what_run_added(started):
    """Path, variables and PYTHONPATH are clean when recording starts, which is told everything."""
    sitecustomize._main()

    assert started == [{"TURNTRACE_RUN_AGENT": "bot", "TURNTRACE_RUN_PARENT": str(os.getppid())}]
    assert sitecustomize._FOLDER not in sys.path
    assert os.environ["PYTHONPATH"] == "/mine"
    assert "TURNTRACE_RUN_AGENT" not in os.environ


def test_taking_away_twice_changes_nothing_more(started, monkeypatch):
    """What starts recording takes it away again where it had been handed on."""
    monkeypatch.setenv("PYTHONPATH", sitecustomize._FOLDER)
    sitecustomize._forget()
    sitecustomize._forget()

    assert "PYTHONPATH" not in os.environ


@pytest.mark.parametrize("name", ["TURNTRACE_RUN_THROUGH", "TURNTRACE_RUN_CHILDREN"])
def test_what_is_to_be_handed_on_stays(started, monkeypatch, name):
    """For a launcher and for children the environment is left to those who know."""
    monkeypatch.setenv(name, "1")
    sitecustomize._main()

    assert os.environ["TURNTRACE_RUN_AGENT"] == "bot"


def test_another_process_is_not_started(started, monkeypatch):
    """A parent that is not run makes this process none of its agents."""
    monkeypatch.setenv("TURNTRACE_RUN_PARENT", "1")
    sitecustomize._main()

    assert started == []
    assert "TURNTRACE_RUN_AGENT" not in os.environ


def test_the_hidden_module_takes_its_place(started, tmp_path, monkeypatch):
    """The user's sitecustomize is the module of that name; when it fails that is not hidden."""
    own = types.ModuleType("sitecustomize")
    monkeypatch.setitem(sys.modules, "sitecustomize", own)
    sitecustomize._main()
    assert sys.modules["sitecustomize"] is own

    (tmp_path / "sitecustomize.py").write_text("mine = True")
    monkeypatch.syspath_prepend(str(tmp_path))
    sitecustomize._main()
    assert sys.modules["sitecustomize"].mine

    (tmp_path / "sitecustomize.py").write_text("import no_such_module_anywhere")
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError, match="anywhere"):
        sitecustomize._run_shadowed()


def test_what_cannot_be_imported_is_noted(started, tmp_path, monkeypatch):
    """A Python without turntrace says so to run, if it can, and goes on."""
    monkeypatch.setitem(sys.modules, "turntrace.otel.autostart", None)
    for notes in ("", str(tmp_path / "no" / "notes"), str(tmp_path / "notes")):
        sitecustomize._start({"TURNTRACE_RUN_NOTES": notes})

    assert [note.outcome for note in read_notes(tmp_path / "notes")] == ["lacking"]
