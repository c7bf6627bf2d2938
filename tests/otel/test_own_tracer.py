"""Our own spans are the SDK's own, whatever is done with them; what is special is asked of the SDK."""

import json
import threading
import time
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    DEFAULT_ON,
    ParentBased,
    ParentBasedTraceIdRatio,
    Sampler,
    TraceIdRatioBased,
)
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags
from opentelemetry.trace.span import TraceState

from turntrace.otel import own_tracer
from turntrace.otel.own_span import OwnSpan
from turntrace.otel.own_tracer import OwnTracer
from turntrace.otel.sampler import RecordingSampler, keeps_children


class Word(StrEnum):
    """A string that is more than one."""

    A = "a"


class Started(SpanProcessor):
    """Sets an attribute when a span starts, as baggage processors do, and keeps what it saw."""

    def __init__(self):
        self.seen = []

    def on_start(self, span, parent_context=None):
        self.seen.append((span.name, dict(span.attributes)))
        span.set_attribute("baggage", "x")


def made(act, *, lean, sampler=DEFAULT_ON, limits=None, started=None):
    """What is exported of a child on which ``act`` was called, with what its processor saw at the start."""
    exporter, started = InMemorySpanExporter(), started or Started()
    provider = TracerProvider(sampler, Resource({"a": "b"}), shutdown_on_exit=False, span_limits=limits)
    provider.add_span_processor(started)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("turntrace", "1")
    own = OwnTracer(tracer) if lean else tracer
    with tracer.start_as_current_span("parent", start_time=1) as parent:
        context = trace.set_span_in_context(parent)
        span = own.start_span("child", context, SpanKind.CLIENT, {"p": "x", "n": 1}, start_time=5)
        assert isinstance(span, OwnSpan) is lean
        act(span)
        span.end(9)
    (child,) = [found for found in exporter.get_finished_spans() if found.name == "child"]
    assert child.parent == parent.get_span_context()
    assert child.context.trace_id == parent.get_span_context().trace_id
    assert child.context.trace_flags == parent.get_span_context().trace_flags
    return {
        "attributes": dict(child.attributes),
        "events": [(event.name, dict(event.attributes)) for event in child.events],
        "links": len(child.links),
        "times": (child.start_time, child.end_time),
        "kind": child.kind,
        "status": (child.status.status_code, child.status.description),
        "resource": child.resource,
        "scope": child.instrumentation_scope,
        "dropped": (child.dropped_attributes, child.dropped_events, child.dropped_links),
        "started": started.seen[1:],
        "read": (span.name, dict(span.attributes), span.is_recording()),
    }


def nothing(span):
    """Leave the span as it is."""


def everything(span):
    """Use what the API has."""
    span.add_event("e", {"a": (1, 2)})
    span.add_link(SpanContext(1, 2, is_remote=False), {"l": 1})
    span.set_attributes({"b": True, "f": 1.5, "list": ["x", "y"], "n": 7})
    span.update_name("child")
    span.record_exception(ValueError("v"), attributes={"exception.stacktrace": "s"})
    span.set_status(StatusCode.ERROR, "d")


ACTS = [
    nothing,
    everything,
    lambda span: span.set_attribute("tuple", ("a", "b")),
    lambda span: span.set_attribute("none", None),
    lambda span: span.set_attribute("object", object),
    lambda span: span.set_attribute("", 1),
    lambda span: span.set_attribute(3, 1),
    lambda span: span.set_attribute("word", Word.A),
    lambda span: span.set_attributes({"p": ["y"]}),
    lambda span: span.set_attributes({"p": ["y"], "q": 1}),
    lambda span: span.set_attributes({f"k{number}": number for number in range(300)}),
    lambda span: span.set_attributes({3: 4, None: 5, "": 6, b"x": 7, "ok": 8}),
    lambda span: span._attributes.update({"private": 1}),
    lambda span: span.set_attribute("json", json.loads(span.to_json())["attributes"]["p"]),
    lambda span: [span.set_attribute(key, 1) for key in span.attributes],
]


@pytest.mark.parametrize("act", ACTS)
def test_a_span_of_ours_is_the_span_that_the_sdk_makes(act):
    """Attributes, events, links, status, times, what was dropped: all as if the tracer had made it."""
    assert made(act, lean=True) == made(act, lean=False)


class Private(Started):
    """Reaches for what is not public, as some processors do."""

    def on_start(self, span, parent_context=None):
        super().on_start(span, parent_context)
        span._attributes["tenant"] = "t"


def test_a_processor_that_writes_where_the_sdk_keeps_attributes_is_served():
    """Every span has its own, also after others have ended."""
    for _ in range(2):
        ours = made(nothing, lean=True, started=Private())
        assert ours == made(nothing, lean=False, started=Private())
        assert ours["attributes"]["tenant"] == "t"


