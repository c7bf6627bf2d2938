"""What a command of ours sends of itself."""

import threading
import time

import pytest

from otlp_receiver import HttpReceiver, SilentServer
from turntrace.config import Settings
from turntrace.otel.live_metrics import observe
from turntrace.otel.self_metrics import SelfMetrics


def measure(meter):
    """One figure."""
    observe(meter, "turntrace.receiver.spans", lambda: [(7, {})])


def figures(receiver):
    """Service and values of what arrived last."""
    [resource] = receiver.metrics[-1].resource_metrics
    names = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
    metrics = resource.scope_metrics[0].metrics
    return names, {metric.name: metric.sum.data_points[0].as_int for metric in metrics}


@pytest.mark.parametrize(
    ("settings", "service"), [(Settings(), "mine"), (Settings(service_name="shop"), "shop")]
)
def test_the_last_figures_are_sent_at_the_end(settings, service):
    """Under the name that the environment gives, else the command's; the process says that it measures itself."""
    with HttpReceiver() as receiver:
        with SelfMetrics(receiver.endpoint, settings, "mine", measure):
            pass
        names, values = figures(receiver)
    assert values == {"turntrace.receiver.spans": 7}
    assert (names["service.name"], names["turntrace.metrics"]) == (service, "process")


def test_figures_are_sent_each_interval():
    """While it runs, not only at its end."""
    with (
        HttpReceiver() as receiver,
        SelfMetrics(receiver.endpoint, Settings(metric_interval_s=0.05), "m", measure),
    ):
        end_s = time.monotonic() + 10
        while len(receiver.metrics) < 2 and time.monotonic() < end_s:
            time.sleep(0.01)
        assert len(receiver.metrics) >= 2


@pytest.mark.parametrize(
    ("endpoint", "settings"),
    [(None, Settings()), ("http://127.0.0.1:9", Settings(metrics_exporter=frozenset({"none"})))],
)
def test_nothing_is_measured_where_nothing_is_sent(endpoint, settings):
    """No endpoint, or none is asked for: no instrument, no thread."""
    before = threading.active_count()
    with SelfMetrics(endpoint, settings, "mine", lambda _: pytest.fail("measured")):
        assert threading.active_count() == before


def test_an_endpoint_that_is_silent_costs_the_exit_timeout():
    """Nobody waits longer for the last figures."""
    with SilentServer() as server:
        with SelfMetrics(server.endpoint, Settings(exit_timeout_s=0.2), "mine", measure):
            began_s = time.monotonic()
        assert time.monotonic() - began_s < 2
