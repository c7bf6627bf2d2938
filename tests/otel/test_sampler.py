"""A sampler that drops nothing for processors and nothing more for exporters."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Decision, Sampler, SamplingResult
from opentelemetry.trace import SpanKind, TraceState

from turntrace.otel.sampler import RecordingSampler


class Asked(Sampler):
    """Decides as it is told and keeps what it was asked."""

    def __init__(self, decision):
        self.decision = decision
        self.asked = None

    def should_sample(self, *arguments):
        """Note the arguments."""
        self.asked = arguments
        return SamplingResult(self.decision, {"its": 1}, TraceState([("a", "b")]))

    def get_description(self):
        """A name."""
        return "Asked"


@pytest.mark.parametrize("decision", list(Decision))
def test_a_drop_becomes_a_record_without_export(decision):
    """Other decisions stand, with the asked sampler's attributes; the trace state is kept always."""
    asked = Asked(decision)
    arguments = (None, 1, "n", SpanKind.CLIENT, {"given": 2}, (), TraceState())
    result = RecordingSampler(asked).should_sample(*arguments)
    assert asked.asked == arguments
    is_dropped = decision is Decision.DROP
    assert result.decision is (Decision.RECORD_ONLY if is_dropped else decision)
    assert result.attributes == ({"given": 2} if is_dropped else {"its": 1})
    assert result.trace_state == TraceState([("a", "b")])


@pytest.mark.parametrize(("asked", "is_sampled"), [(ALWAYS_ON, True), (ALWAYS_OFF, False)])
def test_every_span_of_a_provider_is_recorded(asked, is_sampled):
    """A span that is not sampled still takes attributes and keeps those it started with."""
    provider = TracerProvider(sampler=RecordingSampler(asked), shutdown_on_exit=False)
    span = provider.get_tracer("t").start_span("s", attributes={"a": 1})
    assert span.is_recording()
    assert span.attributes == {"a": 1}
    assert span.get_span_context().trace_flags.sampled is is_sampled


def test_the_description_names_the_sampler_that_is_asked():
    """People who print the sampler see both."""
    assert RecordingSampler(ALWAYS_OFF).get_description() == "RecordingSampler(AlwaysOffSampler)"
