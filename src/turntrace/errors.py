"""Every error that turntrace raises.

::

    TurntraceError
    ├── ConfigurationError    configure(), attach() or an environment variable is wrong
    ├── TraceReadError        a file cannot be read as a trace (path, line, offset)
    │   └── ContractError     strict reading found an error-severity issue
    ├── TraceWriteError       a trace file cannot be opened or is not a regular file
    ├── QueryError            SQL over traces cannot be answered
    └── MissingExtraError     an optional dependency is not installed (names the extra)

Only configure, attach, read, compare and the command line raise these; recording never does.
Programmer mistakes are TypeError and ValueError.
"""

from typing import Any

__all__ = [
    "ConfigurationError",
    "ContractError",
    "MissingExtraError",
    "QueryError",
    "TraceReadError",
    "TraceWriteError",
    "TurntraceError",
]


class TurntraceError(Exception):
    """The root of the tree. Every error of it can be pickled: pools hand errors from process to process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.args), self.__dict__


class ConfigurationError(TurntraceError):
    """A setting cannot be used; the message names it and the way out."""


class TraceReadError(TurntraceError):
    """A file cannot be read as a trace.

    Attributes: ``path`` (as given), ``line`` (1-based or None), ``offset`` (bytes or None).
    """

    def __init__(
        self, message: str, *, path: str = "", line: int | None = None, offset: int | None = None
    ) -> None:
        self.path = path
        self.line = line
        self.offset = offset
        where = path if line is None else f"{path or '<input>'}:{line}"
        super().__init__(f"{where}: {message}" if where else message)


class ContractError(TraceReadError):
    """Strict reading met an issue of severity error.

    Attributes besides those of TraceReadError: ``code``, the issue code.
    """

    def __init__(
        self, code: str, message: str, *, path: str = "", line: int | None = None, offset: int | None = None
    ) -> None:
        self.code = code
        super().__init__(f"{code}: {message}", path=path, line=line, offset=offset)


class TraceWriteError(TurntraceError):
    """A trace file cannot be written; raised before an agent starts, never while it runs."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"cannot write the trace to {path}: {reason}")


class MissingExtraError(TurntraceError):
    """An optional part needs a package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self.feature = feature
        self.extra = extra
        super().__init__(f"{feature} needs an optional package: pip install 'turntrace[{extra}]'")


class QueryError(TurntraceError):
    """A question about many turns cannot be answered; the message says why."""


def _unpickled(kind: type[TurntraceError], args: tuple[object, ...]) -> TurntraceError:
    """An error whose message is made already: its constructor would make one from the parts."""
    return kind.__new__(kind, *args)
