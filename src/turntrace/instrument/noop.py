"""What every call returns while nothing is recorded: one shared object that does nothing."""

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, Self

__all__ = ["NOOP", "Noop"]


class Noop:
    """A turn, phase, generation or tool that records nothing; enter and leave it as often as you like."""

    __slots__ = ()

    run_id: Final = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def set(self, name: str, value: object) -> None:
        """Nothing."""

    def usage(self, **tokens: object) -> None:
        """Nothing."""

    def finish_reasons(self, *reasons: str) -> None:
        """Nothing."""

    def stream(self, source: Iterable[Any] | Any) -> Any:
        """The stream as it is."""
        return source

    def report(self) -> None:
        """None: there is nothing to report."""


NOOP: Final = Noop()
