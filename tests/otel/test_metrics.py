"""The turntrace.* metrics: values, bounds, labels, exemplars."""

from dataclasses import replace

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import SpanContext, TraceFlags

import turntrace as tt
from metric_oracle import EVENTS
from otel.fakes import CHAT, HTTP, MS, TOOL, Exported, a_chat, a_tool, an_agent
from recordings import Recorded
from turntrace.core.metric_table import METRICS
from turntrace.core.model import Usage
from turntrace.otel.guard import Guard
from turntrace.otel.live_metrics import observe_process
from turntrace.otel.metrics import CallPoint, TurnMetrics, TurnPoint

CONTEXT = SpanContext(0xABC, 0xDEF, False, TraceFlags(TraceFlags.SAMPLED))
TURN = TurnPoint(
    agent="a",
    status="ok",
    wall_ns_by_phase={"generation": 5 * MS, "unattributed": MS},
    active_ns=5 * MS,
    coverage=5 / 6,
    rounds=2,
    context=CONTEXT,
)
CALL = CallPoint(
    agent="a",
    model="m",
    provider="p",
    outcome="ok",
    duration_ns=3_000 * MS,
    first_token_ns=1_000 * MS,
    usage=Usage(span_id="1", model="m", output_tokens=100),
    context=CONTEXT,
)


class Measured:
    """Metrics on a real meter, read in memory."""

    def __init__(self, guard=None, labels=frozenset(), live=(), exporters=()):
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader], shutdown_on_exit=False)
        self.guard = guard or Guard()
        meter = self.provider.get_meter("turntrace")
        self.metrics = TurnMetrics(meter, self.guard, labels)
        self.live, self.exporters = live, exporters
        observe_process(
            meter,
            self.metrics.names["agent"],
            self.guard.dropped,
            lambda: tuple(self.live),
            lambda: self.exporters,
        )

    def all(self):
        """Every metric that has points, by name."""
        data = self.reader.get_metrics_data()
        found = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        return {metric.name: metric for metric in found}

    def points(self, name):
        """The points of a metric."""
        metric = self.all().get(name)
        return [] if metric is None else list(metric.data.data_points)

    def values(self, name, *labels):
        """Values, or sums of histograms, by the named labels."""
        return {
            tuple(point.attributes.get(label) for label in labels): getattr(point, "sum", None)
            if hasattr(point, "sum")
            else point.value
            for point in self.points(name)
        }


@pytest.fixture
def measured():
    """Metrics of their own."""
    made = Measured()
    yield made
    made.provider.shutdown()


@pytest.fixture
def recorded(clock):
    """A recording whose spans are measured."""
    with Recorded(clock=clock) as recording:
        made = Measured(recording.guard)
        recording.processor.recording.metrics = made.metrics
        recording.measured = made
        yield recording
        made.provider.shutdown()


def test_every_metric_is_made_as_the_table_says(measured):
    """Name, unit, kind and bounds; a point keeps the ids of the span that made it."""
    measured.guard.drop("late")
    measured.exporters = [("otlp", 1, 2)]
    metrics = measured.metrics
    metrics.turn_ended(TURN)
    metrics.span_ended("a", "generation", 5, ("model", "m"), CONTEXT)
    metrics.model_called(CALL)
    metrics.model_called(replace(CALL, usage=Usage(span_id="1", provenance="missing")))
    metrics.tool_called("a", "bash", "ok", CONTEXT)
    metrics.retried("a", "m", "429", 1)
    for counter in EVENTS:
        metrics.counted("a", counter, 1)
    made = measured.all()
    assert METRICS.keys() - made.keys() == {
        "turntrace.receiver.spans", "turntrace.receiver.rejected",
    }  # fmt: skip
    for name, metric in made.items():
        told = METRICS[name]
        assert (metric.unit, metric.description) == (told.unit, told.what)
        points = list(metric.data.data_points)
        assert points
        for point in points:
            assert point.attributes.keys() <= set(told.labels)
            assert hasattr(point, "explicit_bounds") is (told.kind == "histogram")
        if told.kind == "histogram":
            assert all(point.explicit_bounds == pytest.approx(told.bounds) for point in points)
            assert {(e.trace_id, e.span_id) for point in points for e in point.exemplars} == {(0xABC, 0xDEF)}


def test_the_points_of_a_turn_add_up_to_its_duration(recorded, clock):
    """Wall time by phase, unattributed included, is the turn's duration; the turn is counted once."""
    tracer, measured = recorded.tracer(), recorded.measured
    with an_agent(tracer):
        clock.wait(100)
        with a_chat(tracer) as chat:
            clock.wait(400)
            chat.set_attributes({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 0})
        with a_tool(tracer):
            clock.wait(300)
        with (
            tracer.start_as_current_span("node"),
            tracer.start_as_current_span("execute_tool sh", attributes={**TOOL, "gen_ai.tool.name": "sh"}),
        ):
            clock.wait(200)
    recorded.processor.force_flush()
    wall = measured.values("turntrace.phase.wall_time", "agent", "phase")
    assert wall == pytest.approx(
        {("coder", "unattributed"): 0.1, ("coder", "generation"): 0.4, ("coder", "tool_execution"): 0.5}
    )
    duration = measured.values("turntrace.turn.duration", "agent", "status")
    assert duration == {("coder", "ok"): pytest.approx(sum(wall.values()))}
    assert measured.values("turntrace.turns", "agent", "status") == {("coder", "ok"): 1}
    assert measured.values("turntrace.phase.exclusive_time", "phase", "tool", "model") == pytest.approx(
        {
            ("generation", None, "m-1"): 0.4,
            ("tool_execution", "bash", None): 0.3,
            ("tool_execution", "sh", None): 0.2,
        }
    )
    assert measured.values("turntrace.tokens", "agent", "model", "type") == {
        ("coder", "m-1", "input"): 10,
        ("coder", "m-1", "output"): 0,
    }


