"""Decorators: separate objects that decide at each call, not at decoration.

Functions, coroutine functions, generators and async generators are told apart. A decorated generator has
its context attached inside each pull only, so that the consumer never runs inside it.
"""

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, TypeVar

from opentelemetry.context import attach, get_current

__all__ = ["Block", "wrapped"]

Function = TypeVar("Function", bound=Callable[..., Any])


class Block(Protocol):
    """What ``turn()``, ``phase()``, ``generation()`` and ``tool()`` return."""

    def __enter__(self) -> Any:
        """Begin."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""
        ...


def wrapped(function: Function, block: Callable[[], Block]) -> Function:
    """``function`` run inside a new ``block()`` at each call; its signature and kind stay."""
    if inspect.isasyncgenfunction(function):
        around = _around_async_generator
    elif inspect.isgeneratorfunction(function):
        around = _around_generator
    elif inspect.iscoroutinefunction(function):
        around = _around_coroutine
    else:
        around = _around_call
    return functools.wraps(function)(around(function, block))  # type: ignore[return-value]  # same kind, same signature


Around = Callable[..., Any]


def _around_call(function: Around, block: Callable[[], Block]) -> Around:
    def call(*args: Any, **kwargs: Any) -> Any:
        with block():
            return function(*args, **kwargs)

    return call


def _around_coroutine(function: Around, block: Callable[[], Block]) -> Around:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with block():
            return await function(*args, **kwargs)

    return call


def _around_generator(function: Around, block: Callable[[], Block]) -> Around:
    return lambda *args, **kwargs: _Pulls(function(*args, **kwargs), block())


def _around_async_generator(function: Around, block: Callable[[], Block]) -> Around:
    return lambda *args, **kwargs: _AsyncPulls(function(*args, **kwargs), block())


class _Held:
    """A block entered at the first pull, left at the end, and current inside pulls only."""

    __slots__ = ("_block", "_inside", "_is_over", "_outside")

    def __init__(self, block: Block) -> None:
        self._block = block
        self._inside: Any = None
        self._outside: Any = None
        self._is_over = False

    def __enter__(self) -> None:
        self._outside = get_current()
        if self._inside is None:
            self._block.__enter__()
        else:
            attach(self._inside)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside = get_current()
        if kind is not None and not self._is_over:
            self._is_over = True
            is_end = issubclass(kind, StopIteration | StopAsyncIteration)
            self._block.__exit__(None if is_end else kind, None if is_end else error, None)
        attach(self._outside)

    def abandon(self) -> None:
        """The generator was dropped before its end."""
        if not self._is_over and self._inside is not None:
            self._is_over = True
            self._outside = get_current()
            attach(self._inside)
            self._block.__exit__(GeneratorExit, None, None)
            attach(self._outside)


class _Pulls:
    """A generator whose body runs in the block's context."""

    def __init__(self, generator: Any, block: Block) -> None:
        self._generator = generator
        self._held = _Held(block)

    def __iter__(self) -> "_Pulls":
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """See generator.send."""
        with self._held:
            return self._generator.send(value)

    def throw(self, error: BaseException) -> Any:
        """See generator.throw."""
        with self._held:
            return self._generator.throw(error)

    def close(self) -> None:
        """See generator.close."""
        try:
            self._generator.close()
        finally:
            self._held.abandon()

    def __del__(self) -> None:
        self._held.abandon()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)


class _AsyncPulls:
    """An async generator whose body runs in the block's context."""

    def __init__(self, generator: Any, block: Block) -> None:
        self._generator = generator
        self._held = _Held(block)

    def __aiter__(self) -> "_AsyncPulls":
        return self

    async def __anext__(self) -> Any:
        return await self.asend(None)

    async def asend(self, value: Any) -> Any:
        """See agen.asend."""
        with self._held:
            return await self._generator.asend(value)

    async def athrow(self, error: BaseException) -> Any:
        """See agen.athrow."""
        with self._held:
            return await self._generator.athrow(error)

    async def aclose(self) -> None:
        """See agen.aclose."""
        try:
            await self._generator.aclose()
        finally:
            self._held.abandon()

    def __del__(self) -> None:
        self._held.abandon()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)
