"""One look at an endpoint: does anything listen there?"""

import socket
from typing import Final
from urllib.parse import urlsplit

__all__ = ["PROBE_TIMEOUT_S", "address_of", "is_listening"]

PROBE_TIMEOUT_S: Final = 0.25
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def address_of(endpoint: str) -> tuple[str, int]:
    """Host and port of an OTLP endpoint, with or without a scheme.

    >>> address_of("http://localhost:4318/v1"), address_of("collector:4317")
    (('localhost', 4318), ('collector', 4317))
    """
    parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
    return parts.hostname or "localhost", parts.port or _DEFAULT_PORTS.get(parts.scheme, 4317)


def is_listening(endpoint: str, timeout_s: float = PROBE_TIMEOUT_S) -> bool:
    """Whether a TCP connection to ``endpoint`` is accepted within ``timeout_s`` seconds."""
    try:
        with socket.create_connection(address_of(endpoint), timeout=timeout_s):
            return True
    except OSError:
        return False