def test_a_nested_model_call_is_measured_once(recorded, clock):
    """The outermost span of one call tells its tokens, the richest report among them."""
    tracer = recorded.tracer()
    with an_agent(tracer), a_chat(tracer, "outer"), a_chat(tracer, "inner") as inner:
        clock.wait(1)
        inner.set_attributes({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2})
    recorded.processor.force_flush()
    assert recorded.measured.values("turntrace.tokens", "type") == {("input",): 5, ("output",): 2}


def test_a_model_call_that_is_known_only_at_its_end_is_measured_too(recorded, clock):
    """Its tokens count, whenever its attributes came."""
    tracer = recorded.tracer()
    with an_agent(tracer), tracer.start_as_current_span("call") as call:
        clock.wait(1)
        call.set_attributes({**CHAT, "gen_ai.usage.input_tokens": 5})
    recorded.processor.force_flush()
    assert recorded.measured.values("turntrace.tokens", "model", "type") == {("m-1", "input"): 5}


def test_a_span_without_a_phase_and_a_root_that_is_no_turn_have_no_point(recorded, clock):
    """Structure is not measured, nor is a local root, whose turn may be elsewhere."""
    tracer = recorded.tracer()
    start = tracer.start_as_current_span
    with start("POST /chat"), start("node"), start("GET", attributes=HTTP):
        clock.wait(1)
    recorded.processor.force_flush()
    assert recorded.measured.points("turntrace.turns") == []
    assert recorded.measured.values("turntrace.phase.exclusive_time", "phase") == {("other",): 0.001}


def test_retries_are_told_by_reason_and_never_twice(recorded):
    """Waits are counted by what they say; retries that no wait tells are of unknown reason."""
    with tt.turn("a"):
        tt.count("retry_count", 3)
        with tt.phase("retry_wait", attributes={"turntrace.reason": "429"}):
            pass
        with tt.phase("retry_wait"):
            pass
    recorded.processor.force_flush()
    assert recorded.measured.values("turntrace.retries", "reason") == {("429",): 1, ("unknown",): 2}


def test_a_wait_carries_the_model_for_whoever_reads_spans_one_by_one(recorded):
    """On the exported span: the model of the call it lies in, else of the turn's first call, else none."""
    with Exported(recorded) as exported:
        with tt.turn("a"), tt.phase("retry_wait"):
            pass
        before = exported.spans()["retry_wait"]
        with tt.turn("a"), tt.generation(model="m-2"), tt.phase("retry_wait"):
            pass
        inside = exported.spans()["retry_wait"]
    assert "turntrace.model" not in before.attributes
    assert inside.attributes["turntrace.model"] == "m-2"


def test_no_point_is_made_for_an_unknown_count(measured):
    """A token type that was not reported is no zero."""
    usage = Usage(span_id="1", model="m", input_tokens=3, cached_input_tokens=0)
    measured.metrics.model_called(replace(CALL, usage=usage))
    assert measured.values("turntrace.tokens", "type") == {("input",): 3, ("cache_read",): 0}


def test_a_name_that_is_unknown_says_so(measured):
    """Without an agent or a model the label is the word unknown."""
    measured.metrics.retried(None, None, "429", 2)
    assert measured.values("turntrace.retries", "agent", "model") == {("unknown", "unknown"): 2}


def test_chosen_labels_of_a_turn_become_attributes():
    """Only the named labels, and only where the turn has them."""
    measured = Measured(labels=frozenset({"team", "tier"}))
    measured.metrics.turn_ended(replace(TURN, labels={"team": "x", "user": "u1"}))
    for name in ("turntrace.turn.duration", "turntrace.turn.active_duration", "turntrace.turns",
                 "turntrace.phase.wall_time"):  # fmt: skip
        for point in measured.points(name):
            assert point.attributes["team"] == "x"
            assert {"tier", "user"}.isdisjoint(point.attributes)
    measured.provider.shutdown()


def test_tools_models_and_agents_have_a_hundred_names_each(measured):
    """One label that is full leaves the others their names."""
    for number in range(105):
        measured.metrics.span_ended("a", "tool_execution", MS, ("tool", f"t{number}"), CONTEXT)
    measured.metrics.span_ended("a", "generation", MS, ("model", "m"), CONTEXT)
    values = measured.values("turntrace.phase.exclusive_time", "tool", "model")
    assert len(values) == 102
    assert values["_other", None] == pytest.approx(0.005)
    assert values[None, "m"] == pytest.approx(0.001)


