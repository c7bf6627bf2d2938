"""Fixtures ``jaeger``, ``collector`` and ``prometheus``: real servers, once a session.

With a container engine they are the images that docker-compose.yml pins, else the programs that
``python tests/stack/install.py`` builds. Without either the tests are skipped, and fail where
TURNTRACE_REQUIRE says servers.
"""

import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from stack.containers import has_engine
from stack.install import PROGRAMS, is_there
from stack.programs import run
from stack.servers import Collector, Jaeger, Prometheus, eventually


def need(*names):
    """Skip where a program is missing; where the servers are required, fail."""
    missing = [] if has_engine() else [name for name in names if not is_there(name)]
    if missing:
        said = f"not built: {', '.join(missing)}; run python tests/stack/install.py"
        if "servers" in os.environ.get("TURNTRACE_REQUIRE", "").split(","):
            pytest.fail(said)
        pytest.skip(said)


@pytest.fixture(scope="session")
def programs():
    """All programs are there."""
    need(*PROGRAMS)


@pytest.fixture(scope="session")
def jaeger(tmp_path_factory):
    """A Jaeger."""
    need("jaeger")
    with Jaeger(tmp_path_factory.mktemp("jaeger")) as server:
        yield server


@pytest.fixture(scope="session")
def collector(tmp_path_factory, jaeger):
    """A collector that sends traces to ``jaeger``."""
    need("collector")
    with Collector(tmp_path_factory.mktemp("collector"), jaeger.otlp) as server:
        yield server


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory, collector):
    """A Prometheus that scrapes ``collector``."""
    need("prometheus")
    with Prometheus(tmp_path_factory.mktemp("prometheus"), collector.exporter) as server:
        yield server


@dataclass(frozen=True)
class Runs:
    """What the fifty runs left: the service's name, their files, and the number of series after ten of them."""

    service: str
    files: list
    series_after_ten: int


def series(prometheus, service):
    """How many series a service has. A pause of 20 ms, which a busy machine makes, is a phase of its own: left out."""
    return prometheus.value(f'count({{job="{service}",phase!="stream_consume"}})')


@pytest.fixture(scope="session")
def fifty_runs(tmp_path_factory, collector, prometheus):
    """Fifty separate one-shot runs of the demo, scraped. The fixture waits until Prometheus knows them all."""
    folder = tmp_path_factory.mktemp("runs")
    service = f"runs-{uuid.uuid4().hex[:8]}"
    files = [folder / f"{number}.ndjson" for number in range(50)]
    counted = f'turntrace_turn_duration_seconds_count{{job="{service}"}}'

    def one(out):
        run(["-m", "turntrace", "demo", "--trace", str(out)], collector.endpoint, service)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(one, files[:10]))
        eventually(lambda: prometheus.value(counted) == 10)
        after_ten = series(prometheus, service)
        list(pool.map(one, files[10:]))
    eventually(lambda: prometheus.value(counted) == 50)
    return Runs(service, files, after_ten)
