"""Trace headers go to loopback and to hosts that were named, never to a model provider."""

import pytest
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from turntrace.otel import propagation
from turntrace.otel.propagation import LocalPropagator, is_local

TRACER = TracerProvider().get_tracer("test")
HEADER = "00-000000000000000000000000000000ab-00000000000000cd-01"


def headers(attributes, hosts=()):
    """What is injected while a span of these attributes is current."""
    carrier = {}
    span = TRACER.start_span("GET", attributes=attributes)
    propagator = LocalPropagator(TraceContextTextMapPropagator(), frozenset(hosts))
    propagator.inject(carrier, set_span_in_context(span))
    return carrier


@pytest.mark.parametrize(
    "attributes",
    [
        {"server.address": "localhost"},
        {"server.address": "127.0.0.1", "server.port": 80},
        {"net.peer.name": "[::1]"},
        {"url.full": "http://127.3.2.1:8000/v1?x=https://api.openai.com"},
        {"http.url": "http://LOCALHOST/x"},
        {"server.address": "app.localhost", "url.full": "http://app.localhost/"},
    ],
)
def test_loopback_gets_headers(attributes):
    """Any attribute that names this machine lets the headers through."""
    assert "traceparent" in headers(attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"gen_ai.operation.name": "chat"},
        {"server.address": "api.openai.com"},
        {"server.address": "localhost.evil.example"},
        {"server.address": "10.0.0.1"},
        {"url.full": "https://api.anthropic.com/v1/messages"},
        {"url.full": "no url"},
        {"url.full": "http://[broken"},
        {"server.address": "localhost", "url.full": "https://api.openai.com/"},
    ],
)
def test_everybody_else_gets_none(attributes):
    """No named target, another machine, or a provider behind a local proxy: no headers."""
    assert headers(attributes) == {}


def test_named_hosts_get_headers():
    """A host of TURNTRACE_PROPAGATE_HOSTS is treated as the agent's own, in any case of letters."""
    assert "traceparent" in headers({"server.address": "Tools.Internal"}, ["tools.internal"])
    assert "traceparent" in headers({"server.address": "tools.internal"}, ["TOOLS.internal"])
    assert headers({"server.address": "x.tools.internal"}, ["tools.internal"]) == {}


def test_a_span_without_attributes_gets_none():
    """A span that is not recorded names no target."""
    carrier = {}
    context = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1))
    propagator = LocalPropagator(TraceContextTextMapPropagator(), frozenset())
    propagator.inject(carrier, set_span_in_context(NonRecordingSpan(context)))

    assert carrier == {}


def test_extraction_is_unchanged():
    """What comes in is read as before."""
    inner = TraceContextTextMapPropagator()
    propagator = LocalPropagator(inner, frozenset())
    context = propagator.extract({"traceparent": HEADER})

    assert trace.get_current_span(context).get_span_context().trace_id == 0xAB
    assert propagator.fields == inner.fields


def test_the_rule_is_put_around_the_chosen_propagator_once():
    """The global propagator keeps its kind; installing twice changes nothing more."""
    before = propagate.get_global_textmap()
    try:
        propagation.install(frozenset({"a"}))
        once = propagate.get_global_textmap()
        propagation.install(frozenset({"b"}))

        assert propagate.get_global_textmap() is once
        assert once.fields == before.fields
    finally:
        propagate.set_global_textmap(before)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "", "example.org", "1270.0.0.1"])
def test_other_hosts_are_not_local(host):
    """Only names and addresses that cannot leave the machine are local."""
    assert not is_local(host)
