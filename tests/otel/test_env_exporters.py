"""The exporters that OTEL_TRACES_EXPORTER can name."""

import os
import subprocess
import sys
import textwrap
from importlib.metadata import entry_points

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from turntrace.errors import ConfigurationError, TraceWriteError
from turntrace.files.read import read_paths
from turntrace.otel import env_exporters
from turntrace.otel.content import ContentFreeExporter
from turntrace.otel.env_exporters import TurntraceFileExporter, TurntraceOtlpExporter, raw_span

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": "secret"}


@pytest.fixture
def out(tmp_path, monkeypatch):
    """The file that the exporter is to write."""
    path = tmp_path / "out.ndjson"
    monkeypatch.setenv("TURNTRACE_TRACE", str(path))
    return path


def tracer_of(exporter):
    """A tracer whose spans reach ``exporter`` one by one."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test")


def turns_in(path):
    """The turns of a file."""
    return read_paths([str(path)]).turns


def ended(tracer, name, attributes=None, parent=None, **more):
    """A span that has ended, and the context in which it is the parent."""
    context = None if parent is None else set_span_in_context(parent)
    span = tracer.start_span(name, context, attributes=attributes, **more)
    span.end()
    return span


def collected(tracer_spans):
    """The ended spans of a function that is given a tracer."""
    memory = InMemorySpanExporter()
    tracer_spans(tracer_of(memory))
    return memory.get_finished_spans()


def test_a_turn_is_written_when_its_local_root_has_ended(out):
    """The block stands in the file before the exporter is shut down."""
    tracer = tracer_of(TurntraceFileExporter())
    with tracer.start_as_current_span("invoke_agent bot", attributes=AGENT):
        with tracer.start_as_current_span("chat m", attributes=CHAT):
            pass
        assert out.read_bytes() == b""

    (turn,) = turns_in(out)
    assert (turn.agent, turn.status, [span.phase for span in turn.spans]) == ("bot", "ok", ["generation"])
    assert b"secret" not in out.read_bytes()


def test_every_trace_is_a_turn_of_its_own(out):
    """Spans of two traces in one batch do not mix, and a trace without any phase leaves nothing."""

    def work(tracer):
        first, second = (
            tracer.start_span("invoke_agent a", attributes=AGENT),
            tracer.start_span("b", attributes=AGENT),
        )
        ended(tracer, "chat m", CHAT, first)
        ended(tracer, "chat m", CHAT, second)
        ended(tracer, "nothing")
        second.end()
        first.end()

    assert TurntraceFileExporter().export(collected(work)) is SpanExportResult.SUCCESS
    assert [len(turn.spans) for turn in turns_in(out)] == [1, 1]


def test_a_sub_agent_is_written_once(out):
    """A turn inside a turn is read off the outer one's block and has none of its own."""
    tracer = tracer_of(TurntraceFileExporter())
    with (
        tracer.start_as_current_span("invoke_agent outer", attributes=AGENT),
        tracer.start_as_current_span("invoke_agent inner", attributes=AGENT),
        tracer.start_as_current_span("chat m", attributes=CHAT),
    ):
        pass

    assert out.read_bytes().count(b'"type":"trace"') == 1
    assert len(turns_in(out)) == 2


def test_a_remote_parent_makes_a_local_root(out):
    """A root whose parent lives in another process ends the turn here."""
    remote = NonRecordingSpan(SpanContext(0xA, 0xB, is_remote=True, trace_flags=TraceFlags(1)))
    ended(tracer_of(TurntraceFileExporter()), "chat m", CHAT, remote)

    (turn,) = turns_in(out)
    assert turn.trace_id == f"{0xA:032x}"


def test_what_never_ended_is_an_interrupted_turn(out):
    """At shutdown spans whose root is still open are a turn that was interrupted; nothing is written twice."""
    exporter = TurntraceFileExporter()
    tracer = tracer_of(exporter)
    ended(tracer, "chat m", CHAT, tracer.start_span("invoke_agent bot", attributes=AGENT))
    exporter.shutdown()
    exporter.shutdown()

    (turn,) = turns_in(out)
    assert turn.status == "interrupted"


