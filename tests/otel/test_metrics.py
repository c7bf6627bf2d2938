"""The turntrace.* metrics: values, bounds, labels, exemplars."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import SpanContext, TraceFlags

import turntrace as tt
from otel.fakes import CHAT, HTTP, MS, TOOL, a_chat, a_tool, an_agent
from recordings import Recorded
from turntrace.core.model import Usage
from turntrace.otel.guard import Guard
from turntrace.otel.metrics import DURATION_BOUNDS_S, MAX_NAMES, TURN_BOUNDS_S, BoundedNames, TurnMetrics

CONTEXT = SpanContext(0xABC, 0xDEF, False, TraceFlags(TraceFlags.SAMPLED))


class Measured:
    """Metrics on a real meter, read in memory."""

    def __init__(self, guard=None, labels=frozenset()):
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader], shutdown_on_exit=False)
        self.guard = guard or Guard()
        self.metrics = TurnMetrics(self.provider.get_meter("turntrace"), self.guard, labels)

    def points(self, name):
        """The points of a metric."""
        data = self.reader.get_metrics_data()
        found = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        return [point for metric in found if metric.name == name for point in metric.data.data_points]

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


def test_the_bounds_double():
    """Spans from 10 ms to 82 s, turns from 0.1 s to almost an hour."""
    assert (len(DURATION_BOUNDS_S), DURATION_BOUNDS_S[0], DURATION_BOUNDS_S[-1]) == (14, 0.01, 81.92)
    assert (len(TURN_BOUNDS_S), TURN_BOUNDS_S[0]) == (16, 0.1)
    assert TURN_BOUNDS_S[-1] == pytest.approx(3276.8)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("turntrace.turn.duration", TURN_BOUNDS_S),
        ("turntrace.phase.wall_time", TURN_BOUNDS_S),
        ("turntrace.phase.exclusive_time", DURATION_BOUNDS_S),
    ],
)
def test_histograms_have_their_bounds_and_lead_to_a_span(measured, name, bounds):
    """The advised bounds are used, and a point keeps the ids of the span that made it."""
    measured.metrics.turn_ended("a", "ok", {"generation": 5, "unattributed": 1}, CONTEXT, {})
    measured.metrics.span_ended("a", "generation", 5, ("model", "m"), CONTEXT)
    points = measured.points(name)
    for point in points:
        assert point.explicit_bounds == pytest.approx(bounds)
        assert [(e.trace_id, e.span_id) for e in point.exemplars] == [(0xABC, 0xDEF)]
    assert points


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


def test_no_point_is_made_for_an_unknown_count(measured):
    """A token type that was not reported is no zero."""
    usage = Usage(span_id="1", model="m", input_tokens=3, cached_input_tokens=0)
    measured.metrics.model_called("a", usage, CONTEXT)
    assert measured.values("turntrace.tokens", "type") == {("input",): 3, ("cache_read",): 0}


def test_a_name_that_is_unknown_says_so(measured):
    """Without an agent or a model the label is the word unknown."""
    measured.metrics.retried(None, None, "429", 2)
    assert measured.values("turntrace.retries", "agent", "model") == {("unknown", "unknown"): 2}


def test_chosen_labels_of_a_turn_become_attributes():
    """Only the named labels, and only where the turn has them."""
    measured = Measured(labels=frozenset({"team", "tier"}))
    measured.metrics.turn_ended("a", "ok", {"unattributed": 5}, CONTEXT, {"team": "x", "user": "u1"})
    for name in ("turntrace.turn.duration", "turntrace.turns", "turntrace.phase.wall_time"):
        (point,) = measured.points(name)
        assert point.attributes["team"] == "x"
        assert {"tier", "user"}.isdisjoint(point.attributes)
    measured.provider.shutdown()


def test_beyond_a_hundred_names_the_rest_are_other():
    """A label has at most 100 values and _other, however many the application invents; that is counted."""
    guard = Guard()
    names = BoundedNames(guard)
    told = [names(f"tool {number}") for number in range(MAX_NAMES + 2)]
    assert told[:MAX_NAMES] == [f"tool {number}" for number in range(MAX_NAMES)]
    assert told[MAX_NAMES:] == ["_other"] * 2
    assert names("tool 5") == "tool 5"
    assert names(None) == "unknown"
    assert guard.dropped == {"cardinality": 2}


def test_tools_models_and_agents_have_a_hundred_names_each(measured):
    """One label that is full leaves the others their names."""
    for number in range(MAX_NAMES + 5):
        measured.metrics.span_ended("a", "tool_execution", MS, ("tool", f"t{number}"), CONTEXT)
    measured.metrics.span_ended("a", "generation", MS, ("model", "m"), CONTEXT)
    values = measured.values("turntrace.phase.exclusive_time", "tool", "model")
    assert len(values) == MAX_NAMES + 2
    assert values["_other", None] == pytest.approx(0.005)
    assert values[None, "m"] == pytest.approx(0.001)


def test_what_was_dropped_is_told_as_a_difference(measured):
    """Each time only what is new is added, by reason; nothing new adds no point."""
    guard, metrics = measured.guard, measured.metrics
    metrics.tell_dropped()
    assert measured.points("turntrace.dropped") == []
    guard.drop("content", 3)
    metrics.tell_dropped()
    metrics.tell_dropped()
    guard.drop("content")
    guard.drop("late")
    metrics.turn_ended("a", "ok", {"unattributed": 1}, CONTEXT, {})
    assert measured.values("turntrace.dropped", "reason") == {("content",): 4, ("late",): 1}
