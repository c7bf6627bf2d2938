"""Trace-context headers for the agent's own services only, never for a model provider.

A header would tell the provider that the agent is traced, and it would change the bytes of a request.
"""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import (
    CarrierT,
    Getter,
    Setter,
    TextMapPropagator,
    default_getter,
    default_setter,
)
from opentelemetry.trace import get_current_span

__all__ = ["LocalPropagator", "install", "is_local"]

_HOST_ATTRIBUTES: Final = ("server.address", "net.peer.name")
_URL_ATTRIBUTES: Final = ("url.full", "http.url")


class LocalPropagator(TextMapPropagator):
    """Lets ``propagator`` inject where the current span's target is loopback or one of ``hosts``.

    A span that names no target gets no headers. Extraction is the propagator's own.
    """

    def __init__(self, propagator: TextMapPropagator, hosts: frozenset[str]) -> None:
        self._propagator = propagator
        self._hosts = frozenset(host.lower() for host in hosts)

    def inject(
        self,
        carrier: CarrierT,
        context: Context | None = None,
        setter: Setter[CarrierT] = default_setter,
    ) -> None:
        """Write the headers, or none."""
        attributes: Mapping[str, Any] = getattr(get_current_span(context), "attributes", None) or {}
        targets = set(_targets(attributes))
        if targets and all(is_local(host) or host in self._hosts for host in targets):
            self._propagator.inject(carrier, context, setter)

    def extract(
        self,
        carrier: CarrierT,
        context: Context | None = None,
        getter: Getter[CarrierT] = default_getter,
    ) -> Context:
        """What the propagator extracts."""
        return self._propagator.extract(carrier, context, getter)

    @property
    def fields(self) -> set[str]:
        """The propagator's fields."""
        return self._propagator.fields


def install(hosts: frozenset[str]) -> None:
    """Put the rule around the global propagator, which OTEL_PROPAGATORS chose; once."""
    current = propagate.get_global_textmap()
    if not isinstance(current, LocalPropagator):
        propagate.set_global_textmap(LocalPropagator(current, hosts))


def is_local(host: str) -> bool:
    """Whether a host name or address is this machine's loopback.

    >>> [is_local(host) for host in ("localhost", "127.0.0.9", "::1", "10.0.0.1", "localhost.example")]
    [True, True, True, False, False]
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _targets(attributes: Mapping[str, Any]) -> Iterator[str]:
    """Every host that the span names; they differ when a request goes through a proxy."""
    for name in _HOST_ATTRIBUTES:
        if attributes.get(name):
            yield str(attributes[name]).strip("[]").lower()
    for name in _URL_ATTRIBUTES:
        if attributes.get(name):
            yield _host(str(attributes[name]))


def _host(url: str) -> str:
    """The host of ``url``; empty, and so never local, when there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
