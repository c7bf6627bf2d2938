"""configure() and attach(): once, idempotent, and never twice to one endpoint."""

import gc
import os
import signal
import sys
import weakref

import pytest
from opentelemetry import context as context_api
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import turntrace as tt
from otlp_receiver import HttpReceiver, spans_of, wait_for
from recordings import blocks_of
from turntrace.config import Settings
from turntrace.errors import ConfigurationError, MissingExtraError, TraceWriteError
from turntrace.otel import setup, slot
from turntrace.otel.delegate import DelegatingProvider
from turntrace.otel.setup import Request, attach, configure

PARENT = f"00-{0xABC:032x}-{0xDEF:016x}-01"


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """A process in which nobody has set anything up; afterwards it is one again."""
    state = setup._State()
    monkeypatch.setattr(setup, "_state", state)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", trace.Once())
    token = context_api.attach(context_api.Context())
    yield state
    for handle in [state.handle, *(handle for _, handle in state.attached.values())]:
        if handle is not None:
            handle.shutdown()
    context_api.detach(token)


def out_of(tmp_path):
    """A file and the request for it."""
    return tmp_path / "t.ndjson", Request(trace=str(tmp_path / "t.ndjson"), journal="sync")


def test_the_same_request_gives_the_same_handle(tmp_path):
    """configure() may be called again with the same settings."""
    _, request = out_of(tmp_path)
    handle = configure(request)
    assert configure(request) is handle
    assert slot.recorder is handle.processor


def test_another_request_is_an_error_that_says_what_to_do(tmp_path):
    """Two set-ups of one process contradict each other; the first is to be shut down."""
    _, request = out_of(tmp_path)
    handle = configure(request)
    with pytest.raises(ConfigurationError, match=r"other settings .*; call shutdown\(\)"):
        configure(Request(trace=str(tmp_path / "other.ndjson")))
    handle.shutdown()
    assert configure(Request(trace=str(tmp_path / "other.ndjson"))) is not handle


def test_an_agents_own_configure_gives_way_to_run(tmp_path):
    """What `turntrace run` set up is what the agent's configure() returns, whatever it asks for."""
    out, _ = out_of(tmp_path)
    handle = configure(Request(trace=str(out), is_run=True), Settings(traceparent=PARENT))
    assert handle.processor.recording.options.run_trace == 0xABC
    assert configure(Request(trace="elsewhere.ndjson")) is handle


def test_run_without_a_parent_has_no_trace_of_its_own(tmp_path):
    """Only a TRACEPARENT names the trace of a run."""
    out, _ = out_of(tmp_path)
    handle = configure(Request(trace=str(out), is_run=True), Settings())
    assert handle.processor.recording.options.run_trace is None


def test_a_turn_is_in_the_file_after_shutdown(tmp_path):
    """The whole way: configure, record, shut down; then the API is off again."""
    out, request = out_of(tmp_path)
    handle = configure(request)
    with tt.turn("a"), tt.tool("bash"):
        pass
    assert handle.flush()
    handle.shutdown()
    handle.shutdown()
    assert slot.recorder is None
    assert [span.tool for span in blocks_of(out)[0].turn.spans] == ["bash"]
    assert handle.trace == out
    assert "nothing is exported (OTEL_EXPORTER_OTLP_ENDPOINT is not set)" in handle.decision


@pytest.mark.parametrize("settings", [Settings(disabled=True), Settings(sdk_disabled=True)])
def test_switched_off_nothing_is_recorded(tmp_path, settings):
    """TURNTRACE_DISABLED and OTEL_SDK_DISABLED: a handle that does nothing, no file, no provider."""
    out, request = out_of(tmp_path)
    theirs = TracerProvider(shutdown_on_exit=False)
    for handle in (configure(request, settings), attach(theirs, request, settings)):
        assert handle.processor is None
        assert "TURNTRACE_DISABLED or OTEL_SDK_DISABLED" in handle.decision
        assert handle.flush()
        handle.shutdown()
    assert not out.exists()
    assert slot.recorder is None
    assert theirs._active_span_processor._span_processors == ()


def test_the_file_comes_from_the_environment_when_nobody_names_one(tmp_path, monkeypatch):
    """TURNTRACE_TRACE is the default; an argument wins; names in braces are filled in."""
    monkeypatch.setenv("TURNTRACE_TRACE", str(tmp_path / "{agent}-{pid}.ndjson"))
    handle = configure(Request(agent="shop"))
    assert handle.trace == tmp_path / f"shop-{os.getpid()}.ndjson"
    handle.shutdown()
    handle = configure(Request(trace=str(tmp_path / "t.ndjson")))
    assert handle.trace == tmp_path / "t.ndjson"


def test_the_journal_mode_of_the_environment_wins(tmp_path):
    """TURNTRACE_JOURNAL overrules the caller; without either a service's journal is a thread's."""
    out = str(tmp_path / "t.ndjson")
    for settings, request, mode in (
        (Settings(journal="off"), Request(trace=out, journal="sync"), "off"),
        (Settings(), Request(trace=out, journal="sync"), "sync"),
        (Settings(), Request(trace=out), "thread"),
    ):
        handle = configure(request, settings)
        assert handle.processor.recording.options.journal == mode
        handle.shutdown()


