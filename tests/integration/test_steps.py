"""A wall clock that is stepped while a turn runs: durations stay those of the monotonic clock."""

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import turntrace as tt
from recordings import Recorded
from turntrace.core.attribution import attribute
from turntrace.otel.batch import LazyBatchProcessor

MS = 1_000_000
SECOND = 1_000 * MS
STEPS = pytest.mark.parametrize("step_ns", [2 * SECOND, -3_600 * SECOND], ids=["+2s", "-1h"])
JOURNALS = pytest.mark.parametrize("journal", ["sync", "thread"])


class SteppedClock:
    """Two clocks that move when told; a step moves the wall clock only."""

    def __init__(self):
        self.monotonic, self.wall = 7 * SECOND, 1_700_000_000 * SECOND

    def wall_ns(self):
        return self.wall

    def monotonic_ns(self):
        return self.monotonic

    def run(self, ms):
        """Let ``ms`` pass on both."""
        self.monotonic += ms * MS
        self.wall += ms * MS

    def step(self, ns):
        """Set the wall clock."""
        self.wall += ns


class Exported:
    """The batch that our own exporters would get, kept in memory."""

    def __init__(self, recorded):
        self._exporter = InMemorySpanExporter()
        self._batch = LazyBatchProcessor(lambda: self._exporter, recorded.guard, 2048, lambda: None)
        recorded.processor.follow_with([self._batch])

    def spans(self):
        """The copies by span id; the batch is over."""
        self._batch.shutdown()
        return {f"{span.context.span_id:016x}": span for span in self._exporter.get_finished_spans()}


@pytest.fixture
def clock(monkeypatch):
    """The clock of the processor and of the SDK's stamps."""
    clock = SteppedClock()
    monkeypatch.setattr("opentelemetry.sdk.trace.time_ns", clock.wall_ns)
    return clock


def check(turn, copies, expected_ms):
    """Durations of the file, those of the copies and the window agree with what really passed."""
    durations = {span.name: (span.end_ns - span.start_ns) // MS for span in turn.spans}
    assert durations == expected_ms
    for span in turn.spans:
        copy = copies[span.span_id]
        assert (copy.start_time, copy.end_time) == (span.start_ns, span.end_ns)
        assert turn.started_ns <= span.start_ns <= span.end_ns <= turn.completed_ns
    root = copies[turn.span_id]
    assert (root.start_time, root.end_time) == (turn.started_ns, turn.completed_ns)
    result = attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )
    for times in result.spans:
        exported_ms = copies[times.span.span_id].attributes["turntrace.exclusive_ms"]
        assert exported_ms * MS == pytest.approx(times.exclusive_ns, abs=1_000)
    wall = {k: v for k, v in root.attributes.items() if k.startswith("turntrace.wall.")}
    assert sum(wall.values()) * MS == pytest.approx(turn.completed_ns - turn.started_ns, abs=1_000)


CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


@STEPS
@JOURNALS
def test_complaint_36_a_step_inside_a_turn_changes_no_duration(tmp_path, clock, step_ns, journal):
    """Own and foreign spans before, across and after the step last as long as they did."""
    with Recorded(tmp_path / "t.ndjson", clock=clock, journal=journal) as recorded:
        exported, tracer = Exported(recorded), recorded.tracer()
        with tt.turn("a"):
            clock.run(10)
            with tracer.start_as_current_span("foreign before", attributes=CHAT):
                clock.run(30)
            with (
                tracer.start_as_current_span("foreign across", attributes=CHAT),
                tt.phase("provider_connect"),
            ):
                clock.run(20)
                with tracer.start_as_current_span("GET", attributes={"http.request.method": "GET"}):
                    clock.run(5)
                    clock.step(step_ns)
                    clock.run(5)
                clock.run(10)
            with tt.tool("after"):
                clock.run(7)
            with tracer.start_as_current_span("foreign after", attributes=CHAT):
                clock.run(40)
                clock.step(-step_ns)
                clock.run(3)
    (block,) = recorded.blocks()
    assert block.turn.completed_ns - block.turn.started_ns == 130 * MS
    expected = {
        "foreign before": 30,
        "foreign across": 40,
        "provider_connect": 40,
        "GET": 10,
        "execute_tool after": 7,
        "foreign after": 43,
    }
    check(block.turn, exported.spans(), expected)


@STEPS
@JOURNALS
def test_complaint_36_a_step_inside_a_foreign_turn_changes_no_duration(tmp_path, clock, step_ns, journal):
    """The same for a turn whose root another instrumentation made: its window is what passed."""
    with Recorded(tmp_path / "t.ndjson", clock=clock, journal=journal) as recorded:
        exported, tracer = Exported(recorded), recorded.tracer()
        agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
        with tracer.start_as_current_span("invoke_agent a", attributes=agent):
            clock.run(10)
            with tracer.start_as_current_span("chat m", attributes=CHAT):
                clock.run(20)
                clock.step(step_ns)
            with tt.tool("x"):
                clock.run(30)
            clock.run(1)
    (block,) = recorded.blocks()
    assert block.turn.completed_ns - block.turn.started_ns == 61 * MS
    check(block.turn, exported.spans(), {"chat m": 20, "execute_tool x": 30})


@STEPS
def test_complaint_36_two_turns_around_a_step_have_a_clock_each(tmp_path, clock, step_ns):
    """A turn is anchored to the wall clock at its opening: the next one starts at the new time."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded:
        for _ in range(2):
            with tt.turn("a"), tt.tool("x"):
                clock.run(50)
            clock.step(step_ns)
    first, second = (block.turn for block in recorded.blocks())
    assert second.started_ns - first.started_ns == 50 * MS + step_ns
    assert {turn.completed_ns - turn.started_ns for turn in (first, second)} == {50 * MS}


def test_a_difference_below_a_millisecond_is_left_alone(tmp_path, clock):
    """The SDK's own stamps stand where the clocks agree, so that both files name the same nanosecond."""
    with Recorded(tmp_path / "t.ndjson", clock=clock) as recorded, tt.turn("a"):
        clock.step(999_999)
        with recorded.tracer().start_as_current_span("chat m", attributes=CHAT):
            clock.run(5)
    (span,) = recorded.blocks()[0].turn.spans
    assert (span.start_ns, span.end_ns) == (clock.wall - 5 * MS, clock.wall)
