"""What a receiver says of itself as metrics."""

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from turntrace.collect.counts import Counts
from turntrace.collect.receiver_metrics import observe_receiver


def test_a_receiver_tells_spans_and_refusals():
    """Spans taken, other signals aside, and requests refused by reason; both as they stand when asked."""
    reader, counts = InMemoryMetricReader(), Counts()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    observe_receiver(provider.get_meter("turntrace"), counts.totals)
    counts.accepted("traces", 7, {})
    counts.accepted("logs", 3, {})
    counts.rejected("path")
    counts.rejected("path")
    metrics = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    points = {m.name: [(dict(p.attributes), p.value) for p in m.data.data_points] for m in metrics}
    assert points == {
        "turntrace.receiver.spans": [({}, 7)],
        "turntrace.receiver.rejected": [({"reason": "path"}, 2)],
    }
    provider.shutdown()