@pytest.mark.parametrize("attributes", [{1: "a"}, {None: 2}, {"": "e"}, {b"x": 1}, {"a": 1, 2: 3}])
def test_keys_that_are_no_names_are_the_sdks_to_judge(attributes):
    """It drops some and makes words of others; ours are the same."""
    found = []
    for kind in (OwnTracer, lambda tracer: tracer):
        tracer = TracerProvider(shutdown_on_exit=False).get_tracer("turntrace")
        context = trace.set_span_in_context(tracer.start_span("parent"))
        span = kind(tracer).start_span("child", context, SpanKind.INTERNAL, dict(attributes))
        found.append((dict(span.attributes), span.dropped_attributes))
    assert found[0] == found[1]


def test_what_was_exported_is_nobody_elses():
    """A reader of the live span cannot change it, nor can one exporter what another sees."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("turntrace")
    context = trace.set_span_in_context(tracer.start_span("parent"))
    span = OwnTracer(tracer).start_span("child", context, SpanKind.INTERNAL, {"a": 1})
    with pytest.raises(TypeError):
        span.attributes["b"] = 2
    span.end()
    assert (dict(span.attributes), json.loads(span.to_json())["attributes"]) == ({"a": 1}, {"a": 1})


KEYS = st.one_of(st.sampled_from(["p", "n", "", "k"]), st.text(max_size=3))
VALUES = st.one_of(
    st.text(max_size=3),
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False),
    st.lists(st.integers(), max_size=2),
)


@given(st.lists(st.tuples(KEYS, VALUES), max_size=60))
def test_attributes_in_any_order_are_those_of_the_sdk(pairs):
    """Plain or not, again or for the first time, few or many."""

    def act(span):
        for key, value in pairs:
            span.set_attribute(key, value)

    assert made(act, lean=True) == made(act, lean=False)


def test_an_ended_span_takes_no_more(caplog):
    """The SDK's one warning, and the exported attributes stay as they were."""

    def late(span):
        span.end(9)
        span.set_attribute("late", 1)
        span.set_attribute("late", ["x"])
        span.set_attributes({"later": 1})

    exported = made(late, lean=True)
    assert exported["attributes"] == {"p": "x", "n": 1, "baggage": "x"}
    assert {record.name for record in caplog.records} == {"opentelemetry.sdk.trace"}


def test_a_span_with_attributes_that_are_not_plain_is_made_by_the_tracer():
    """A list is checked and copied as always."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("turntrace")
    context = trace.set_span_in_context(tracer.start_span("parent"))
    span = OwnTracer(tracer).start_span("child", context, SpanKind.INTERNAL, {"a": ["x"], "b": 1})
    assert not isinstance(span, OwnSpan)
    assert dict(span.attributes) == {"a": ("x",), "b": 1}


def test_a_span_without_a_start_time_starts_now():
    """And a field that no span has is no field of ours."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("turntrace")
    context = trace.set_span_in_context(tracer.start_span("parent"))
    before_ns = time.time_ns()
    span = OwnTracer(tracer).start_span("child", context, SpanKind.INTERNAL, {})
    assert isinstance(span, OwnSpan)
    assert before_ns <= span.start_time <= time.time_ns()
    assert (span.events, span.links) == ((), ())
    with pytest.raises(AttributeError, match="'OwnSpan' object has no attribute 'x'"):
        _ = span.x


def test_attributes_set_by_many_threads_are_all_there():
    """Handing over to the SDK while others set loses none."""
    provider = TracerProvider(shutdown_on_exit=False)
    tracer = provider.get_tracer("turntrace")
    context = trace.set_span_in_context(tracer.start_span("parent"))
    for _ in range(20):
        span = OwnTracer(tracer).start_span("child", context, SpanKind.INTERNAL, {})

        def sets(name, span=span):
            for number in range(4):
                span.set_attribute(f"{name}{number}", number if number < 3 else [number])

        threads = [threading.Thread(target=sets, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(span.attributes) == 16


class Asked(Sampler):
    """A sampler of somebody's own."""

    def should_sample(self, *args, **keywords):
        return ALWAYS_ON.should_sample(*args, **keywords)

    def get_description(self):
        return "Asked,localParentSampled:AlwaysOnSampler,localParentNotSampled:x}"


class AskedChild(ParentBased):
    """One that looks like the SDK's and decides otherwise."""

    def should_sample(self, *args, **keywords):
        return ALWAYS_OFF.should_sample(*args, **keywords)


@pytest.mark.parametrize(
    ("sampler", "keeps"),
    [
        (DEFAULT_ON, True),
        (ALWAYS_ON, True),
        (RecordingSampler(DEFAULT_ON), True),
        (RecordingSampler(ParentBasedTraceIdRatio(0.1)), True),
        (ALWAYS_OFF, False),
        (TraceIdRatioBased(0.5), False),
        (ParentBased(ALWAYS_ON, local_parent_sampled=ALWAYS_OFF), False),
        (ParentBased(ALWAYS_ON, local_parent_sampled=DEFAULT_ON), False),
        (ParentBased(DEFAULT_ON, local_parent_sampled=TraceIdRatioBased(0.5)), False),
        (Asked(), False),
        (AskedChild(ALWAYS_ON), False),
    ],
)
def test_a_sampler_is_left_out_only_where_its_answer_is_known(sampler, keeps):
    """Every other is asked for every span."""
    assert keeps_children(sampler) is keeps
    tracer = TracerProvider(sampler, shutdown_on_exit=False).get_tracer("turntrace")
    parent = trace.set_span_in_context(
        NonRecordingSpan(SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1)))
    )
    span = OwnTracer(tracer).start_span("child", parent, SpanKind.INTERNAL, {})
    assert isinstance(span, OwnSpan) is keeps


