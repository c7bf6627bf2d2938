"""The provider that turntrace builds, and who gets its spans and metrics."""

import sys
import threading
from importlib.metadata import EntryPoint

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import turntrace as tt
from otlp_receiver import HttpReceiver, attributes_of, spans_of
from turntrace.config import Settings
from turntrace.errors import ConfigurationError
from turntrace.otel import pipeline, slot
from turntrace.otel.options import RecordingOptions
from turntrace.otel.own_tracer import OwnTracer
from turntrace.otel.pipeline import build
from turntrace.otel.processor import TurnSpanProcessor
from turntrace.otel.sampler import RecordingSampler

NAMES = frozenset


class Kept(InMemorySpanExporter):
    """An exporter of an installed package; keeps what it was given."""

    spans = ()

    def export(self, spans):
        """Keep the spans for all."""
        Kept.spans = (*Kept.spans, *spans)
        return super().export(spans)


@pytest.fixture
def built():
    """Build pipelines; all are taken down in the end."""
    made = []

    def make(endpoint=None, settings=None, *, metrics=None, content="drop"):
        processor = TurnSpanProcessor(RecordingOptions())
        pipe = build(endpoint, settings or Settings(), processor, metrics=metrics, content=content)
        processor.tracer = OwnTracer(pipe.provider.get_tracer("turntrace", "test"))
        slot.fill(processor)
        made.append((pipe, processor))
        return pipe, processor

    yield make
    for pipe, processor in made:
        processor.shutdown()
        pipe.shutdown()
        processor.recording.writer.stop(5)
    slot.recorder = None


def test_without_an_endpoint_nothing_is_exported(built):
    """No exporter, no batch, no metrics; the spans are recorded all the same."""
    pipe, processor = built()
    assert processor._batches == ()
    assert processor.recording.metrics is None
    assert isinstance(pipe.provider.sampler, RecordingSampler)
    assert pipe.provider.resource.attributes["turntrace.metrics"] == "collector"
    assert pipe.flush(10)
    assert "nothing is exported" in pipe.decision


@pytest.mark.parametrize(
    ("endpoint", "settings", "metrics", "is_service"),
    [
        ("http://127.0.0.1:9", Settings(), True, True),
        ("http://127.0.0.1:9", Settings(), None, False),
        ("http://127.0.0.1:9", Settings(), False, False),
        (None, Settings(endpoint="http://127.0.0.1:9"), True, True),
        (None, Settings(endpoint="http://127.0.0.1:9", metrics_exporter=NAMES({"none"})), True, False),
        (None, Settings(endpoint="http://127.0.0.1:9", metrics_exporter=NAMES({"otlp"})), True, True),
        (None, Settings(endpoint="http://127.0.0.1:9", traces_exporter=NAMES({"none"})), True, False),
    ],
)
def test_metrics_go_where_spans_go_over_otlp(built, endpoint, settings, metrics, is_service):
    """A one-shot process and one that names other exporters measure nothing; the resource says who does."""
    pipe, processor = built(endpoint, settings, metrics=metrics)
    assert (processor.recording.metrics is not None) is is_service
    told = pipe.provider.resource.attributes["turntrace.metrics"]
    assert told == ("process" if is_service else "collector")


def test_spans_and_metrics_arrive_at_the_endpoint(built):
    """A turn's spans and its figures are sent at a flush, over the protocol of the port."""
    with HttpReceiver() as receiver:
        pipe, processor = built(receiver.endpoint, metrics=True)
        with tt.turn("a"), tt.tool("bash"):
            pass
        assert processor.force_flush()
        assert pipe.flush(10_000)
        names = {span.name for _, _, span in spans_of(receiver.traces)}
        metrics = {
            metric.name
            for request in receiver.metrics
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }
        assert names == {"invoke_agent a", "execute_tool bash"}
        assert {"turntrace.turn.duration", "turntrace.phase.wall_time", "turntrace.turns"} <= metrics
        assert pipe.decision == f"turntrace exports spans to {receiver.endpoint} (http/protobuf)"


@pytest.mark.parametrize(("metrics", "sent"), [(True, True), (None, False), (False, False)])
def test_a_process_that_ends_within_an_interval_sends_no_metrics(built, metrics, sent):
    """A counter that appears at 1 and dies moves no dashboard, unless asked for; no thread goes on sending it."""
    before = set(threading.enumerate())
    with HttpReceiver() as receiver:
        pipe, processor = built(receiver.endpoint, metrics=metrics)
        with tt.turn("a"):
            pass
        processor.shutdown()
        pipe.shutdown()
        assert bool(receiver.metrics) is sent
    assert [one.name for one in set(threading.enumerate()) - before if "Metric" in one.name] == []


def test_each_turn_is_counted_once_by_the_process_or_by_the_collector(built):
    """Turns that begin within the first interval are the collector's as a whole; later ones say that they are not."""
    with HttpReceiver() as receiver:
        pipe, processor = built(receiver.endpoint)
        interval = next(one for one in threading.enumerate() if isinstance(one, threading.Timer))
        with tt.turn("early"):
            interval.function()  # is over
            with tt.tool("bash"):
                pass
        with tt.turn("late"), tt.tool("bash"):
            pass
        assert processor.force_flush()
        assert pipe.flush(10_000)
        found = {
            (span.name, attributes_of(span)["turntrace.agent"]): attributes_of(span).get("turntrace.metrics")
            for _, _, span in spans_of(receiver.traces)
        }
        assert found == {
            ("invoke_agent early", "early"): None,
            ("execute_tool bash", "early"): None,
            ("invoke_agent late", "late"): "process",
            ("execute_tool bash", "late"): "process",
        }
        assert pipe.provider.resource.attributes["turntrace.metrics"] == "collector"
        agents = {
            attributes_of(point)["agent"]
            for request in receiver.metrics
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name in {"turntrace.turns", "turntrace.phase.exclusive_time"}
            for point in (*metric.sum.data_points, *metric.histogram.data_points)
        }
        assert agents == {"late"}


