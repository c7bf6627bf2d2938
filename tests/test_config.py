"""The environment as one record of settings."""

import os
import sys

import pytest

from turntrace import config
from turntrace.config import (
    OWN_VARIABLES,
    Settings,
    environment,
    is_true,
    number,
    program_name,
    set_environment,
)
from turntrace.errors import ConfigurationError


def test_an_empty_environment_is_the_defaults():
    """Unset and empty variables alike leave every setting at its default."""
    assert Settings.from_env({}) == Settings()
    assert Settings.from_env(dict.fromkeys(OWN_VARIABLES, "")) == Settings()


def test_every_variable_of_ours_is_read():
    """Each one changes a setting, and each is told to people in one line."""
    values = {
        "TURNTRACE_TRACE": "out.ndjson",
        "TURNTRACE_DISABLED": "1",
        "TURNTRACE_EXIT_TIMEOUT": "0.25",
        "TURNTRACE_JOURNAL": " Thread ",
        "TURNTRACE_TRACE_MAX_BYTES": "1024",
        "TURNTRACE_TRACE_KEEP": "0",
        "TURNTRACE_TURN": "name=POST /chat",
        "TURNTRACE_LABELS": "a=1, b = x=y ,=z,c",
        "TURNTRACE_METRIC_LABELS": "a, b,",
        "TURNTRACE_KEEP_ATTRIBUTES": "app.id",
        "TURNTRACE_LINGER": "0",
        "TURNTRACE_STRICT": "yes",
        "TURNTRACE_PROPAGATE_HOSTS": "a.example",
    }
    assert values.keys() == OWN_VARIABLES.keys()
    assert Settings.from_env(values) == Settings(
        trace="out.ndjson",
        disabled=True,
        exit_timeout_s=0.25,
        journal="thread",
        trace_max_bytes=1024,
        trace_keep=0,
        turn_rule="name=POST /chat",
        labels={"a": "1", "b": "x=y", "c": ""},
        metric_labels=frozenset("ab"),
        keep_attributes=frozenset({"app.id"}),
        linger_s=0.0,
        strict=True,
        propagate_hosts=frozenset({"a.example"}),
    )
    assert all("\n" not in line for line in OWN_VARIABLES.values())


@pytest.mark.parametrize("text", ["x", "-1", "nan", "inf", "1e999", "1 s"])
def test_a_number_that_cannot_be_used_is_an_error_that_names_it(text):
    """The message says the variable, its text and what happens when it is unset."""
    with pytest.raises(ConfigurationError) as caught:
        number({"TURNTRACE_LINGER": text}, "TURNTRACE_LINGER", 1.0)
    assert "TURNTRACE_LINGER" in str(caught.value)
    assert repr(text) in str(caught.value)
    assert "unset it for 1" in str(caught.value)


def test_an_unknown_journal_mode_is_an_error_that_lists_them():
    """A misspelt mode is known before the agent starts."""
    with pytest.raises(ConfigurationError, match="TURNTRACE_JOURNAL='fast': use one of sync, thread, off"):
        Settings.from_env({"TURNTRACE_JOURNAL": "fast"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, False), ("", False), ("0", False), ("off", False), ("1", True), (" TRUE ", True), ("On", True)],
)
def test_what_switches_something_on(text, expected):
    """1, true, yes and on in any case; everything else is off."""
    assert is_true(text) is expected


def test_opentelemetry_s_own_variables_are_read():
    """The traces' endpoint and protocol win over the general ones."""
    settings = Settings.from_env(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://general",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_TRACES_EXPORTER": "otlp, console",
            "OTEL_METRIC_EXPORT_INTERVAL": "500",
            "OTEL_SDK_DISABLED": "true",
            "OTEL_SERVICE_NAME": "svc",
            "OTEL_RESOURCE_ATTRIBUTES": "a=b",
            "OTEL_BSP_MAX_QUEUE_SIZE": " 64 ",
            "TRACEPARENT": "tp",
            "TRACESTATE": "ts",
        }
    )
    assert settings.endpoint == "http://traces"
    assert settings.protocol == "grpc"
    assert settings.traces_exporter == {"otlp", "console"}
    assert settings.metrics_exporter is None
    assert settings.metric_interval_s == 0.5
    assert (settings.sdk_disabled, settings.service_name, settings.resource_attributes) == (
        True,
        "svc",
        "a=b",
    )
    assert settings.queue_size == 64
    assert (settings.traceparent, settings.tracestate) == ("tp", "ts")


@pytest.mark.parametrize("text", ["x", "-1", "", "1.5", "²", "0"])
def test_a_bad_value_of_opentelemetry_s_is_left_to_its_sdk(text):
    """It says so itself; here the default stands."""
    settings = Settings.from_env({"OTEL_BSP_MAX_QUEUE_SIZE": text, "OTEL_METRIC_EXPORT_INTERVAL": text})
    assert settings.queue_size == 2048
    assert settings.metric_interval_s == (0.0 if text == "0" else 60.0)


def test_the_environment_is_the_process_s(monkeypatch):
    """Settings come from it when nobody gives another; variables are set and removed in it."""
    monkeypatch.setenv("TURNTRACE_TRACE", "here")
    assert Settings.from_env().trace == "here"
    assert environment()["TURNTRACE_TRACE"] == "here"
    set_environment("TURNTRACE_TRACE", "there")
    assert os.environ["TURNTRACE_TRACE"] == "there"
    set_environment("TURNTRACE_TRACE", None)
    set_environment("TURNTRACE_TRACE", None)
    assert "TURNTRACE_TRACE" not in os.environ


@pytest.mark.parametrize(
    ("argv", "name"),
    [(["/a/agent.py", "x"], "agent"), ([], "python"), ([""], "python"), (["-c"], "c"), (["-"], "python")],
)
def test_the_program_s_name_is_its_file_s(monkeypatch, argv, name):
    """Without folder and suffix; python when there is none."""
    monkeypatch.setattr(sys, "argv", argv)
    assert config.program_name is program_name
    assert program_name() == name