def parent_of(**fields):
    """A context in a span with these ids."""
    return trace.set_span_in_context(NonRecordingSpan(SpanContext(**fields)))


@pytest.mark.parametrize(
    "context",
    [
        trace.set_span_in_context(trace.INVALID_SPAN),
        parent_of(trace_id=1, span_id=2, is_remote=True, trace_flags=TraceFlags(1)),
        parent_of(trace_id=1, span_id=2, is_remote=False, trace_flags=TraceFlags(0)),
    ],
)
def test_roots_and_children_of_remote_and_unsampled_spans_are_made_by_the_tracer(context):
    """There the sampler has something to decide."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("turntrace")
    assert not isinstance(OwnTracer(tracer).start_span("child", context, SpanKind.INTERNAL, {}), OwnSpan)


@pytest.mark.parametrize("bits", [1, 3, 5, 7, 255])
def test_flags_and_state_of_the_trace_are_handed_on(bits):
    """Sampled and random, and no other bit, as the SDK does."""
    state = TraceState([("v", "1")])
    context = parent_of(
        trace_id=1, span_id=2, is_remote=False, trace_flags=TraceFlags(bits), trace_state=state
    )
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("turntrace")
    ours = OwnTracer(tracer).start_span("a", context, SpanKind.INTERNAL, {}).get_span_context()
    theirs = tracer.start_span("b", context).get_span_context()
    assert isinstance(ours.trace_flags, TraceFlags)
    assert (ours.trace_flags, ours.trace_state) == (theirs.trace_flags, theirs.trace_state)
    assert ours.span_id != theirs.span_id


@pytest.mark.parametrize(
    "limits",
    [
        SpanLimits(max_span_attribute_length=3),
        SpanLimits(max_span_attributes=2),
        SpanLimits(max_attribute_length=1),
    ],
)
def test_limits_on_attributes_are_the_sdks_to_keep(limits):
    """A span with them is made by the tracer."""
    tracer = TracerProvider(shutdown_on_exit=False, span_limits=limits).get_tracer("turntrace")
    context = parent_of(trace_id=1, span_id=2, is_remote=False, trace_flags=TraceFlags(1))
    assert not isinstance(OwnTracer(tracer).start_span("a", context, SpanKind.INTERNAL, {}), OwnSpan)


def test_limits_on_events_and_links_hold():
    """They are handed to the span."""
    limits = SpanLimits(max_events=1, max_links=0)
    found = made(everything, lean=True, limits=limits)
    assert found == made(everything, lean=False, limits=limits)
    assert found["dropped"][1:] != (0, 0)


def test_a_tracer_that_counts_its_spans_is_asked(monkeypatch):
    """With the SDK's own metrics on, every span is theirs to count."""
    monkeypatch.setenv("OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED", "true")
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("turntrace")
    context = parent_of(trace_id=1, span_id=2, is_remote=False, trace_flags=TraceFlags(1))
    assert not isinstance(OwnTracer(tracer).start_span("a", context, SpanKind.INTERNAL, {}), OwnSpan)


def test_a_tracer_that_was_switched_off_is_off(monkeypatch):
    """A provider may do that at any time."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("turntrace")
    own = OwnTracer(tracer)
    monkeypatch.setattr(tracer, "_is_enabled", lambda: False)
    context = parent_of(trace_id=1, span_id=2, is_remote=False, trace_flags=TraceFlags(1))
    assert not own.start_span("a", context, SpanKind.INTERNAL, {}).is_recording()


def test_another_sdk_is_asked_for_every_span(monkeypatch):
    """Where the trial gives another span, or fails, the tracer makes them all."""
    context = parent_of(trace_id=1, span_id=2, is_remote=False, trace_flags=TraceFlags(1))
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("turntrace")

    def without_plain(self):
        return Span._readable_span(self)

    def failing(self):
        raise AttributeError("_attributes")

    for changed in (without_plain, failing):
        own_tracer._is_known_sdk.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(OwnSpan, "_readable_span", changed)
            assert not isinstance(OwnTracer(tracer).start_span("a", context, SpanKind.INTERNAL, {}), OwnSpan)
        own_tracer._is_known_sdk.cache_clear()
    assert isinstance(OwnTracer(tracer).start_span("a", context, SpanKind.INTERNAL, {}), OwnSpan)


def test_a_tracer_that_is_not_the_sdks_is_asked():
    """The API's own, or anybody's."""
    span = OwnTracer(trace.NoOpTracer()).start_span(
        "a", trace.set_span_in_context(trace.INVALID_SPAN), SpanKind.INTERNAL, {}
    )
    assert not span.is_recording()