def test_a_late_span_is_counted_and_no_turn(out):
    """A span that ends after its turn was written is dropped, and that is counted."""
    exporter = TurntraceFileExporter()
    tracer = tracer_of(exporter)
    root = tracer.start_span("invoke_agent bot", attributes=AGENT)
    late = tracer.start_span("chat m", set_span_in_context(root), attributes=CHAT)
    root.end()
    late.end()
    exporter.shutdown()

    assert len(turns_in(out)) == 1
    assert exporter.dropped == {"late": 1}


def test_memory_is_bounded(out, monkeypatch):
    """Above the bound the oldest trace is written as it is, and old traces are forgotten."""
    monkeypatch.setattr(env_exporters, "MAX_HELD_SPANS", 2)
    monkeypatch.setattr(env_exporters, "_MAX_WRITTEN", 1)
    exporter = TurntraceFileExporter()
    tracer = tracer_of(exporter)
    roots = [tracer.start_span("invoke_agent bot", attributes=AGENT) for _ in range(3)]
    for root in roots:
        ended(tracer, "chat m", CHAT, root)

    assert len(turns_in(out)) == 1
    assert exporter._held_count == 2
    roots[1].end()
    assert len(exporter._written) == 1


def test_an_earlier_file_is_appended_to(out):
    """A restart loses no history."""
    for _ in range(2):
        tracer = tracer_of(TurntraceFileExporter())
        ended(tracer, "chat m", CHAT)

    assert len(turns_in(out)) == 2


def test_labels_of_the_variable_are_on_the_turn(out, monkeypatch):
    """TURNTRACE_LABELS holds here as elsewhere; a label of the span wins."""
    monkeypatch.setenv("TURNTRACE_LABELS", "task=t1,run=r1")
    ended(tracer_of(TurntraceFileExporter()), "invoke_agent b", {**AGENT, "turntrace.label.run": "r2"})

    (turn,) = turns_in(out)
    assert turn.labels == {"task": "t1", "run": "r2"}


def test_without_a_name_the_file_is_a_new_one_in_the_default_folder(tmp_path, monkeypatch):
    """TURNTRACE_TRACE unset: a file in .turntrace, as for every command."""
    monkeypatch.chdir(tmp_path)

    assert TurntraceFileExporter().out.parent == tmp_path / ".turntrace"


def test_mistakes_are_told_when_the_exporter_is_made(out, monkeypatch):
    """An unwritable file or a setting that cannot be used is an error at once, not at the first span."""
    monkeypatch.setenv("TURNTRACE_TRACE", str(out.parent))
    with pytest.raises(TraceWriteError):
        TurntraceFileExporter()
    monkeypatch.setenv("TURNTRACE_LINGER", "soon")
    with pytest.raises(ConfigurationError):
        TurntraceFileExporter()


