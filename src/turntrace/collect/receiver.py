"""An OTLP receiver inside a process: on loopback, with a random token, in threads of its own.

    with RequestFiles(folder) as sink, Receiver(sink) as receiver:
        agent(env={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_endpoint, ...})

A request is acknowledged after its sink has returned.
"""

import contextlib
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from turntrace.collect.acceptance import Acceptance, Hook
from turntrace.collect.access import Access, is_loopback, new_token
from turntrace.collect.counts import Counts, Totals
from turntrace.collect.limits import Limits
from turntrace.collect.sink import Sink
from turntrace.errors import ConfigurationError

if TYPE_CHECKING:
    from turntrace.collect.grpc_server import GrpcServer
    from turntrace.collect.http_server import HttpServer

__all__ = ["RANDOM", "Address", "Receiver", "Settings", "Tls"]

RANDOM: Final = "<random>"
"""Stands for a token that the receiver makes."""

_STOP_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 means any free one."""

    host: str = "127.0.0.1"
    port: int = 0

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of a certificate chain and of its key, both PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a receiver is to be. ``http`` and ``grpc`` None mean: not that one. ``token`` None admits everybody."""

    http: Address | None = field(default_factory=Address)
    grpc: Address | None = None
    token: str | None = field(default=RANDOM, repr=False)
    tls: Tls | None = None
    limits: Limits = field(default_factory=Limits)


_DEFAULTS: Final = Settings()


class Receiver:
    """``with Receiver(sink) as receiver``: takes requests until the block, or ``stop``, ends.

    ``hook`` is called with every admitted request as it came over the wire, before it is read, on the thread
    that answers it: it is to be quick. It sees a request that is sent again, again.
    """

    __slots__ = (
        "_acceptance",
        "_access",
        "_counts",
        "_grpc",
        "_http",
        "_settings",
        "address",
        "grpc_address",
    )

    def __init__(self, sink: Sink, settings: Settings = _DEFAULTS, *, hook: Hook | None = None) -> None:
        """Check the settings; nothing is bound yet.

        Raises:
            ConfigurationError: for an address that others reach without a token to keep them out.
            MissingExtraError: for http without the extra ``collect``.
        """
        self._settings = settings
        if settings.http is not None:
            _http_server()
        token = new_token() if settings.token == RANDOM else settings.token
        for address in (settings.http, settings.grpc):
            if address is not None and token is None and not is_loopback(address.host):
                raise ConfigurationError(
                    f"{address} can be reached from other machines, and anybody could send: give a token, "
                    "or listen on 127.0.0.1"
                )
        self._counts = Counts()
        self._acceptance = Acceptance(sink, settings.limits, self._counts, hook)
        self._access = Access(token)
        self._http: HttpServer | None = None
        self._grpc: GrpcServer | None = None
        self.address: Address | None = None
        self.grpc_address: Address | None = None

    def __enter__(self) -> Self:
        """Bind and start.

        Raises:
            ConfigurationError: when an address cannot be bound, or a file of TLS not be read.
        """
        try:
            self._start()
        except BaseException:
            self.stop(0)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(_STOP_S)

    def _start(self) -> None:
        settings = self._settings
        context = None if settings.tls is None else _context(settings.tls)
        if settings.http is not None:
            listener = _listener(settings.http)
            self.address = Address(settings.http.host, listener.getsockname()[1])
            self._access = Access.at(self.address.host, self.address.port, self.token)
            self._http = _http_server()(listener, self._access, self._acceptance, settings.limits, context)
            self._http.start()
        if settings.grpc is not None:
            self.grpc_address = self._start_grpc(settings.grpc)

    def _start_grpc(self, address: Address) -> Address:
        from turntrace.collect.grpc_server import GrpcServer  # noqa: PLC0415 - 70 ms for those who want it

        pair = None if self._settings.tls is None else _pair(self._settings.tls)
        try:
            server = GrpcServer(str(address), self._access, self._acceptance, self._settings.limits, pair)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen at {address} for grpc: it is in use, or not ours"
            ) from error
        server.start()
        self._grpc = server
        return Address(address.host, server.port)

    @property
    def token(self) -> str | None:
        """What senders must know."""
        return self._access.token

    @property
    def http_endpoint(self) -> str:
        """For OTEL_EXPORTER_OTLP_ENDPOINT with http/protobuf or http/json; "" when http is off."""
        return "" if self.address is None else f"{self._scheme}://{self.address}"

    @property
    def http_endpoint_with_token(self) -> str:
        """The same with the token in the path, for senders that ignore header settings."""
        return f"{self.http_endpoint}/{self.token}" if self.token and self.address else self.http_endpoint

    @property
    def grpc_endpoint(self) -> str:
        """For OTEL_EXPORTER_OTLP_ENDPOINT with grpc; "" when grpc is off."""
        return "" if self.grpc_address is None else f"{self._scheme}://{self.grpc_address}"

    @property
    def _scheme(self) -> str:
        return "http" if self._settings.tls is None else "https"

    @property
    def headers(self) -> dict[str, str]:
        """The headers that senders must set."""
        return self._access.headers

    @property
    def headers_setting(self) -> str:
        """The same for OTEL_EXPORTER_OTLP_HEADERS."""
        return self._access.headers_setting

    @property
    def totals(self) -> Totals:
        """What was taken and refused so far."""
        return self._counts.totals()

    def stop(self, deadline_s: float) -> None:
        """Accept no more; requests that are being read have ``deadline_s`` seconds. May be called again."""
        grpc, self._grpc = self._grpc, None
        http, self._http = self._http, None
        if http is not None:
            http.stop(deadline_s)
        if grpc is not None:
            grpc.stop(deadline_s)


def _http_server() -> "type[HttpServer]":
    """The server, loaded by who receives: commands that only might are cheaper, and work without it."""
    from turntrace.collect.http_server import HttpServer  # noqa: PLC0415 - as said

    return HttpServer


def _listener(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"cannot listen at {address}: {reason}") from error


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"cannot use {tls.certificate} and {tls.key} for TLS: {error}") from error
    with contextlib.suppress(NotImplementedError):
        context.set_alpn_protocols(["http/1.1"])
    return context


def _pair(tls: Tls) -> tuple[bytes, bytes]:
    return tls.key.read_bytes(), tls.certificate.read_bytes()
