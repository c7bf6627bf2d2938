"""Copies of ended spans: everything is kept but what is replaced."""

import json

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from turntrace.otel.enrich import EnrichedSpan, rebuilt


def ended():
    """A span with everything, and more of it than its limits allow."""
    provider = TracerProvider(
        resource=Resource({"service.name": "s"}),
        shutdown_on_exit=False,
        span_limits=SpanLimits(max_attributes=1, max_events=1, max_links=1),
    )
    links = [Link(SpanContext(9, number, False, TraceFlags(1))) for number in (1, 2)]
    span = provider.get_tracer("scope", "1.0").start_span(
        "s", kind=SpanKind.CLIENT, attributes={"a": 1, "b": 2}, links=links, start_time=5
    )
    for name in ("one", "two", "three"):
        span.add_event(name, timestamp=7)
    span.set_status(Status(StatusCode.ERROR, "told"))
    span.end(9)
    return span


def test_a_copy_is_the_span_but_for_its_attributes():
    """Ids, times, events, links, status, scope and what was dropped are as they were."""
    span = ended()
    copy = rebuilt(span, {"x": 1})
    assert json.loads(copy.to_json()) == {**json.loads(span.to_json()), "attributes": {"x": 1}}
    assert copy.instrumentation_scope == span.instrumentation_scope
    counts = [(one.dropped_attributes, one.dropped_events, one.dropped_links) for one in (span, copy)]
    assert counts == [(1, 2, 1)] * 2


def test_what_is_given_replaces():
    """Times, events, links and status can be others; zero is a time."""
    copy = rebuilt(ended(), {}, start_ns=0, end_ns=3)
    assert (copy.start_time, copy.end_time, dict(copy.attributes)) == (0, 3, {})
    bare = EnrichedSpan(ended(), events=(), links=(), status=Status(StatusCode.OK))
    assert (bare.events, bare.links) == ((), ())
    assert bare.status.status_code is StatusCode.OK
