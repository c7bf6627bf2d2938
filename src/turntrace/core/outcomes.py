"""How spans and turns end, in words, and which exception means what."""

from typing import Final, Literal

__all__ = ["Outcome", "TurnStatus", "outcome_of"]

Outcome = Literal["ok", "error", "cancelled", "abandoned", "incomplete"]
"""How a span ended."""

TurnStatus = Literal["ok", "error", "interrupted", "cancelled"]
"""How a turn ended."""

_CANCELLATIONS: Final = frozenset({"CancelledError", "Cancelled", "KeyboardInterrupt", "SystemExit"})


def outcome_of(kind: type[BaseException] | None) -> Outcome:
    """The outcome of a block that an exception of class ``kind`` left; None: it ended normally.

    Cancellation is known by the name of the class, so that no event loop has to be loaded for it.

    >>> outcome_of(None), outcome_of(KeyboardInterrupt), outcome_of(GeneratorExit), outcome_of(OSError)
    ('ok', 'cancelled', 'abandoned', 'error')
    """
    if kind is None:
        return "ok"
    if issubclass(kind, Exception):
        return "error"
    if issubclass(kind, GeneratorExit):
        return "abandoned"
    return "cancelled" if {base.__name__ for base in kind.__mro__} & _CANCELLATIONS else "error"
