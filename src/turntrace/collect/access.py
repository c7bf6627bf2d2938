"""Who may send: the token, and what a web page's request looks like.

A page can reach loopback. It cannot leave ``Origin`` out of a request that carries a body of a type we take,
and after DNS rebinding its ``Host`` is the page's name.
"""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote

from turntrace.collect.limits import RefusedError

__all__ = ["TOKEN_HEADER", "Access", "is_loopback", "new_token"]

TOKEN_HEADER: Final = "x-turntrace-token"  # noqa: S105 - a name, no password
_TOKEN_BYTES: Final = 24
_BEARER: Final = b"bearer "


def new_token() -> str:
    """A random token of letters, digits, dash and underscore: nothing in it needs quoting anywhere."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """Checks requests. ``token`` None admits everybody, ``hosts`` None admits any Host."""

    token: str | None = field(repr=False)
    hosts: frozenset[str] | None = None

    @classmethod
    def at(cls, host: str, port: int, token: str | None) -> "Access":
        """The access to a receiver bound to ``host`` and ``port``; on a wildcard address any Host is let in."""
        if host in {"0.0.0.0", "::", "[::]"}:  # noqa: S104 - compared, not bound
            return cls(token)
        bare = host.strip("[]")
        names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else set()
        names.add(f"[{bare}]" if ":" in bare else bare)
        return cls(token, frozenset(f"{name}:{port}".lower() for name in names))

    @property
    def headers(self) -> dict[str, str]:
        """The headers that a sender needs."""
        return {} if self.token is None else {"authorization": f"Bearer {self.token}"}

    @property
    def headers_setting(self) -> str:
        """The same as a value of OTEL_EXPORTER_OTLP_HEADERS, which is percent-encoded."""
        return ",".join(f"{name}={quote(value)}" for name, value in self.headers.items())

    def check_source(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse what a web page sends.

        Raises:
            RefusedError: with status 403.
        """
        if b"origin" in headers:
            raise RefusedError("origin", 403, "requests of web pages (with an Origin) are refused")
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self.hosts is not None and host not in self.hosts:
            raise RefusedError(
                "host", 403, "the Host header is not the address that this receiver is bound to"
            )

    def check_token(self, headers: Mapping[bytes, bytes], path: bytes) -> bytes:
        """The path without the token.

        Raises:
            RefusedError: with status 401, when the token is neither in a header nor before the path.
        """
        if self.token is None:
            return path
        first, _, rest = path.removeprefix(b"/").partition(b"/")
        if self._is_token(first):
            return b"/" + rest
        given = headers.get(b"authorization", b"")
        bearer = given[len(_BEARER) :] if given[: len(_BEARER)].lower() == _BEARER else b""
        if self._is_token(bearer.strip()) or self._is_token(headers.get(TOKEN_HEADER.encode(), b"").strip()):
            return path
        raise RefusedError(
            "token", 401, f"the token is missing or wrong: send Authorization: Bearer or {TOKEN_HEADER}"
        )

    def _is_token(self, given: bytes) -> bool:
        return self.token is not None and hmac.compare_digest(given, self.token.encode())
