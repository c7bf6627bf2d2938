"""Which exception means what."""

import asyncio

import pytest

from turntrace.core.outcomes import outcome_of


class Cancelled(BaseException):
    """As trio and anyio name theirs."""


class Nested(asyncio.CancelledError):
    """A library's own kind of cancellation."""


class Strange(BaseException):
    """Neither an error nor a cancellation by its name."""


class CancelledTooLateError(Cancelled, Exception):
    """An Exception is an error, whatever else it is."""


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (None, "ok"),
        (ValueError, "error"),
        (CancelledTooLateError, "error"),
        (GeneratorExit, "abandoned"),
        (KeyboardInterrupt, "cancelled"),
        (SystemExit, "cancelled"),
        (asyncio.CancelledError, "cancelled"),
        (Nested, "cancelled"),
        (Cancelled, "cancelled"),
        (Strange, "error"),
        (BaseException, "error"),
    ],
)
def test_the_class_of_an_exception_tells_the_outcome(kind, outcome):
    """Errors, cancellations of any event loop, and streams that were left."""
    assert outcome_of(kind) == outcome