def test_a_forked_child_sends_no_copy_of_its_parents_metrics(built, monkeypatch):
    """The figures are the parent's, who sends them itself."""
    with HttpReceiver() as receiver:
        pipe, processor = built(receiver.endpoint, metrics=True)
        with tt.turn("a"):
            pass
        processor.shutdown()
        with monkeypatch.context() as child:
            child.setattr(pipeline.os, "getpid", lambda: 1)
            pipe.shutdown()
        assert receiver.metrics == []
        pipe.shutdown()
        assert receiver.metrics


@pytest.mark.parametrize(
    ("content", "settings", "is_kept"),
    [
        ("drop", Settings(), False),
        ("keep", Settings(), True),
        ("drop", Settings(capture_content=True), True),
        ("drop", Settings(keep_attributes=NAMES({"gen_ai.prompt"})), True),
    ],
)
def test_content_leaves_the_process_only_when_it_is_asked_for(built, content, settings, is_kept):
    """By an argument, by the variable of the conventions, or name by name."""
    with HttpReceiver() as receiver:
        pipe, processor = built(receiver.endpoint, settings, metrics=False, content=content)
        span = pipe.provider.get_tracer("app").start_span("chat", attributes={"gen_ai.prompt": "secret"})
        span.end()
        assert processor.force_flush()
        ((_, _, sent),) = spans_of(receiver.traces)
        assert ("gen_ai.prompt" in attributes_of(sent)) is is_kept


@pytest.fixture
def installed(monkeypatch):
    """A package that brings an exporter named kept."""
    monkeypatch.setitem(sys.modules, "exporter_for_tests", sys.modules[__name__])
    entry = EntryPoint("kept", "exporter_for_tests:Kept", "opentelemetry_traces_exporter")
    monkeypatch.setattr(pipeline, "entry_points", lambda group: [entry])
    monkeypatch.setattr(Kept, "spans", ())


def test_another_exporter_is_found_by_its_name(built, installed):
    """OTEL_TRACES_EXPORTER names exporters of installed packages; our own names mean ourselves."""
    names = NAMES({"kept", "none", "turntrace", "turntrace_otlp"})
    pipe, processor = built(None, Settings(traces_exporter=names))
    with tt.turn("a"):
        pass
    assert processor.force_flush()
    assert [span.name for span in Kept.spans] == ["invoke_agent a"]
    assert pipe.decision == "turntrace exports spans through kept"


def test_an_exporter_that_nobody_brings_names_its_variable(built):
    """The message says which variable asks for what is not there."""
    with pytest.raises(ConfigurationError, match="OTEL_TRACES_EXPORTER=nonsense: no installed package"):
        built(None, Settings(traces_exporter=NAMES({"nonsense"})))


@pytest.mark.parametrize("name", ["otlp", "otlp_proto_http"])
def test_the_official_exporter_can_be_named(built, name):
    """Its names of the SDK are known; the endpoint is the variable's or the SDK's default."""
    pipe, processor = built(None, Settings(traces_exporter=NAMES({name})))
    assert len(processor._batches) == 1
    assert pipe.decision == f"turntrace exports spans through {name}"
    pipe, _ = built(None, Settings(traces_exporter=NAMES({name}), endpoint="http://127.0.0.1:4317"))
    assert pipe.decision == "turntrace exports spans to http://127.0.0.1:4317 (grpc)"


def test_an_endpoint_that_was_given_wins_over_names(built):
    """configure(endpoint=...) means OTLP, whatever the variable names."""
    _, processor = built("http://127.0.0.1:9", Settings(traces_exporter=NAMES({"none"})))
    assert len(processor._batches) == 1


def test_the_resource_holds_no_path_and_no_command_line(built, monkeypatch):
    """What a detector knows of arguments and folders stays in the process; the rest goes out."""
    monkeypatch.setenv("OTEL_EXPERIMENTAL_RESOURCE_DETECTORS", "otel,process")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=shop")
    pipe, _ = built()
    told = pipe.provider.resource.attributes
    assert not pipeline._RESOURCE_CONTENT & told.keys()
    assert (told["team"], told["process.runtime.name"]) == ("shop", "cpython")


@pytest.mark.parametrize(
    ("settings", "name"),
    [(Settings(), True), (Settings(service_name="shop"), False),
     (Settings(resource_attributes="service.name=shop"), False)],
)  # fmt: skip
def test_a_service_without_a_name_is_called_after_its_program(built, monkeypatch, settings, name):
    """Only when neither variable names it."""
    monkeypatch.setattr(sys, "argv", ["/usr/bin/my-agent.py"])
    pipe, _ = built(None, settings)
    assert (pipe.provider.resource.attributes["service.name"] == "my-agent") is name
