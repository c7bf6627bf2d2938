"""The only reader of the environment: one frozen record of settings, made from a mapping.

An argument of ``configure()`` wins over the variable, the variable over the default.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

from turntrace.errors import ConfigurationError

__all__ = [
    "OWN_VARIABLES",
    "JournalMode",
    "Settings",
    "environment",
    "is_true",
    "number",
    "program_name",
    "set_environment",
]

JournalMode = Literal["sync", "thread", "off"]

_MOST: Final = 1e12
_MOST_S: Final = 86_400.0
"""Nothing waits for longer than a day."""

_JOURNAL_MODES: Final = ("sync", "thread", "off")

OWN_VARIABLES: Final[Mapping[str, str]] = {
    "TURNTRACE_TRACE": "file to write, as --trace; {run_id}, {pid}, {date}, {time}, {agent} are expanded",
    "TURNTRACE_DISABLED": "1: nothing is recorded",
    "TURNTRACE_EXIT_TIMEOUT": "seconds that exporters may take when the process ends (1.5)",
    "TURNTRACE_JOURNAL": "sync, thread or off: when a span is on disk",
    "TURNTRACE_TRACE_MAX_BYTES": "the file is rotated between turns above this size (268435456)",
    "TURNTRACE_TRACE_KEEP": "how many rotated files are kept (4)",
    "TURNTRACE_TURN": "a rule that names the turn's root, e.g. name=POST /chat",
    "TURNTRACE_LABELS": "labels of every turn: key=value,key=value",
    "TURNTRACE_METRIC_LABELS": "names of labels that become metric attributes",
    "TURNTRACE_KEEP_ATTRIBUTES": "attribute names that may leave the process besides the allow-list",
    "TURNTRACE_LINGER": "seconds a turn waits for spans that outlive its root (1)",
    "TURNTRACE_STRICT": "1: an unknown phase, counter or mark is an error",
    "TURNTRACE_PROPAGATE_HOSTS": "hosts besides loopback that receive trace-context headers",
}
"""Every variable of our own, with one line for people."""


def environment() -> Mapping[str, str]:
    """The process's environment, read-only by type."""
    return os.environ


def set_environment(name: str, value: str | None) -> None:
    """Set a variable of this process, or remove it for None."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def program_name() -> str:
    """What the process was started as, without folders: the service's name when nobody gives one."""
    return Path(sys.argv[0] if sys.argv else "").stem.strip("-") or "python"


def is_true(text: str | None) -> bool:
    """Whether a variable switches something on: 1, true, yes, on in any case."""
    return (text or "").strip().lower() in {"1", "true", "yes", "on"}


def number(env: Mapping[str, str], name: str, default: float) -> float:
    """The non-negative number in variable ``name``, or ``default`` when unset or empty.

    Raises:
        ConfigurationError: when the text is not a number from 0 to 10**12.
    """
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _MOST:
        raise ConfigurationError(
            f"{name}={text!r} is not a number from 0 to 10**12; unset it for {default:g}"
        )
    return value


def _names(env: Mapping[str, str], variable: str) -> frozenset[str]:
    return frozenset(part.strip() for part in env.get(variable, "").split(",") if part.strip())


def _pairs(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip()}


def _journal(env: Mapping[str, str]) -> JournalMode | None:
    text = env.get("TURNTRACE_JOURNAL", "").strip().lower()
    if text and text not in _JOURNAL_MODES:
        raise ConfigurationError(f"TURNTRACE_JOURNAL={text!r}: use one of {', '.join(_JOURNAL_MODES)}")
    return cast("JournalMode | None", text or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment says. Times in seconds where named ``_s``, sizes in bytes."""

    trace: str | None = None
    disabled: bool = False
    exit_timeout_s: float = 1.5
    journal: JournalMode | None = None
    trace_max_bytes: int = 256 * 1024 * 1024
    trace_keep: int = 4
    turn_rule: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    metric_labels: frozenset[str] = frozenset()
    keep_attributes: frozenset[str] = frozenset()
    linger_s: float = 1.0
    strict: bool = False
    propagate_hosts: frozenset[str] = frozenset()
    capture_content: bool = False
    endpoint: str | None = None
    protocol: str | None = None
    traces_exporter: frozenset[str] | None = None
    metrics_exporter: frozenset[str] | None = None
    metric_interval_s: float = 60.0
    sdk_disabled: bool = False
    service_name: str | None = None
    resource_attributes: str = ""
    queue_size: int = 2048
    traceparent: str | None = None
    tracestate: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> "Settings":
        """Read the settings from ``env`` (default: the process's environment).

        Raises:
            ConfigurationError: when a variable of ours has a value that cannot be used.
        """
        env = environment() if env is None else env
        return cls(
            trace=env.get("TURNTRACE_TRACE") or None,
            disabled=is_true(env.get("TURNTRACE_DISABLED")),
            exit_timeout_s=min(number(env, "TURNTRACE_EXIT_TIMEOUT", 1.5), _MOST_S),
            journal=_journal(env),
            trace_max_bytes=int(number(env, "TURNTRACE_TRACE_MAX_BYTES", 256 * 1024 * 1024)),
            trace_keep=int(number(env, "TURNTRACE_TRACE_KEEP", 4)),
            turn_rule=env.get("TURNTRACE_TURN") or None,
            labels=_pairs(env.get("TURNTRACE_LABELS", "")),
            metric_labels=_names(env, "TURNTRACE_METRIC_LABELS"),
            keep_attributes=_names(env, "TURNTRACE_KEEP_ATTRIBUTES"),
            linger_s=min(number(env, "TURNTRACE_LINGER", 1.0), _MOST_S),
            strict=is_true(env.get("TURNTRACE_STRICT")),
            propagate_hosts=_names(env, "TURNTRACE_PROPAGATE_HOSTS"),
            **_otel(env),
        )


def _otel(env: Mapping[str, str]) -> dict[str, Any]:
    capture = env.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().upper()
    exporters = {name: _names(env, f"OTEL_{name.upper()}_EXPORTER") or None for name in ("traces", "metrics")}
    return {
        "capture_content": capture in {"TRUE", "SPAN_ONLY", "SPAN_AND_EVENT"},
        "endpoint": env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        or env.get("OTEL_EXPORTER_OTLP_ENDPOINT")
        or None,
        "protocol": env.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        or env.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or None,
        "traces_exporter": exporters["traces"],
        "metrics_exporter": exporters["metrics"],
        "metric_interval_s": _milliseconds(env.get("OTEL_METRIC_EXPORT_INTERVAL", ""), 60.0),
        "sdk_disabled": is_true(env.get("OTEL_SDK_DISABLED")),
        "service_name": env.get("OTEL_SERVICE_NAME") or None,
        "resource_attributes": env.get("OTEL_RESOURCE_ATTRIBUTES", ""),
        "queue_size": _size(env.get("OTEL_BSP_MAX_QUEUE_SIZE", ""), 2048),
        "traceparent": env.get("TRACEPARENT") or None,
        "tracestate": env.get("TRACESTATE") or None,
    }


def _milliseconds(text: str, default_s: float) -> float:
    """Seconds from a millisecond text; a bad value is left to the SDK, which says so itself."""
    return float(text) / 1000 if text.strip().isdecimal() else default_s


def _size(text: str, default: int) -> int:
    """A whole number above zero; a bad value is left to the SDK as well."""
    return (int(text) if text.strip().isdecimal() else 0) or default
