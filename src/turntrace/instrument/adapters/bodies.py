"""The body of an HTTP response that is still coming, with its pieces and its close measured.

Everything that an agent can do with a response ends here: reading it in any way, leaving it, closing it.
"""

from typing import Any

from turntrace.instrument.adapters.reading import Reading

__all__ = ["AsyncBody", "Body", "reading_of"]


class _Wrapped:
    """The body as it is, except for what the classes below measure."""

    __slots__ = ("_source", "turntrace_reading")

    def __init__(self, source: Any, reading: Reading) -> None:
        self._source = source
        self.turntrace_reading = reading

    @property  # type: ignore[misc]  # read-only: nobody assigns the class of a body
    def __class__(self) -> type:
        return type(self._source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class Body(_Wrapped):
    """The body of a response of a sync client."""

    __slots__ = ()

    def __iter__(self) -> Any:
        pieces = iter(self._source)
        return pieces if self.turntrace_reading.has_events else self.turntrace_reading.pieces(pieces)

    def close(self) -> None:
        """Close the body; the call is over."""
        with self.turntrace_reading.leaving():
            self._source.close()


class AsyncBody(_Wrapped):
    """The body of a response of an async client."""

    __slots__ = ()

    def __aiter__(self) -> Any:
        pieces = aiter(self._source)
        return pieces if self.turntrace_reading.has_events else self.turntrace_reading.pieces(pieces)

    async def aclose(self) -> None:
        """Close the body; the call is over."""
        with self.turntrace_reading.leaving():
            await self._source.aclose()


def reading_of(response: Any) -> Reading | None:
    """The reading of a response whose body is measured."""
    found = getattr(getattr(response, "stream", None), "turntrace_reading", None)
    return found if isinstance(found, Reading) else None
