"""Every panel of every dashboard against the trace files of what really ran, through the real servers."""

import json
import math
import os
import subprocess
import sys
import time
import urllib.parse
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import promql_parser as promql
import pytest

from collect.test_command import Command
from dashboards.lint import expressions, substituted, tree
from metric_oracle import measured_in
from otlp_requests import post, traces
from stack.panel_truth import PANELS, Truth
from stack.servers import CONFIG, eventually, get
from turntrace.core.attribution import attribute
from turntrace.files.read import read_paths

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

WINDOW_S = 600
SHOTS = 50
LOAD_TURNS = 60
RECEIVER, RECEIVED, REFUSED = "gateway", 60, 4
SETTLED_S = 75
"""So long after the first sample a counter's growth, which Prometheus stretches to the window, is within 2 %."""

LOAD = str(Path(__file__).with_name("load.py"))
DEMO = (sys.executable, "-m", "turntrace", "demo")
BOARDS = [json.loads(path.read_text()) for path in sorted((CONFIG / "grafana/dashboards").glob("*.json"))]


class Job:
    """A service's files, and whether its process sends metrics."""

    def __init__(self, name, folder, *, sends):
        self.name = name
        self.folder = folder
        self.sends = sends
        folder.mkdir()

    def run(self, endpoint, *command):
        """Run a program of this service; it exports to ``endpoint``, metrics each second."""
        env = {
            name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TURNTRACE_"))
        }
        env |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_SERVICE_NAME": self.name,
            "OTEL_METRIC_EXPORT_INTERVAL": "1000",
            "TURNTRACE_EXIT_TIMEOUT": "20",
        }
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr

    @property
    def turns(self):
        """What ran, by its files."""
        paths = sorted(str(path) for path in self.folder.glob("*.ndjson"))
        return [turn for turn in read_paths(paths, strict=True).turns if turn.parent_run_id is None]

    def truth(self):
        """What the panels must show."""
        truth = Truth(measured_in(self.turns), self.name, WINDOW_S, sends=self.sends)
        truth.left_out = sum(
            span.phase == "prompt_build" for turn in self.turns for span in turn.spans
        ) * self.name.startswith("load")
        return truth


