"""The class of an exception, as telemetry tells it: never its message."""

__all__ = ["error_type"]


def error_type(kind: type[BaseException]) -> str:
    """The class name, qualified by its module unless it is a builtin.

    Source: OpenTelemetry semantic conventions, ``error.type``.
    """
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"
