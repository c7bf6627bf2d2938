"""Fixtures ``jaeger``, ``collector`` and ``prometheus``: real servers, once a session.

With a Docker engine they are the containers of docker-compose.yml, else the programs that
``python tests/stack/install.py`` builds. Without either the tests are skipped, and fail where
TURNTRACE_REQUIRE says servers.
"""

import os

import pytest

from stack.install import PROGRAMS, is_there
from stack.servers import Collector, Jaeger, Prometheus


def need(*names):
    """Skip where a program is missing; where the servers are required, fail."""
    missing = [name for name in names if not is_there(name)]
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
