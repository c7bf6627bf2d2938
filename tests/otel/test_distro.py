"""The distro and the configurator that OpenTelemetry's auto-instrumentation loads."""

import os
import subprocess
import sys
import textwrap
from importlib.metadata import EntryPoint, entry_points

import pytest
from opentelemetry import propagate

from turntrace.files.read import read_paths
from turntrace.otel import distro
from turntrace.otel.distro import TurntraceConfigurator, TurntraceDistro
from turntrace.otel.instrumentors import GROUP
from turntrace.otel.propagation import LocalPropagator

INSTRUMENTED = """
    from opentelemetry.instrumentation.auto_instrumentation import initialize
    initialize(swallow_exceptions=False)
"""


class Instrumentor:
    """Counts how often it is started."""

    is_instrumented_by_opentelemetry = False
    started = 0

    def instrument(self, **options):
        """Start."""
        Instrumentor.started += 1
        assert options == {"skip_dep_check": True}


class Running(Instrumentor):
    """One that was started before."""

    is_instrumented_by_opentelemetry = True


class Broken(Instrumentor):
    """One that fails in its own way."""

    def instrument(self, **options):
        """Fail."""
        raise RuntimeError("told")


class Missing(Instrumentor):
    """One whose library is not there."""

    def instrument(self, **options):
        """Fail as an import does."""
        raise ModuleNotFoundError("no library")


class Point:
    """An entry point that loads a class of this module."""

    name = "x"
    value = "here:X"

    def __init__(self, kind):
        self.kind = kind

    def load(self):
        """The class."""
        return self.kind


@pytest.fixture
def named(monkeypatch):
    """The user asked for turntrace by name."""
    monkeypatch.setenv("OTEL_PYTHON_DISTRO", "turntrace")
    monkeypatch.setenv("OTEL_PYTHON_CONFIGURATOR", "turntrace")
    monkeypatch.setattr(Instrumentor, "started", 0)
    for kind in (TurntraceDistro,):
        monkeypatch.setattr(kind, "_instance", None, raising=False)


def test_an_instrumentation_is_started_once(named):
    """One that runs already is left as it is."""
    own = TurntraceDistro()
    own.load_instrumentor(Point(Instrumentor), skip_dep_check=True)
    own.load_instrumentor(Point(Running), skip_dep_check=True)

    assert Instrumentor.started == 1


def test_a_broken_instrumentation_stops_nothing(named, caplog):
    """It is said by name, without the message of the error, and nothing is raised."""
    own = TurntraceDistro()
    own.load_instrumentor(Point(Broken), skip_dep_check=True)
    own.load_instrumentor(Point(Missing), skip_dep_check=True)

    assert caplog.messages == ["instrumentation x did not start: RuntimeError"]


def test_a_twin_is_not_started(named, monkeypatch):
    """An instrumentation that would count double is passed over."""
    own = TurntraceDistro()
    monkeypatch.setattr(own, "_twins", frozenset({("x", "here:X")}), raising=False)
    own.load_instrumentor(Point(Instrumentor), skip_dep_check=True)

    assert Instrumentor.started == 0


def test_twins_are_those_of_this_python(named, monkeypatch):
    """They are told by name and by what would be loaded."""
    entry = EntryPoint(name="openai", value="b:B", group=GROUP)

    class Found:
        verdict, name, entry_point = "twin", "openai", entry

    monkeypatch.setattr(distro, "installed", lambda: (Found,))

    assert TurntraceDistro()._twins == {("openai", "b:B")}


def test_the_distro_keeps_headers_at_home(named, monkeypatch):
    """The global propagator is the careful one from then on."""
    before = propagate.get_global_textmap()
    try:
        monkeypatch.setenv("TURNTRACE_PROPAGATE_HOSTS", "tools.internal")
        TurntraceDistro().configure()
        assert isinstance(propagate.get_global_textmap(), LocalPropagator)
        assert propagate.get_global_textmap()._hosts == {"tools.internal"}
    finally:
        propagate.set_global_textmap(before)


def asked(monkeypatch):
    """The request that the configurator makes."""
    requests = []
    monkeypatch.setattr(distro, "configure", requests.append)
    TurntraceConfigurator().configure(auto_instrumentation_version="1")
    return requests[0]


def test_what_run_handed_over_is_asked_for(named, monkeypatch):
    """Under run the journal is written at once and no metrics are sent."""
    monkeypatch.setenv("TURNTRACE_RUN_AGENT", "bot")
    monkeypatch.setenv("TURNTRACE_RUN_ENDPOINT", "http://c:4317")
    monkeypatch.setenv("TURNTRACE_RUN_CONTENT", "keep")
    request = asked(monkeypatch)

    assert (request.agent, request.endpoint, request.content) == ("bot", "http://c:4317", "keep")
    assert (request.journal, request.metrics, request.threads, request.mode) == ("sync", False, True, "a")