@pytest.fixture(scope="module")
def jobs(tmp_path_factory, collector, prometheus):
    """The loads, run beside one another, and settled: one-shot demos, a demo as a service, and both of load.py."""
    folder = tmp_path_factory.mktemp("truth")
    names = {"demo-shots": False, "demo-service": True, "load-shots": False, "load-service": True}
    found = {name: Job(name, folder / name, sends=sends) for name, sends in names.items()}
    began_s = time.monotonic()

    receiving = Command(
        folder,
        "--endpoint",
        collector.endpoint,
        env={"OTEL_METRIC_EXPORT_INTERVAL": "1000", "OTEL_SERVICE_NAME": RECEIVER},
    )

    def receive():
        for trace_id in range(1, RECEIVED // 3 + 1):
            assert post(receiving, traces(3, trace_id=trace_id)).status == 200
            time.sleep(0.5)
        for _ in range(REFUSED):
            assert post(receiving, b"", path="/nowhere").status == 404

    def start(name, *command):
        found[name].run(collector.endpoint, *command)

    with receiving, ThreadPoolExecutor(7) as pool:
        runs = [
            pool.submit(receive),
            pool.submit(
                start,
                "demo-service",
                *DEMO,
                "--service",
                "40",
                "--trace",
                str(folder / "demo-service/t.ndjson"),
            ),
            pool.submit(
                start,
                "load-service",
                sys.executable,
                LOAD,
                str(folder / "load-service/t.ndjson"),
                "service",
                str(LOAD_TURNS),
            ),
            *(
                pool.submit(
                    start,
                    "load-shots",
                    sys.executable,
                    LOAD,
                    str(folder / f"load-shots/{part}.ndjson"),
                    "shot",
                    str(LOAD_TURNS // 3),
                )
                for part in range(3)
            ),
            *(
                pool.submit(
                    start, "demo-shots", *DEMO, "--trace", str(folder / f"demo-shots/{number}.ndjson")
                )
                for number in range(SHOTS)
            ),
        ]
        for one in runs:
            one.result()
        assert receiving.end()[0] == 0
    for name, job in found.items():
        count = f'sum(turntrace_turns_total{{job="{name}"}})'
        eventually(lambda count=count, job=job: prometheus.value(count) == len(job.turns), within_s=60)
    time.sleep(max(SETTLED_S - (time.monotonic() - began_s), 8.0))  # derived metrics are made each 5 s
    return found


def shown(prometheus, expr, job):
    """What a panel's query gives with the service chosen: label sets and values."""
    query = substituted(expr, f"{WINDOW_S}s", {"service": job})
    return {
        frozenset((k, v) for k, v in labels.items() if k != "__name__"): value
        for labels, value in prometheus.query(query)
    }


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board["uid"])
@pytest.mark.parametrize("name", ["demo-shots", "demo-service", "load-shots", "load-service"])
def test_every_panel_shows_what_the_files_say(jobs, prometheus, board, name):
    """Within 5 %: each label set and no other; nothing where there is nothing, and no NaN."""
    truth, wrong, seen = jobs[name].truth(), [], Counter()
    for panel, target in expressions(board):
        title = panel["title"]
        expected = PANELS[board["title"]][title][seen[title]](truth)
        seen[title] += 1
        found = shown(prometheus, target["expr"], name)
        same = found.keys() == expected.keys() and all(
            math.isclose(found[key], expected[key], rel_tol=0.05, abs_tol=1e-9) for key in expected
        )
        if not same:
            wrong.append((title, target["expr"], {"shown": plain(found), "files": plain(expected)}))
    assert seen == Counter({title: len(parts) for title, parts in PANELS[board["title"]].items()})
    assert not wrong, "\n".join(map(str, wrong))


def test_what_a_receiver_took_and_refused_is_shown(jobs, prometheus):
    """The figures that `turntrace collect --endpoint` sends of itself, in the two panels of receivers."""
    queries = {panel["title"]: target["expr"] for board in BOARDS for panel, target in expressions(board)}
    spans = shown(prometheus, queries["Spans received a minute"], RECEIVER)
    refused = shown(prometheus, queries["Requests refused a minute"], RECEIVER)
    a_minute = 60 / WINDOW_S
    assert spans == {frozenset({("job", RECEIVER)}): pytest.approx(RECEIVED * a_minute, rel=0.05)}
    assert refused == {frozenset({("reason", "path")}): pytest.approx(REFUSED * a_minute, rel=0.05)}


def plain(values):
    """Values that can be read."""
    return {
        ",".join(sorted("=".join(pair) for pair in key)): round(value, 4) for key, value in values.items()
    }


@pytest.mark.parametrize("name", ["demo-shots", "demo-service", "load-shots", "load-service"])
def test_retries_are_those_of_the_model_that_was_called(jobs, prometheus, name):
    """By model and reason, whoever makes the metric: the process, or the collector of its spans."""
    by = ("agent", "model", "reason")
    expr = f'sum by ({", ".join(by)}) (increase(turntrace_retries_total{{job="$service"}}[$__range]))'
    expected = jobs[name].truth().total("turntrace.retries", by)
    assert expected
    assert shown(prometheus, expr, name) == {
        key: pytest.approx(value, rel=0.05) for key, value in expected.items()
    }


def test_no_alert_fires_on_a_load_that_is_well(jobs, prometheus):
    """Prometheus has taken all rules, none of them fails, and the demo is no reason to wake anybody."""
    rules = get(f"{prometheus.url}/api/v1/rules")["data"]["groups"][0]["rules"]
    assert len(rules) == 7
    for rule in rules:
        assert rule["health"] == "ok"
        assert not [alert for alert in rule["alerts"] if alert["labels"]["job"].startswith("demo")], rule[
            "name"
        ]


def test_fifty_runs_are_fifty_turns_and_no_more_series_than_one(jobs, prometheus):
    """What the dashboard says of separate runs; ids make no series."""
    found = prometheus.value('sum(increase(turntrace_turns_total{job="demo-shots"}[10m]))')
    assert found == pytest.approx(SHOTS, rel=0.05)
    assert prometheus.value('count(turntrace_turns_total{job="demo-shots"})') == 1


def test_every_metric_of_a_dashboard_exists(jobs, prometheus):
    """Each name that a query selects is a name that Prometheus has."""
    selected = {
        node.name
        for board in BOARDS
        for _, target in expressions(board)
        for node, _ in tree(promql.parse(substituted(target["expr"])))
        if isinstance(node, promql.VectorSelector)
    }
    there = {
        labels["__name__"]
        for labels, _ in prometheus.query('count by (__name__) ({__name__=~"turntrace_.+"})')
    }
    assert selected - there == set()


@pytest.mark.parametrize("name", ["demo-shots", "demo-service"])
def test_exemplars_lead_to_traces_of_the_load(jobs, prometheus, jaeger, name):
    """The trace ids that Prometheus keeps are of turns in the files, and Jaeger has each."""
    exemplars = prometheus.exemplars(f'turntrace_turn_duration_seconds_bucket{{job="{name}"}}')
    ids = {one["labels"]["trace_id"] for one in exemplars}
    assert ids
    assert ids <= {turn.trace_id for turn in jobs[name].turns}
    for trace_id in ids:
        assert eventually(lambda trace_id=trace_id: jaeger.trace(trace_id))


@pytest.mark.parametrize("name", ["demo-shots", "load-service"])
def test_the_link_of_a_phase_finds_the_turns_that_it_dominates(jobs, prometheus, jaeger, name):
    """For every row of the table: the search of its link gives the turns of which the files say so."""
    [url] = {
        setting["value"][0]["url"]
        for board in BOARDS
        for panel in board["panels"]
        for override in panel["fieldConfig"]["overrides"]
        for setting in override["properties"]
        if setting["id"] == "links"
    }
    [row_query] = [
        panel["targets"][0]["expr"]
        for board in BOARDS
        for panel in board["panels"]
        if panel["title"] == "Where the time went, by service"
    ]
    dominated = {dominant(turn): set() for turn in jobs[name].turns}
    for turn in jobs[name].turns:
        dominated[dominant(turn)].add(turn.trace_id)
    found = {}
    for labels in shown(prometheus, row_query, name):
        row = dict(labels)
        target = url.replace("${__data.fields.job}", row["job"]).replace(
            "${__data.fields.phase}", row["phase"]
        )
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(target).query))
        traces = jaeger.search(service=asked["service"], tags=json.loads(asked["tags"]), limit=1000)
        if traces:
            found[row["phase"]] = {trace["traceID"] for trace in traces}
    assert found == dominated


def dominant(turn):
    """The phase with the largest wall share."""
    times = attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )
    return max(times.phases, key=lambda phase: phase.wall_share_ns).name
