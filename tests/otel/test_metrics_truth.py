"""The metrics of random turns against what plain loops make of their trace file."""

from contextlib import nullcontext
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turntrace as tt
from metric_oracle import EVENTS, Histogram, expected, labels_of
from otel.fakes import FakeClock, a_chat, a_tool, an_agent
from otel.test_metrics import Measured
from recordings import Recorded
from turntrace.core.metric_table import METRICS

PAUSES = st.integers(1, 2_000)
STEPS = st.recursive(
    st.one_of(
        st.tuples(
            st.just("phase"), st.sampled_from(["prompt_build", "permission_wait", "verification"]), PAUSES
        ),
        st.tuples(st.sampled_from(["chat", "nested"]), st.integers(1, 400), PAUSES),
        st.tuples(
            st.sampled_from(["retry", "retried"]),
            st.sampled_from(["429", "503", "ReadTimeout", "who knows"]),
            PAUSES,
        ),
        st.tuples(
            st.just("count"), st.sampled_from([*EVENTS, "retry_count", "polling_turn"]), st.integers(1, 3)
        ),
        st.tuples(st.sampled_from(["fail", "foreign"]), st.just(""), PAUSES),
    ),
    lambda inner: st.tuples(st.sampled_from(["tool", "structure"]), st.lists(inner, max_size=3), PAUSES),
    max_leaves=6,
)


def play(step, clock, tracer):
    """Do one step of a turn."""
    kind, what, pause = step
    if kind == "count":
        tt.count(what, pause)
        return
    with block(kind, what, tracer) as span:
        clock.wait(pause / 2)
        if isinstance(what, list):
            for inner in what:
                play(inner, clock, tracer)
        if kind == "nested":
            with a_chat(tracer) as inside:
                clock.wait(1)
                inside.set_attributes({"gen_ai.usage.input_tokens": what, "gen_ai.usage.output_tokens": 1})
        if kind == "retried":
            with tt.phase("retry_wait", attributes={"turntrace.reason": what}):
                clock.wait(1)
        if kind == "chat":
            span.set("turntrace.first_token_ms", pause / 2)
            span.usage(input_tokens=what, output_tokens=what // 2, cached_input_tokens=None)
        clock.wait(pause / 2)
        if kind == "fail":
            raise LookupError(what)


def block(kind, what, tracer):
    """The span of a step."""
    made = {
        "phase": lambda: tt.phase(what),
        "retry": lambda: tt.phase("retry_wait", attributes={"turntrace.reason": what}),
        "chat": lambda: tt.generation(model="m-1", provider="p"),
        "retried": lambda: tt.generation(model="m-3"),
        "nested": lambda: tt.generation(model="m-1"),
        "tool": lambda: tt.tool("bash"),
        "fail": lambda: tt.tool("sh"),
        "foreign": lambda: a_chat(tracer),
        "structure": lambda: tracer.start_as_current_span("node"),
    }
    return made[kind]()


@settings(max_examples=25)
@given(turns=st.lists(st.lists(STEPS, min_size=1, max_size=4), min_size=1, max_size=3))
def test_metrics_are_what_the_file_says(turns, tmp_path_factory):
    """Every counter and every bucket of every label set equals the count of the file's own lines."""
    out = tmp_path_factory.mktemp("truth") / "t.ndjson"
    clock, measured = FakeClock(), Measured()
    with mock.patch("opentelemetry.sdk.trace.time_ns", clock.wall_ns), Recorded(out, clock=clock) as recorded:
        recorded.processor.recording.metrics = measured.metrics
        for number, steps in enumerate(turns):
            with tt.turn(f"agent-{number % 2}"):
                for step in steps:
                    try:
                        play(step, clock, recorded.tracer())
                    except LookupError:
                        clock.wait(1)
        with an_agent(recorded.tracer()), a_tool(recorded.tracer()):
            clock.wait(7)
    compare(measured, expected([out]))
    measured.provider.shutdown()


def compare(measured, truth):
    """Points and truth have the same label sets and the same values."""
    made = measured.all()
    for name, metric in METRICS.items():
        if metric.kind not in {"counter", "histogram"}:
            continue
        points = {labels_of(**p.attributes): p for p in (made[name].data.data_points if name in made else ())}
        assert points.keys() == truth.get(name, {}).keys(), name
        for labels, value in truth.get(name, {}).items():
            if isinstance(value, Histogram):
                assert points[labels].count == len(value.values), name
                assert points[labels].sum == pytest.approx(sum(value.values), abs=1e-6), (name, labels)
                assert points[labels].min == pytest.approx(min(value.values), abs=1e-6), name
            else:
                assert points[labels].value == value, (name, labels)


@pytest.mark.parametrize("entry", [None, "POST /chat"])
@pytest.mark.parametrize("has_agent", [False, True])
def test_turns_without_a_root_of_their_own_are_what_the_file_says(tmp_path, entry, has_agent):
    """Loose calls, below an entry span or none, beside an agent's span or not: one turn, with the file's window."""
    clock, measured = FakeClock(), Measured()
    out = tmp_path / "t.ndjson"
    with mock.patch("opentelemetry.sdk.trace.time_ns", clock.wall_ns), Recorded(out, clock=clock) as recorded:
        recorded.processor.recording.metrics = measured.metrics
        tracer = recorded.tracer()
        with nullcontext() if entry is None else tracer.start_as_current_span(entry):
            clock.wait(2)
            with a_chat(tracer):
                clock.wait(5)
                tt.count("retry_count", 2)
            if has_agent:
                with an_agent(tracer), a_tool(tracer):
                    clock.wait(3)
            clock.wait(1)
    truth = expected([out])
    assert sum(truth["turntrace.turns"].values()) == 1 + has_agent
    compare(measured, truth)
    measured.provider.shutdown()