def test_without_run_a_service_is_configured(named, monkeypatch):
    """Without run the defaults are those of configure(), and content stays at home."""
    request = asked(monkeypatch)

    assert (request.journal, request.metrics, request.content, request.agent) == (None, None, "drop", None)


@pytest.mark.parametrize("disabled", ["threading", "*", "a, threading"])
def test_threads_can_be_switched_off(named, monkeypatch, disabled):
    """The variable that switches instrumentations off is about threads too."""
    monkeypatch.setenv("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", disabled)

    assert not asked(monkeypatch).threads


def test_threads_are_left_alone_without_the_extra(named, monkeypatch):
    """Without its package the instrumentation of threads is not asked for."""
    monkeypatch.setattr(distro, "find_spec", lambda name: None)

    assert not asked(monkeypatch).threads


def test_ours_stand_back_for_another_when_nobody_asked(monkeypatch):
    """A distro and a configurator of another package are used as if turntrace were not installed."""
    calls = []

    class Other:
        def configure(self, **options):
            calls.append(("configure", options))

        def load_instrumentor(self, entry_point, **options):
            calls.append((entry_point, options))

    class OtherPoint(Point):
        name = "other"

    monkeypatch.setattr(distro, "entry_points", lambda group: [OtherPoint(Other)])
    monkeypatch.setattr(TurntraceDistro, "_instance", None, raising=False)
    own = TurntraceDistro()
    own.configure(a=1)
    own.load_instrumentor("point", b=2)
    TurntraceConfigurator().configure(c=3)

    assert calls == [("configure", {"a": 1}), ("point", {"b": 2}), ("configure", {"c": 3})]


def test_ours_are_used_when_there_is_no_other(monkeypatch):
    """With turntrace alone nobody has to name it."""
    monkeypatch.setattr(distro, "entry_points", lambda group: [EntryPoint("turntrace", "x:X", group)])

    assert asked(monkeypatch).content == "drop"


def test_opentelemetry_finds_both_by_name():
    """The names that OTEL_PYTHON_DISTRO and OTEL_PYTHON_CONFIGURATOR take."""
    (own,) = entry_points(group="opentelemetry_distro", name="turntrace")
    (configurator,) = entry_points(group="opentelemetry_configurator", name="turntrace")

    assert (own.load(), configurator.load()) == (TurntraceDistro, TurntraceConfigurator)


def instrumented(code, tmp_path, **env):
    """Run code after OpenTelemetry's own initialisation, with turntrace named."""
    given = {
        **os.environ,
        "OTEL_PYTHON_DISTRO": "turntrace",
        "OTEL_PYTHON_CONFIGURATOR": "turntrace",
        "TURNTRACE_TRACE": str(tmp_path / "out.ndjson"),
        **env,
    }
    text = textwrap.dedent(INSTRUMENTED) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", text], env=given, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout


def test_installed_instrumentations_are_active(tmp_path):
    """Requests of httpx and work in threads are seen, each instrumentation being started once."""
    code = """
        from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
        from opentelemetry.instrumentation.threading import ThreadingInstrumentor
        print(HTTPXClientInstrumentor().is_instrumented_by_opentelemetry)
        print(ThreadingInstrumentor().is_instrumented_by_opentelemetry)
    """

    assert instrumented(code, tmp_path) == "True\nTrue\n"


def test_the_variables_of_opentelemetry_keep_their_meaning(tmp_path):
    """Switched-off instrumentations stay off, and a sampler that drops everything still fills the file."""
    code = """
        from opentelemetry import trace
        from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
        print(HTTPXClientInstrumentor().is_instrumented_by_opentelemetry)
        with trace.get_tracer("a").start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}) as span:
            print(span.get_span_context().trace_flags & 1)
    """
    env = {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "httpx", "OTEL_TRACES_SAMPLER": "always_off"}

    assert instrumented(code, tmp_path, **env) == "False\n0\n"
    (turn,) = read_paths([str(tmp_path / "out.ndjson")]).turns
    assert turn.sampled is False


def test_a_disabled_sdk_records_nothing(tmp_path):
    """OTEL_SDK_DISABLED is obeyed."""
    code = "from opentelemetry import trace; print(trace.get_tracer('a').start_span('x').is_recording())"

    assert instrumented(code, tmp_path, OTEL_SDK_DISABLED="true") == "False\n"
    assert not (tmp_path / "out.ndjson").exists()
