"""How an exception that leaves a block is told: its outcome and class, never its message."""

import asyncio

from turntrace.core.model import Outcome

__all__ = ["error_type", "outcome_of"]

_CANCELLED = (asyncio.CancelledError, KeyboardInterrupt, SystemExit)


def outcome_of(kind: type[BaseException] | None) -> Outcome:
    """The outcome of a block that ended with an exception of class ``kind`` (None: normally)."""
    if kind is None:
        return "ok"
    if issubclass(kind, GeneratorExit):
        return "abandoned"
    return "cancelled" if issubclass(kind, _CANCELLED) else "error"


def error_type(kind: type[BaseException]) -> str:
    """The class name, qualified by its module unless it is a builtin.

    Source: OpenTelemetry semantic conventions, ``error.type``.
    """
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"