def test_a_full_disk_is_a_failed_export_and_said_once(out, monkeypatch, capsys):
    """A disk that takes nothing loses the spans, says so once and does not raise."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(env_exporters, "append_block", full)
    exporter = TurntraceFileExporter()
    spans = collected(lambda tracer: ended(tracer, "chat m", CHAT))

    assert exporter.export(spans) is SpanExportResult.FAILURE
    assert exporter.export(spans) is SpanExportResult.FAILURE
    assert capsys.readouterr().err.count("No space left") == 1
    assert exporter.dropped == {"write_failed": 2}


def test_a_span_keeps_everything_that_dialects_read():
    """Ids, times, kind, scope, status, attributes and events survive the conversion."""

    def work(tracer):
        with tracer.start_as_current_span("parent"):
            span = tracer.start_span("child", kind=SpanKind.CLIENT, attributes={"a": 1}, start_time=5)
            span.add_event("e", {"b": 2}, timestamp=6)
            span.set_status(Status(StatusCode.ERROR, "told"))
            span.end(end_time=9)

    child, parent = collected(work)
    raw = raw_span(child)

    assert (raw.name, raw.kind, raw.scope, raw.status) == ("child", "client", "test", "error")
    assert (raw.start_ns, raw.end_ns, raw.attributes, raw.events) == (5, 9, {"a": 1}, ((6, "e", {"b": 2}),))
    assert raw.parent_id == f"{parent.context.span_id:016x}"
    assert raw.trace_id == raw_span(parent).trace_id
    assert raw_span(parent).parent_id is None
    assert not raw.remote_parent


def test_a_bare_span_is_converted_too():
    """A span without context, scope and times is no reason to fail."""
    raw = raw_span(ReadableSpan(name="bare"))

    assert (raw.trace_id, raw.start_ns, raw.end_ns, raw.scope) == ("0" * 32, 0, 0, "")


class Sent(SpanExporter):
    """Keeps what it is given."""

    def __init__(self):
        self.spans = []

    def export(self, spans):
        """Keep the spans."""
        self.spans.extend(spans)
        return SpanExportResult.SUCCESS


def test_otlp_spans_carry_phase_and_time_and_no_content(monkeypatch):
    """turntrace_otlp enriches first and filters then, so that our attributes go out and prompts do not."""
    sent = Sent()
    monkeypatch.setattr(env_exporters, "span_exporter", lambda settings, endpoint: lambda: sent)
    TurntraceOtlpExporter().export(collected(lambda tracer: ended(tracer, "chat m", CHAT)))

    (span,) = sent.spans
    assert span.attributes["turntrace.phase"] == "generation"
    assert span.attributes["turntrace.exclusive_provisional"] is True
    assert "gen_ai.input.messages" not in span.attributes


def test_content_goes_out_when_it_is_asked_for(monkeypatch):
    """The variable of the conventions switches the filter off."""
    sent = Sent()
    monkeypatch.setattr(env_exporters, "span_exporter", lambda settings, endpoint: lambda: sent)
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    TurntraceOtlpExporter().export(collected(lambda tracer: ended(tracer, "chat m", CHAT)))

    assert sent.spans[0].attributes["gen_ai.input.messages"] == "secret"


@pytest.mark.parametrize(("port", "kind"), [(4317, GrpcExporter), (4318, HttpExporter)])
def test_the_port_chooses_the_official_exporter(port, kind, monkeypatch):
    """Port 4317 is grpc and every other HTTP, whatever the SDK would take."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://localhost:{port}")
    exporter = TurntraceOtlpExporter()
    try:
        assert isinstance(exporter._exporter, ContentFreeExporter)
        assert isinstance(exporter._exporter._exporter, kind)
    finally:
        exporter.shutdown()


def test_opentelemetry_finds_both_by_name():
    """The names that OTEL_TRACES_EXPORTER takes."""
    named = {point.name: point for point in entry_points(group="opentelemetry_traces_exporter")}

    assert named["turntrace"].load() is TurntraceFileExporter
    assert named["turntrace_otlp"].load() is TurntraceOtlpExporter


def test_the_sdk_writes_the_file_with_nothing_but_a_variable(tmp_path):
    """An SDK set up by its own configurator and OTEL_TRACES_EXPORTER=turntrace writes the turn."""
    code = """
        from opentelemetry.sdk._configuration import _OTelSDKConfigurator
        from opentelemetry import trace
        _OTelSDKConfigurator().configure()
        tracer = trace.get_tracer("app")
        with tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
            pass
    """
    path = tmp_path / "sdk.ndjson"
    env = {
        "TURNTRACE_TRACE": str(path),
        "OTEL_TRACES_EXPORTER": "turntrace",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **env},
        capture_output=True,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert [turn.turn_source for turn in turns_in(path)] == ["local_root"]