def test_mode_w_empties_the_file_and_a_append_keeps_it(tmp_path):
    """A stale trace is never mistaken for a new one, and a restart loses no history."""
    out, _ = out_of(tmp_path)
    for mode, blocks in (("a", 1), ("a", 2), ("w", 1)):
        handle = configure(Request(trace=str(out), mode=mode))
        with tt.turn("a"):
            pass
        handle.shutdown()
        assert len(blocks_of(out)) == blocks


def test_a_file_that_cannot_be_written_is_said_at_once(tmp_path):
    """A folder in the place of the file is an error of configure(), not of the first turn."""
    with pytest.raises(TraceWriteError, match="cannot write the trace"):
        configure(Request(trace=str(tmp_path)))
    assert slot.recorder is None


def test_standard_error_and_no_file_have_no_path():
    """A dash is no file name."""
    handle = configure(Request(trace="-"))
    assert handle.trace is None
    assert handle.processor.recording.options.out == "-"
    handle.shutdown()
    assert configure(Request()).trace is None


def test_turns_of_dead_processes_are_finished_when_the_file_is_opened(tmp_path):
    """What a killed process left beside the file becomes a block."""
    out, request = out_of(tmp_path)
    handle = configure(request)
    with tt.turn("a"):
        (journal,) = tmp_path.glob("*.part")
        text = journal.read_bytes()
    handle.shutdown()
    out.unlink()
    dead = text.replace(f'"pid":{os.getpid()}'.encode(), b'"pid":4194304')
    (tmp_path / "t.ndjson.run_dead.part").write_bytes(dead)
    configure(request)
    assert [block.turn.status for block in blocks_of(out)] == ["interrupted"]


def test_a_remote_parent_is_the_parent_of_the_turn(tmp_path):
    """TRACEPARENT of the environment is current from configure() on, and in every thread."""
    _, request = out_of(tmp_path)
    configure(request, Settings(traceparent=PARENT, tracestate="a=b"))
    current = trace.get_current_span().get_span_context()
    assert (current.trace_id, current.span_id, current.is_remote) == (0xABC, 0xDEF, True)
    span = trace.get_tracer("app").start_span("x")
    assert span.parent.span_id == 0xDEF
    assert span.get_span_context().trace_state.get("a") == "b"


def test_attach_records_into_a_file_and_leaves_exports_alone(tmp_path):
    """An application's own provider keeps its exporters; ours is only the file."""
    out, request = out_of(tmp_path)
    theirs, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    theirs.add_span_processor(SimpleSpanProcessor(exporter))
    handle = attach(theirs, request)
    assert handle.decision == "your provider exports; turntrace writes the file"
    with tt.turn("a"), tt.tool("bash"):
        pass
    handle.shutdown()
    assert sorted(span.name for span in exporter.get_finished_spans()) == [
        "execute_tool bash",
        "invoke_agent a",
    ]
    assert len(blocks_of(out)) == 1


def test_attach_twice_is_attach_once(tmp_path):
    """The same provider gives the same handle and has one processor, until that is shut down."""
    _, request = out_of(tmp_path)
    theirs = TracerProvider(shutdown_on_exit=False)
    handle = attach(theirs, request)
    assert attach(theirs) is handle
    assert len(theirs._active_span_processor._span_processors) == 1
    handle.shutdown()
    assert attach(theirs, request) is not handle


def test_a_provider_that_nobody_else_keeps_is_not_taken_for_another(tmp_path):
    """Providers are told apart for as long as they are attached, whatever became of the first."""
    _, request = out_of(tmp_path)
    known = weakref.ref(attached := TracerProvider(shutdown_on_exit=False))
    handle = attach(attached, request)
    del attached
    gc.collect()
    assert known() is not None
    handle.shutdown()


def test_attach_needs_a_provider_that_takes_processors(tmp_path):
    """The message names what was given and what is needed; nothing is set up."""
    with pytest.raises(
        ConfigurationError, match="NoOpTracerProvider takes no span processors; attach an SDK"
    ):
        attach(trace.NoOpTracerProvider())
    assert slot.recorder is None
    assert list(tmp_path.iterdir()) == []


def test_configure_beside_a_provider_is_attach(tmp_path):
    """Where the application has a provider already, none is built and no OTLP exporter is made."""
    _, request = out_of(tmp_path)
    theirs = TracerProvider(shutdown_on_exit=False)
    trace.set_tracer_provider(theirs)
    handle = configure(Request(trace=request.trace, endpoint="http://127.0.0.1:9"))
    assert trace.get_tracer_provider() is theirs
    assert handle.decision.startswith("your provider exports")
    assert configure(Request(trace=request.trace, endpoint="http://127.0.0.1:9")) is handle
    handle.shutdown()


