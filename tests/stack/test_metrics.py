"""Turns of short processes and of services, each counted once, in a real Prometheus."""

import uuid
from collections import Counter
from pathlib import Path

import pytest

from stack.conftest import series
from stack.programs import run, turns_of
from stack.servers import eventually

pytestmark = pytest.mark.servers

HERE = Path(__file__).parent
WITHIN = 0.03
"""increase() stretches a series to its window: by less than one sample of a minute's."""


@pytest.fixture(scope="module")
def told(fifty_runs):
    """What the files of the fifty runs say: wall seconds by phase, turns, tokens by type, calls."""
    walls, tokens, calls = Counter(), Counter(), Counter()
    for path in fifty_runs.files:
        for turn, found in turns_of(path):
            walls["turn"] += found.wall_ns / 1e9
            walls["unattributed"] += found.unattributed_ns / 1e9
            for phase in found.phases:
                walls[phase.name] += phase.wall_share_ns / 1e9
            for usage in turn.usage:
                tokens["input"] += usage.input_tokens
                tokens["output"] += usage.output_tokens
                tokens["cache_read"] += usage.cached_input_tokens
            calls["model"] += turn.counters["model_requests"]
            calls["tool"] += turn.counters["tool_calls"]
            calls["retry"] += turn.counters["retry_count"]
    return walls, tokens, calls


def grown(prometheus, service, metric, by=None):
    """By how much a metric of a service grew within ten minutes; a dict with ``by``."""
    found = prometheus.query(
        f'sum{"" if by is None else f" by ({by})"} (increase({metric}{{job="{service}"}}[10m]))'
    )
    return found[0][1] if by is None else {labels[by]: value for labels, value in found}


def test_fifty_runs_are_fifty_turns(fifty_runs, prometheus):
    """Counter and histogram; the first run of all is among them."""
    for metric in ("turntrace_turns_total", "turntrace_turn_duration_seconds_count"):
        assert grown(prometheus, fifty_runs.service, metric) == pytest.approx(50, rel=WITHIN)


def test_the_number_of_series_does_not_grow_with_the_number_of_runs(fifty_runs, prometheus):
    """After ten runs and after fifty there are as many."""
    assert series(prometheus, fifty_runs.service) == fifty_runs.series_after_ten


def test_derived_figures_are_the_files(fifty_runs, prometheus, told):
    """Wall time by phase, tokens by type and calls."""
    walls, tokens, calls = told
    service = fifty_runs.service
    found = grown(prometheus, service, "turntrace_phase_wall_time_seconds_sum", "phase")
    assert found == pytest.approx({name: walls[name] for name in walls if name != "turn"}, rel=WITHIN)
    duration_s = grown(prometheus, service, "turntrace_turn_duration_seconds_sum")
    assert duration_s == pytest.approx(walls["turn"], rel=WITHIN)
    assert sum(found.values()) == pytest.approx(duration_s, rel=WITHIN)
    by_type = grown(prometheus, service, "turntrace_tokens_total", "type")
    assert {kind: by_type[kind] for kind in tokens} == pytest.approx(dict(tokens), rel=WITHIN)
    for metric, kind in (
        ("turntrace_model_requests_total", "model"),
        ("turntrace_tool_calls_total", "tool"),
        ("turntrace_retries_total", "retry"),
    ):
        assert grown(prometheus, service, metric) == pytest.approx(calls[kind], rel=WITHIN)


def test_an_exemplar_names_a_trace_that_jaeger_knows(fifty_runs, prometheus, jaeger):
    """Its trace id is one of a file's, and Jaeger has it."""
    ids = {turn.trace_id for path in fifty_runs.files for turn, _ in turns_of(path)}
    found = prometheus.exemplars(f'turntrace_turn_duration_seconds_bucket{{job="{fifty_runs.service}"}}')
    assert found
    for one in found:
        assert one["labels"]["trace_id"] in ids
        assert jaeger.trace(one["labels"]["trace_id"]) is not None


@pytest.mark.parametrize("how", ["metrics=True", "metrics=None"])
def test_a_turn_of_a_longer_process_is_counted_once(tmp_path, collector, prometheus, how):
    """By itself from the first on when asked to; else by the collector until its first interval is over."""
    out, service = tmp_path / "t.ndjson", f"service-{uuid.uuid4().hex[:8]}"
    run(
        [str(HERE / "service.py"), str(out), how.removeprefix("metrics=")],
        collector.endpoint,
        service,
        OTEL_METRIC_EXPORT_INTERVAL="2000",
    )
    turns = len(turns_of(out))
    metric = f'turntrace_turns_total{{job="{service}"}}'
    eventually(lambda: prometheus.value(f"sum({metric})") == turns)
    series = [value for _, value in prometheus.query(metric)]
    assert len(series) == (1 if how == "metrics=True" else 2)
    assert all(series)
    spans = prometheus.value(f'sum(turntrace_phase_exclusive_time_seconds_count{{job="{service}"}})')
    assert spans == turns


def test_the_demos_service_is_counted_once(tmp_path, collector, prometheus):
    """turntrace demo --service counts itself, and the collector does not count it again."""
    out, service = tmp_path / "t.ndjson", f"demo-{uuid.uuid4().hex[:8]}"
    run(
        ["-m", "turntrace", "demo", "--service", "8", "--trace", str(out)],
        collector.endpoint,
        service,
        OTEL_METRIC_EXPORT_INTERVAL="1000",
    )
    turns = sum(turn.parent_run_id is None for turn, _ in turns_of(out))
    eventually(lambda: prometheus.value(f'sum(turntrace_turns_total{{job="{service}"}})') == turns)
    assert len(prometheus.query(f'turntrace_turns_total{{job="{service}"}}')) == 1


def test_the_first_turn_of_a_kind_is_seen(tmp_path, collector, prometheus):
    """One run of a service that nobody knew: its counter is 1 from the first scrape on, and grew by 1."""
    service = f"first-{uuid.uuid4().hex[:8]}"
    run([str(HERE / "service.py"), str(tmp_path / "t.ndjson"), "False", "0.05"], collector.endpoint, service)
    scrapes = f'count_over_time(turntrace_turns_total{{job="{service}"}}[10m])'
    eventually(lambda: (prometheus.value(scrapes) or 0) > 5)
    assert grown(prometheus, service, "turntrace_turns_total") == pytest.approx(1, rel=0.2)


def test_what_is_sent_later_is_counted_nowhere(tmp_path, collector, prometheus, jaeger):
    """A file that is sent adds nothing to a metric."""
    out, service = tmp_path / "t.ndjson", f"sent-{uuid.uuid4().hex[:8]}"
    run([str(HERE / "service.py"), str(out), "False", "0.2"], "", service)
    run(["-m", "turntrace", "send", str(out), "--endpoint", collector.endpoint], "", service)
    eventually(lambda: jaeger.search(service=service))
    run([str(HERE / "service.py"), str(out), "False", "0.2"], collector.endpoint, f"{service}-live")
    eventually(lambda: prometheus.query(f'turntrace_turns_total{{job="{service}-live"}}'))
    assert prometheus.query(f'turntrace_turns_total{{job="{service}"}}') == []
