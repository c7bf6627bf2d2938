"""Where spans go over OTLP, by which protocol and by which rule: what ``run`` probes and ``doctor`` says."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from turntrace.config import Settings

if TYPE_CHECKING:
    from turntrace.otel.exporters import Protocol

__all__ = ["Destination", "destination"]

_OTLP_NAMES: Final = frozenset({"otlp", "otlp_proto_grpc", "otlp_proto_http", "turntrace_otlp"})
_DEFAULTS: Final[dict["Protocol", str]] = {
    "grpc": "http://localhost:4317",
    "http/protobuf": "http://localhost:4318",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """An OTLP endpoint. ``rule`` says in words why that protocol."""

    endpoint: str
    protocol: "Protocol"
    rule: str


def destination(endpoint: str | None, settings: Settings) -> Destination | None:
    """Where spans go when ``endpoint`` is asked for, else what the OTEL_* variables say; None for nowhere.

    >>> destination("http://localhost:4317", Settings()).protocol, destination(None, Settings())
    ('grpc', None)

    Raises:
        ConfigurationError: for a protocol that no official exporter speaks.
    """
    names = settings.traces_exporter
    if endpoint is None and names is not None and not names & _OTLP_NAMES:
        return None
    given = endpoint or settings.endpoint
    if given is None and names is None:
        return None
    from turntrace.otel.exporters import protocol_of  # the SDK, for those who export

    protocol = protocol_of(given, settings.protocol)
    return Destination(
        endpoint=given or _DEFAULTS[protocol], protocol=protocol, rule=_rule(given, settings.protocol)
    )


def _rule(given: str | None, asked: str | None) -> str:
    if asked:
        return "OTEL_EXPORTER_OTLP_PROTOCOL says so"
    if given is None:
        return "no endpoint is set: OTLP over HTTP on this machine"
    return "port 4317 means grpc, any other http/protobuf"