def test_a_provider_set_later_gets_our_processor_once(tmp_path, fresh):
    """The delegate follows; tracers handed out before reach the file and the new exporters."""
    out, request = out_of(tmp_path)
    handle = configure(request)
    assert isinstance(trace.get_tracer_provider(), DelegatingProvider)
    theirs, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    theirs.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(theirs)
    with tt.turn("a"):
        pass
    handle.shutdown()
    assert fresh.delegate.target is theirs
    assert [span.name for span in exporter.get_finished_spans()] == ["invoke_agent a"]
    assert len(blocks_of(out)) == 1


def test_setting_what_is_global_already_changes_nothing(tmp_path, fresh):
    """An application that sets the provider it was given keeps our exporters; a second one is refused."""
    out, request = out_of(tmp_path)
    handle = configure(request)
    current = trace.get_tracer_provider()
    target = fresh.delegate.target
    trace.set_tracer_provider(current)
    trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))
    assert trace.get_tracer_provider() is current
    assert fresh.delegate.target is target
    with tt.turn("a"):
        pass
    handle.shutdown()
    assert len(blocks_of(out)) == 1


def test_a_provider_of_the_api_alone_is_followed(tmp_path, fresh):
    """It takes no processors and makes no spans of its own; ours still reach the file."""
    out, request = out_of(tmp_path)
    handle = configure(request)
    theirs = trace.NoOpTracerProvider()
    trace.set_tracer_provider(theirs)
    assert fresh.delegate.target is theirs
    with tt.turn("a"):
        pass
    handle.shutdown()
    assert len(blocks_of(out)) == 1


def test_spans_go_to_the_endpoint_and_into_the_file(tmp_path):
    """With an endpoint both are done, and the decision says where to and how."""
    out, _ = out_of(tmp_path)
    with HttpReceiver() as receiver:
        handle = configure(Request(trace=str(out), endpoint=receiver.endpoint, metrics=False))
        assert handle.decision == f"turntrace exports spans to {receiver.endpoint} (http/protobuf)"
        with tt.turn("a"):
            pass
        assert handle.flush()
        handle.shutdown()
        assert wait_for(receiver.spans)
        assert [span.name for _, _, span in spans_of(receiver.traces)] == ["invoke_agent a"]
    assert len(blocks_of(out)) == 1


def test_a_mistake_in_a_variable_sets_nothing_up(tmp_path):
    """A protocol that does not exist is told by name, and configure() can be called again."""
    _, request = out_of(tmp_path)
    with pytest.raises(ConfigurationError, match="OTEL_EXPORTER_OTLP_PROTOCOL"):
        configure(request, Settings(endpoint="http://127.0.0.1:9", protocol="carrier pigeon"))
    assert slot.recorder is None
    assert configure(request).trace is not None


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TURNTRACE_EXIT_TIMEOUT", "soon"),
        ("TURNTRACE_TRACE_MAX_BYTES", "-1"),
        ("TURNTRACE_TRACE_KEEP", "inf"),
        ("TURNTRACE_LINGER", "nan"),
        ("TURNTRACE_JOURNAL", "paper"),
        ("OTEL_TRACES_EXPORTER", "nonsense"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:x"),
    ],
)
def test_a_value_that_cannot_be_used_names_its_variable(tmp_path, monkeypatch, variable, value):
    """Whoever reads the message knows which variable to change."""
    _, request = out_of(tmp_path)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=variable):
        configure(request)
    assert slot.recorder is None


def test_threads_carry_the_turn(tmp_path):
    """With threads=True a bare thread has the context of who started it."""
    import threading

    from opentelemetry.instrumentation.threading import ThreadingInstrumentor

    _, request = out_of(tmp_path)
    current = []
    try:
        for _ in range(2):
            handle = configure(Request(trace=request.trace, threads=True))
            with tt.turn("a"):
                thread = threading.Thread(
                    target=lambda: current.append(trace.get_current_span().get_span_context().is_valid)
                )
                thread.start()
                thread.join()
            handle.shutdown()
    finally:
        ThreadingInstrumentor().uninstrument()
    assert current == [True, True]


def test_threads_without_the_package_name_the_extra(tmp_path, monkeypatch):
    """The error says what to install."""
    _, request = out_of(tmp_path)
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.threading", None)
    with pytest.raises(MissingExtraError, match=r"turntrace\[threads\]"):
        configure(Request(trace=request.trace, threads=True))
    assert slot.recorder is None
    assert not isinstance(trace.get_tracer_provider(), DelegatingProvider)


def test_a_sigterm_flush_is_installed_when_it_is_asked_for(tmp_path):
    """Only then; and only over the default action."""
    _, request = out_of(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        configure(Request(trace=request.trace)).shutdown()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        configure(Request(trace=request.trace, sigterm=True))
        assert callable(signal.getsignal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_forked_child_has_a_lock_of_its_own(fresh):
    """The parent's may have been held by a thread that the child has not."""
    lock = fresh.lock
    fresh.renew()
    assert fresh.lock is not lock
