"""The real servers of the stack on free loopback ports, with the configuration that docker-compose.yml mounts."""

import json
import random
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from stack.containers import ContainerProcess, has_engine
from stack.install import binary

CONFIG = Path(__file__).parents[2] / "collector-config"
READY_S = 60
STOP_S = 20
FEATURES = "exemplar-storage,created-timestamp-zero-ingestion"


_GIVEN = set()


def free_port():
    """A port that nothing listens on now, given once, and below those that the system gives to connections."""
    while True:
        port = random.randrange(15_000, 32_000)
        if port in _GIVEN:
            continue
        _GIVEN.add(port)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port


def free_address():
    """The same as HOST:PORT."""
    return f"127.0.0.1:{free_port()}"


def get(url, timeout_s=10):
    """The parsed JSON that a GET answers with."""
    with urllib.request.urlopen(url, timeout=timeout_s) as response:
        return json.load(response)


def eventually(found, *, within_s=30.0, every_s=0.2):
    """What ``found`` returns once it is true; fails with what it last said."""
    end_s = time.monotonic() + within_s
    last = None
    while time.monotonic() < end_s:
        try:
            last = found()
        except (OSError, KeyError, IndexError, ValueError) as error:
            last = error
        else:
            if last:
                return last
        time.sleep(every_s)
    raise AssertionError(f"not within {within_s} s; last: {last!r}")


class Server:
    """``with Server(...)``: one process, ready when its health URL answers; its output goes to a file.

    It can be stopped and started again on the same ports.
    """

    name = ""
    command: tuple[str, ...] = ()
    variables: dict[str, str] = {}  # noqa: RUF012 - subclasses replace it
    health = ""

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / f"{self.name}.log"
        self.log.touch()
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def start(self):
        """Start and wait until it is ready."""
        self.process = self._spawned()
        try:
            eventually(self._is_ready, within_s=READY_S)
        except AssertionError as error:
            self.stop()
            raise AssertionError(f"{self.name} did not start:\n{self.log.read_text()[-3000:]}") from error

    def _spawned(self):
        if has_engine():
            return ContainerProcess(self.name, self.command, self.folder, self.variables)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(binary(self.name)), *self.command],
                cwd=self.folder,
                env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _is_ready(self):
        assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}"
        with urllib.request.urlopen(self.health, timeout=2) as response:
            return response.status == 200

    def stop(self):
        """End the process as an orchestrator would, and kill it if it does not end."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def kill(self):
        """End the process without a chance to say goodbye."""
        self.process.kill()
        self.process.wait()
        self.process = None


class Jaeger(Server):
    """Jaeger v2, all in one, traces in memory. ``url`` is its HTTP API's."""

    name = "jaeger"

    def __init__(self, folder):
        super().__init__(folder)
        self.otlp = free_address()
        http, health = free_address(), free_address()
        self.url = f"http://{http}"
        self.health = f"http://{health}/status"
        self.command = ("--config", str(CONFIG / "jaeger.yaml"))
        self.variables = {
            "JAEGER_HTTP": http,
            "JAEGER_GRPC": free_address(),
            "JAEGER_HEALTH": health,
            "JAEGER_OTLP_GRPC": self.otlp,
            "JAEGER_OTLP_HTTP": free_address(),
        }

    def trace(self, trace_id):
        """The trace in Jaeger's JSON, or None."""
        try:
            return get(f"{self.url}/api/traces/{trace_id}")["data"][0]
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def search(self, **parameters):
        """Traces found by the parameters of /api/traces; ``tags`` is a dict of strings."""
        if "tags" in parameters:
            parameters["tags"] = json.dumps(parameters["tags"])
        return get(f"{self.url}/api/traces?{urllib.parse.urlencode(parameters)}")["data"]


class Collector(Server):
    """The collector with the shipped configuration. ``endpoint`` takes OTLP over http, ``grpc`` over grpc."""

    name = "collector"

    def __init__(self, folder, jaeger_otlp):
        super().__init__(folder)
        http, grpc, health = free_address(), free_address(), free_address()
        self.endpoint, self.grpc = f"http://{http}", f"http://{grpc}"
        self.exporter = free_address()
        self.health = f"http://{health}/"
        self.command = tuple(f"--config={CONFIG / name}" for name in ("collector.yaml", "turn-metrics.yaml"))
        self.variables = {
            "OTLP_GRPC": grpc,
            "OTLP_HTTP": http,
            "COLLECTOR_HEALTH": health,
            "JAEGER_OTLP": jaeger_otlp,
            "PROMETHEUS_EXPORTER": self.exporter,
        }

    def shown(self):
        """What Prometheus would read, as text."""
        request = urllib.request.Request(
            f"http://{self.exporter}/metrics", headers={"Accept": "application/openmetrics-text"}
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.read().decode()


class Prometheus(Server):
    """Prometheus, which scrapes the collector as the shipped configuration says, each second instead of each five."""

    name = "prometheus"

    def __init__(self, folder, target):
        super().__init__(folder)
        address = free_address()
        self.url = f"http://{address}"
        self.health = f"{self.url}/-/ready"
        config = folder / "prometheus.yaml"
        text = (CONFIG / "prometheus.yaml").read_text()
        text = text.replace("collector:8889", target).replace("interval: 5s", "interval: 1s")
        config.write_text(text.replace("rules/", f"{CONFIG}/rules/"))
        self.command = (
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address={address}",
            f"--enable-feature={FEATURES}",
            "--log.level=warn",
        )

    def query(self, expression, at_s=None):
        """The vector of an instant query, as (labels, value) pairs."""
        asked = {"query": expression, **({} if at_s is None else {"time": at_s})}
        answer = get(f"{self.url}/api/v1/query?{urllib.parse.urlencode(asked)}")
        assert answer["status"] == "success", answer
        return [(found["metric"], float(found["value"][1])) for found in answer["data"]["result"]]

    def value(self, expression):
        """The only value of an instant query; None when there is none."""
        found = self.query(expression)
        assert len(found) <= 1, found
        return found[0][1] if found else None

    def exemplars(self, expression):
        """Exemplars of the last hour."""
        asked = {"query": expression, "start": time.time() - 3600, "end": time.time() + 60}
        answer = get(f"{self.url}/api/v1/query_exemplars?{urllib.parse.urlencode(asked)}")
        return [one for series in answer["data"] for one in series["exemplars"]]
