"""What a receiver says of itself as metrics."""

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from collect.test_command import Command
from otlp_receiver import HttpReceiver
from otlp_requests import post, traces
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


def test_collect_sends_its_figures_where_it_sends_spans(tmp_path):
    """Spans taken and requests refused by reason, under a service of its own; the last ones at its end."""
    with HttpReceiver() as receiver:
        with Command(tmp_path, "--endpoint", receiver.endpoint) as command:
            assert post(command, traces(3)).status == 200
            assert post(command, b"x", path="/nowhere").status == 404
            assert command.end()[0] == 0
        [resource] = receiver.metrics[-1].resource_metrics
    found = {
        (metric.name, *(label.value.string_value for label in point.attributes)): point.as_int
        for metric in resource.scope_metrics[0].metrics
        for point in metric.sum.data_points
    }
    assert found == {("turntrace.receiver.spans",): 3, ("turntrace.receiver.rejected", "path"): 1}
    named = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert named["service.name"] == "turntrace-collect"