def test_what_was_dropped_is_read_as_it_stands(measured):
    """Totals by reason, whenever they are asked for; no reason, no point."""
    guard = measured.guard
    assert measured.points("turntrace.dropped") == []
    guard.drop("content", 3)
    assert measured.values("turntrace.dropped", "reason") == {("content",): 3}
    guard.drop("content")
    guard.drop("late")
    assert measured.values("turntrace.dropped", "reason") == {("content",): 4, ("late",): 1}


def test_exporters_say_what_waits_and_what_failed(measured):
    """A queue and failed batches, by exporter."""
    measured.exporters = [("otlp", 3, 17), ("console", 0, 0)]
    assert measured.values("turntrace.export.failures", "exporter") == {("otlp",): 3, ("console",): 0}
    assert measured.values("turntrace.export.queue", "exporter") == {("otlp",): 17, ("console",): 0}


def test_a_running_turn_is_seen_before_it_ends(recorded, clock):
    """How many run and how old the oldest is; a root that may be no turn does not count; after the end, 0."""
    measured = recorded.measured
    measured.live = recorded.processor.recording.table.live
    with recorded.tracer().start_as_current_span("POST /chat"):
        assert measured.points("turntrace.turn.active") == []
    with tt.turn("a"):
        clock.wait(2_000)
        with an_agent(recorded.tracer("other"), context=Context()):
            clock.wait(500)
            assert measured.values("turntrace.turn.active", "agent") == {("a",): 1, ("coder",): 1}
            assert measured.values("turntrace.turn.oldest", "agent") == {("a",): 2.5, ("coder",): 0.5}
    assert measured.values("turntrace.turn.active", "agent") == {("a",): 0, ("coder",): 0}
    assert measured.values("turntrace.turn.oldest", "agent") == {("a",): 0, ("coder",): 0}


def test_a_rate_is_that_of_the_stream(measured):
    """Output tokens for each second after the first token; unknown without any of the three."""
    measured.metrics.model_called(CALL)
    assert measured.values("turntrace.generation.output_rate", "model") == {("m",): 50}
    for unknown in (
        {"first_token_ns": None},
        {"usage": None},
        {"usage": Usage(span_id="1")},
        {"duration_ns": 1_000 * MS},
    ):
        measured.metrics.model_called(replace(CALL, **unknown))
    (point,) = measured.points("turntrace.generation.output_rate")
    assert point.count == 1


def test_a_turn_without_length_has_no_coverage(measured):
    """A share of nothing is unknown; the turn is counted."""
    measured.metrics.turn_ended(replace(TURN, wall_ns_by_phase={"unattributed": 0}, coverage=0.0))
    assert measured.points("turntrace.turn.coverage") == []
    assert measured.values("turntrace.turns", "status") == {("ok",): 1}


def test_counters_are_told_while_the_turn_runs(recorded):
    """Events of the contract that are metrics; others and nothing are left out."""
    with tt.turn("a"):
        tt.count("compaction_count")
        tt.count("reconnect_count", 2)
        tt.count("completion_nudges", 0)
        tt.count("polling_turn")
        recorded.processor.flush()
        assert recorded.measured.values("turntrace.compactions", "agent") == {("a",): 1}
        assert recorded.measured.values("turntrace.reconnects", "agent") == {("a",): 2}
        assert recorded.measured.points("turntrace.completion_nudges") == []


def test_a_turn_of_loose_spans_is_measured_when_it_closes(recorded, clock):
    """A service without an agent's span: the window is the entry span's, once it is known to be a turn."""
    start = recorded.tracer().start_as_current_span
    with start("POST /chat"), a_chat(recorded.tracer()):
        clock.wait(100)
    recorded.processor.force_flush()
    recorded.processor.closer.close_all()
    measured = recorded.measured
    assert measured.values("turntrace.turns", "agent", "status") == {("unknown", "ok"): 1}
    assert measured.values("turntrace.turn.duration", "status") == {("ok",): pytest.approx(0.1)}


def test_a_turn_that_never_ends_is_counted_without_a_duration(recorded):
    """Its window is unknown; it is told before the exporters end, and once."""
    turn = tt.turn("a")
    turn.__enter__()
    recorded.processor.closer.measure_live()
    recorded.processor.closer.close_all()
    turn.__exit__(None, None, None)
    assert recorded.measured.values("turntrace.turns", "status") == {("interrupted",): 1}
    assert recorded.measured.points("turntrace.turn.duration") == []


def test_an_agent_whose_turns_came_and_went_between_two_exports_is_idle_not_unknown():
    """It was measured, so that nothing of it runs is a 0 and no gap on a dashboard."""
    measured = Measured()
    measured.metrics.tool_called("quick", "bash", "ok", CONTEXT)
    assert measured.values("turntrace.turn.active", "agent") == {("quick",): 0}
    assert measured.values("turntrace.turn.oldest", "agent") == {("quick",): 0}
