"""Where an agent sends its telemetry by itself: what it had before a preset must still arrive there."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from turntrace.collect.presets import Preset

__all__ = ["SIGNALS", "Forward", "forward_of"]

SIGNALS: Final = ("traces", "metrics", "logs")
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_HTTP: Final = "http/protobuf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """Where the agent's own telemetry went before; what it sends is to be passed on there unchanged.

    ``endpoints`` are full addresses by signal, the signals that went nowhere left out, ``protocols`` what
    they speak. ``headers`` come on top of those of the request: a header that a variable gave the agent
    arrives with it.
    """

    endpoints: Mapping[str, str]
    protocols: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)


def forward_of(preset: Preset, environment: Mapping[str, str], configuration: str) -> Forward | None:
    """The agent's own destination, from its variables and the text of its configuration; None without one."""
    if preset.name == "codex":
        return _from_codex(configuration)
    known = {**_settings(configuration), **environment}
    if preset.switches and not any(known.get(name, "").lower() in _TRUE for name in preset.switches):
        return None
    general = next((known[name] for name in preset.endpoints if known.get(name)), "")
    protocol = next((known[name] for name in preset.protocols if known.get(name)), _HTTP)
    endpoints: dict[str, str] = {}
    protocols: dict[str, str] = {}
    for signal in SIGNALS:
        own = {name: known.get(name) for name in preset.removed if f"_{signal.upper()}_" in name}
        address = own.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
        if address or general:
            endpoints[signal] = address or f"{general.rstrip('/')}/v1/{signal}"
            protocols[signal] = own.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL") or protocol
    return Forward(endpoints=endpoints, protocols=protocols) if endpoints else None


def _settings(text: str) -> dict[str, str]:
    """The variables that a settings.json sets: Claude's ``env``, Gemini's ``telemetry``."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(value, dict):
        return {}
    env, telemetry = value.get("env"), value.get("telemetry")
    found = {str(name): str(one) for name, one in env.items()} if isinstance(env, dict) else {}
    return found | dict(_gemini(telemetry if isinstance(telemetry, dict) else {}))


def _gemini(telemetry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, name in (
        ("enabled", "GEMINI_TELEMETRY_ENABLED"),
        ("otlpEndpoint", "GEMINI_TELEMETRY_OTLP_ENDPOINT"),
        ("otlpProtocol", "GEMINI_TELEMETRY_OTLP_PROTOCOL"),
    ):
        if key in telemetry:
            yield name, str(telemetry[key])


_CODEX_KEYS: Final = (("traces", "trace_exporter"), ("metrics", "metrics_exporter"), ("logs", "exporter"))
_CODEX_KINDS: Final = {"otlp-grpc": "grpc", "otlp-http": _HTTP}


def _from_codex(text: str) -> Forward | None:
    """The exporters of the table [otel] in codex's config.toml."""
    try:
        table = tomllib.loads(text).get("otel")
    except tomllib.TOMLDecodeError:
        return None
    endpoints: dict[str, str] = {}
    headers: dict[str, str] = {}
    protocols: dict[str, str] = {}
    for signal, key in _CODEX_KEYS:
        exporter = table.get(key) if isinstance(table, dict) else None
        for kind, options in exporter.items() if isinstance(exporter, dict) else ():
            if kind in _CODEX_KINDS and isinstance(options, dict) and options.get("endpoint"):
                endpoints[signal], protocols[signal] = str(options["endpoint"]), _CODEX_KINDS[kind]
                given = options.get("headers")
                headers |= given if isinstance(given, dict) else {}
    texts = {str(name): str(value) for name, value in headers.items()}
    return Forward(endpoints=endpoints, protocols=protocols, headers=texts) if endpoints else None
