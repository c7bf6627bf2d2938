"""docker-compose.yml and what it mounts, without an engine: the specification, and what it cannot know."""

import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from stack.servers import FEATURES

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "collector-config"
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVICES = COMPOSE["services"]
PROVISIONING = CONFIG / "grafana" / "provisioning"
MOUNTS = [(name, *mount.split(":")) for name, service in SERVICES.items() for mount in service["volumes"]]


def read(path):
    """A YAML file."""
    return yaml.safe_load(path.read_text())


def test_compose_follows_the_specification():
    """It is valid by the schema of compose-go 2.16.2, which docker compose itself reads with; a wrong key is not."""
    schema = Draft202012Validator(json.loads((ROOT / "tests" / "data" / "compose-spec.json").read_text()))
    assert [error.message for error in schema.iter_errors(COMPOSE)] == []
    broken = yaml.safe_load(TEXT)
    broken["services"]["jaeger"]["healthcheck"]["intervalx"] = "5s"
    assert list(schema.iter_errors(broken))


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_names_only_what_exists(name):
    """Networks, services it waits for, and a health check of those whose health is waited for."""
    service = SERVICES[name]
    assert set(service["networks"]) <= set(COMPOSE["networks"])
    for other, how in service.get("depends_on", {}).items():
        assert how["condition"] == "service_started" or "healthcheck" in SERVICES[other]


@pytest.mark.parametrize(("name", "source", "target", "mode"), [(*mount, "rw")[:4] for mount in MOUNTS])
def test_what_is_mounted_exists(name, source, target, mode):
    """A file or folder of the checkout, read-only, or a named volume."""
    assert target.startswith("/")
    if source.startswith("."):
        assert (ROOT / source).exists()
        assert mode == "ro"
    else:
        assert source in COMPOSE["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_and_ports_are_this_machines(name):
    """A full version, and loopback alone."""
    assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])
    for port in SERVICES[name]["ports"]:
        assert re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port)


def test_every_file_that_a_command_names_is_mounted_there():
    """The paths in commands and in Grafana's settings lie at or below a mount of that service, and exist there."""
    for name, service in SERVICES.items():
        named = [*service.get("command", []), *map(str, service.get("environment", {}).values())]
        mounts = {target: ROOT / source for whose, source, target, *_ in MOUNTS if whose == name}
        for path in re.findall(r"(?<==)/etc/\S+|^/etc/\S+", "\n".join(named), re.MULTILINE):
            places = [
                source / path[len(target) :].lstrip("/")
                for target, source in mounts.items()
                if path.startswith(target)
            ]
            assert any(place.exists() for place in places), path


def test_the_pinned_versions_are_those_that_the_tests_build():
    """What is tested from source is what the images hold; Jaeger's Go module counts apart from its releases."""
    modules = {
        name: (ROOT / "tests" / "stack" / name / "go.mod").read_text()
        for name in ("jaeger", "collector", "prometheus")
    }
    core = re.search(r"go.opentelemetry.io/collector/otelcol v(\S+)", modules["collector"])[1]
    assert SERVICES["collector"]["image"].endswith(f":{core}")
    minor = re.search(r"github.com/prometheus/prometheus v0\.3(\d\d)\.(\d+)", modules["prometheus"])
    assert SERVICES["prometheus"]["image"].endswith(f":v3.{int(minor[1])}.{minor[2]}")
    assert (
        "github.com/jaegertracing/jaeger v1.76.0" in modules["jaeger"]
    )  # "v1.76.0 / v2.13.0" in its changelog
    assert SERVICES["jaeger"]["image"].endswith(":2.13.0")


def test_the_tests_start_prometheus_with_the_same_features():
    """Without them no exemplar is kept and the first turn of a kind is not seen."""
    assert f"--enable-feature={FEATURES}" in SERVICES["prometheus"]["command"]


def test_a_viewer_needs_no_login_and_nobody_is_an_administrator():
    """Anonymous is a viewer; there is no admin with a known password."""
    settings = SERVICES["grafana"]["environment"]
    assert settings["GF_AUTH_ANONYMOUS_ENABLED"] == "true"
    assert settings["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert settings["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"


def test_grafana_finds_its_sources_and_dashboards():
    """Hosts and ports are services'; an exemplar's trace opens in the Jaeger that is provisioned."""
    found = {
        source["uid"]: source
        for source in read(PROVISIONING / "datasources" / "turntrace.yaml")["datasources"]
    }
    assert set(found) == {"prometheus", "jaeger"}
    for source in found.values():
        host, port = re.fullmatch(r"http://(\w+):(\d+)", source["url"]).groups()
        assert f"127.0.0.1:{port}:{port}" in SERVICES[host]["ports"]
    link = found["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert link == [{"name": "trace_id", "datasourceUid": "jaeger"}]
    scrape = read(CONFIG / "prometheus.yaml")["global"]["scrape_interval"]
    assert found["prometheus"]["jsonData"]["timeInterval"] == scrape
    provider = read(PROVISIONING / "dashboards" / "turntrace.yaml")["providers"][0]
    assert provider["options"]["path"] in {target for name, _, target, *_ in MOUNTS if name == "grafana"}


def test_what_the_servers_are_told_of_each_other_exists():
    """The collector sends to Jaeger's port, Prometheus reads the collector's."""
    collector = (CONFIG / "collector.yaml").read_text()
    jaeger = (CONFIG / "jaeger.yaml").read_text()
    port = re.search(r"JAEGER_OTLP:-jaeger:(\d+)", collector)[1]
    assert f"JAEGER_OTLP_GRPC:-0.0.0.0:{port}" in jaeger
    (target,) = read(CONFIG / "prometheus.yaml")["scrape_configs"][0]["static_configs"][0]["targets"]
    assert f"PROMETHEUS_EXPORTER:-0.0.0.0:{target.removeprefix('collector:')}" in collector
    for text, service in ((collector, "collector"), (jaeger, "jaeger")):
        listening = set(re.findall(r"-0\.0\.0\.0:(\d+)\}", text))
        published = {port.split(":")[1] for port in SERVICES[service]["ports"]}
        assert published <= listening


def test_the_derived_metrics_are_written_by_their_script():
    """turn-metrics.yaml is what make_turn_metrics.py writes."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("make_turn_metrics", CONFIG / "make_turn_metrics.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (CONFIG / "turn-metrics.yaml").read_text() == module.text()
