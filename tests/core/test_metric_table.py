"""The table of metrics: names, bounds, how Prometheus spells them, why a request was sent again."""

import pytest

from turntrace.core.metric_table import (
    COUNT_BOUNDS,
    DURATION_BOUNDS_S,
    METRICS,
    RATIO_BOUNDS,
    RETRY_REASONS,
    TURN_BOUNDS_S,
    prometheus_name,
    retry_reason,
)


def test_the_bounds_are_those_that_were_agreed():
    """Spans 10 ms to 82 s, turns 0.1 s to almost an hour, counts to 1024, shares up to 1."""
    assert (len(DURATION_BOUNDS_S), DURATION_BOUNDS_S[0], DURATION_BOUNDS_S[-1]) == (14, 0.01, 81.92)
    assert (len(TURN_BOUNDS_S), TURN_BOUNDS_S[0]) == (16, 0.1)
    assert TURN_BOUNDS_S[-1] == pytest.approx(3276.8)
    assert RATIO_BOUNDS == (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1)
    assert tuple(2**power for power in range(11)) == COUNT_BOUNDS


def test_names_are_ours_and_histograms_have_bounds():
    """One prefix; bounds for histograms and for nothing else; no label is an id."""
    for name, metric in METRICS.items():
        assert name == metric.name
        assert name.startswith("turntrace.")
        assert bool(metric.bounds) is (metric.kind == "histogram")
        assert not any("id" in label.split("_") for label in metric.labels)
        assert metric.what[0].isupper()


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("turntrace.turn.coverage", "turntrace_turn_coverage"),
        ("turntrace.turn.oldest", "turntrace_turn_oldest_seconds"),
        ("turntrace.turn.active", "turntrace_turn_active"),
        ("turntrace.generation.output_rate", "turntrace_generation_output_rate_per_second"),
        ("turntrace.dropped", "turntrace_dropped_total"),
        ("turntrace.export.queue", "turntrace_export_queue"),
    ],
)
def test_prometheus_spells_units_and_totals(name, spelled):
    """Seconds and rates become suffixes, counters end in _total, annotations vanish."""
    assert prometheus_name(METRICS[name]) == spelled


@pytest.mark.parametrize(
    ("told", "reason"),
    [("429", "429"), (429, "429"), ("503", "5xx"), (500, "5xx"), ("504", "5xx"), ("408", "timeout"),
     ("APITimeoutError", "timeout"), ("timed out", "timeout"), ("connect", "connect"), ("stream", "stream"),
     ("APIConnectionError", "connect"), ("5", "unknown"), ("5000", "unknown"), ("404", "unknown"),
     ("", "unknown"), (None, "unknown")],
)  # fmt: skip
def test_a_reason_is_one_of_a_few(told, reason):
    """Whatever a retry says of itself, the label has six values."""
    assert retry_reason(told) == reason
    assert reason in RETRY_REASONS
