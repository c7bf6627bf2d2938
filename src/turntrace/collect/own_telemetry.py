"""Where an agent sends its telemetry by itself: what it had before a preset must still arrive there."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from turntrace.collect.presets import Preset

__all__ = ["SIGNALS", "ClientTls", "Forward", "exporters_in", "forward_of", "is_otlp"]

SIGNALS: Final = ("traces", "metrics", "logs")
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_HTTP: Final = "http/protobuf"
_GRPC_PORT: Final = ":4317"


class ClientTls(NamedTuple):
    """Files of PEM: whom to trust, and who the agent is; empty is the system's, and nobody."""

    certificate: str = ""
    client_certificate: str = ""
    client_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """Where the agent's own telemetry went before; what it sends is to be passed on there unchanged.

    ``endpoints`` are full addresses by signal, the signals that went nowhere left out, ``protocols`` what
    they speak, ``tls`` the files that their variables name. ``headers`` come on top of those of the request:
    a header that a variable gave the agent arrives with it.
    """

    endpoints: Mapping[str, str]
    protocols: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: Mapping[str, ClientTls] = field(default_factory=dict)

    @property
    def hosts(self) -> str:
        """Where it went, by host: a path or a query may hold a key."""
        found = [_parts(one) for one in self.endpoints.values()]
        return ", ".join(sorted({(one and one.hostname) or "a place unknown" for one in found}))


def forward_of(preset: Preset, environment: Mapping[str, str], configuration: str) -> Forward | None:
    """The agent's own destination, from its variables and the text of its configuration; None without one."""
    if preset.name == "codex":
        return _from_codex(configuration)
    known = {**_settings(configuration), **environment}
    if preset.switches and not any(known.get(name, "").lower() in _TRUE for name in preset.switches):
        return None
    general = next((known[name] for name in preset.endpoints if known.get(name)), "")
    protocol = next((known[name] for name in preset.protocols if known.get(name)), preset.protocol)
    endpoints: dict[str, str] = {}
    protocols: dict[str, str] = {}
    for signal in SIGNALS:
        if not _went_out(preset, signal, known):
            continue
        own = {name: known.get(name) for name in preset.removed if f"_{signal.upper()}_" in name}
        address = own.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
        if address or general:
            endpoints[signal] = address or f"{general.rstrip('/')}/v1/{signal}"
            asked = own.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL") or protocol
            protocols[signal] = asked or _usual_protocol(endpoints[signal])
            if protocols[signal] == "grpc" and "://" not in endpoints[signal]:
                endpoints[signal] = f"{_scheme(signal, known)}://{endpoints[signal]}"
    tls = {signal: found for signal in endpoints if any(found := _tls(signal, known))}
    return Forward(endpoints=endpoints, protocols=protocols, tls=tls) if endpoints else None


def _scheme(signal: str, known: Mapping[str, str]) -> str:
    """What a grpc exporter speaks where the endpoint has no scheme: TLS, unless a variable says insecure."""
    names = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_INSECURE", "OTEL_EXPORTER_OTLP_INSECURE")
    told = next((known[name] for name in names if known.get(name)), "")
    return "http" if told.lower() in _TRUE else "https"


def _tls(signal: str, known: Mapping[str, str]) -> ClientTls:
    """The files that the variables of OTLP exporters name, the signal's own before those of all."""
    prefixes = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_", "OTEL_EXPORTER_OTLP_")
    return ClientTls(
        *(
            next((known[prefix + name] for prefix in prefixes if known.get(prefix + name)), "")
            for name in ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
        )
    )


def _went_out(preset: Preset, signal: str, known: Mapping[str, str]) -> bool:
    """Whether a signal was exported over OTLP: one that was off, or went to a console, is for nobody else now."""
    name = f"OTEL_{signal.upper()}_EXPORTER"
    if name not in preset.lists:
        return True
    words = exporters_in(known.get(name, ""))
    return any(map(is_otlp, words)) if words else preset.exports_unasked


def exporters_in(words: str) -> list[str]:
    """The names in a comma-separated list."""
    return [name for word in words.split(",") if (name := word.strip())]


def is_otlp(name: str) -> bool:
    """Whether an exporter of this name speaks OTLP: otlp, or Python's otlp_proto_grpc and otlp_proto_http.

    >>> is_otlp("otlp_proto_grpc"), is_otlp("console")
    (True, False)
    """
    return name == "otlp" or name.startswith("otlp_")


def _usual_protocol(address: str) -> str:
    """What an SDK that was told no protocol speaks there: port 4317 means grpc."""
    parts = _parts(address)
    return "grpc" if parts is not None and parts.netloc.endswith(_GRPC_PORT) else _HTTP


def _parts(address: str) -> SplitResult | None:
    """The parts of an address, which may lack a scheme; None for what is none."""
    try:
        return urlsplit(address if "://" in address else f"http://{address}")
    except ValueError:
        return None


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
