"""Where spans go over OTLP: the flag, the endpoint, a named exporter, or nowhere."""

import pytest

from turntrace.config import Settings
from turntrace.errors import ConfigurationError
from turntrace.otel.destination import destination


def of(endpoint=None, **env):
    """The destination of an environment."""
    return destination(endpoint, Settings.from_env(env))


def test_nothing_is_exported_when_nobody_asked():
    """No endpoint and no exporter: no destination."""
    assert of() is None


def test_an_exporter_that_is_not_otlp_goes_nowhere_here():
    """With the console exporter, or none, an endpoint is not used."""
    assert of(OTEL_TRACES_EXPORTER="none", OTEL_EXPORTER_OTLP_ENDPOINT="http://c:4318") is None
    assert of(OTEL_TRACES_EXPORTER="console") is None


def test_the_flag_wins_over_the_variable():
    """An endpoint on the command line is used even when exporters are switched off by variable."""
    found = of("http://a:4317", OTEL_EXPORTER_OTLP_ENDPOINT="http://b:4318", OTEL_TRACES_EXPORTER="none")

    assert (found.endpoint, found.protocol) == ("http://a:4317", "grpc")


@pytest.mark.parametrize(
    ("env", "endpoint", "protocol", "rule"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317"}, "http://c:4317", "grpc", "port"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:9"}, "http://c:9", "http/protobuf", "port"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:9", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "http://c:9",
            "grpc",
            "PROTOCOL",
        ),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "http://localhost:4318", "http/protobuf", "no endpoint"),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "http://localhost:4317",
            "grpc",
            "PROTOCOL",
        ),
    ],
)
def test_the_protocol_comes_with_the_rule_that_chose_it(env, endpoint, protocol, rule):
    """The variable decides, else the port; without an endpoint it is this machine's."""
    found = of(**env)

    assert (found.endpoint, found.protocol) == (endpoint, protocol)
    assert rule in found.rule


def test_an_unknown_protocol_is_a_mistake_to_be_told():
    """A protocol that no exporter speaks is refused before anything starts."""
    with pytest.raises(ConfigurationError, match="http/json"):
        of(OTEL_EXPORTER_OTLP_ENDPOINT="http://c:4318", OTEL_EXPORTER_OTLP_PROTOCOL="http/json")
