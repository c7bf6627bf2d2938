"""Decorators: separate objects that decide at each call, not at decoration.

Functions, coroutine functions, generators and async generators are told apart. A decorated generator has
its context attached inside each pull only, so that the consumer never runs inside it.
"""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar

from opentelemetry.context import attach, get_current

__all__ = ["Block", "wrapped"]

Function = TypeVar("Function", bound=Callable[..., Any])
MakeBlock = Callable[[Sequence[Any], Mapping[str, Any]], "Block"]
"""Makes the block of one call from its positional and its named arguments."""


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


def wrapped(function: Function, block: MakeBlock) -> Function:
    """``function`` run inside a new ``block`` at each call; its signature and kind stay."""
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


def _around_call(function: Around, block: MakeBlock) -> Around:
    def call(*args: Any, **kwargs: Any) -> Any:
        with block(args, kwargs):
            return function(*args, **kwargs)

    return call


def _around_coroutine(function: Around, block: MakeBlock) -> Around:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with block(args, kwargs):
            return await function(*args, **kwargs)

    return call


def _around_generator(function: Around, block: MakeBlock) -> Around:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator, held = function(*args, **kwargs), _Held(block(args, kwargs))
        step, value = generator.send, None
        while True:
            try:
                with held:
                    item = step(value)
            except StopIteration as end:
                return end.value
            try:
                step, value = generator.send, (yield item)
            except GeneratorExit:
                with held.leaving():
                    generator.close()
                raise
            except BaseException as error:  # noqa: BLE001 - it goes to the generator, which decides
                step, value = generator.throw, error

    return call


def _around_async_generator(function: Around, block: MakeBlock) -> Around:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator, held = function(*args, **kwargs), _Held(block(args, kwargs))
        step, value = generator.asend, None
        while True:
            try:
                with held:
                    item = await step(value)
            except StopAsyncIteration:
                return
            try:
                step, value = generator.asend, (yield item)
            except GeneratorExit:
                with held.leaving():
                    await generator.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - it goes to the generator, which decides
                step, value = generator.athrow, error

    return call


class _Held:
    """A block entered at the first pull, left at the end, and current inside pulls only."""

    __slots__ = ("_block", "_inside", "_is_begun", "_outside")

    def __init__(self, block: Block) -> None:
        self._block = block
        self._is_begun = False
        self._inside: Any = None
        self._outside: Any = None

    def __enter__(self) -> None:
        if self._is_begun:
            self.resume()
        else:
            self._is_begun = True
            self._outside = get_current()
            self._block.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._inside = get_current()
            attach(self._outside)
        elif issubclass(kind, StopIteration | StopAsyncIteration):
            self.leave(None, None)
        else:
            self.leave(kind, error)

    def resume(self) -> None:
        """Make the block current where the generator is pulled now."""
        self._outside = get_current()
        attach(self._inside)

    def leave(self, kind: type[BaseException] | None, error: BaseException | None) -> None:
        """End the block."""
        self._block.__exit__(kind, error, None)
        attach(self._outside)

    def leaving(self) -> "_Leaving":
        """``with held.leaving():`` the generator is closed inside the block, which ends with it."""
        return _Leaving(self)


class _Leaving:
    """The last time that the block is current."""

    __slots__ = ("_held",)

    def __init__(self, held: _Held) -> None:
        self._held = held

    def __enter__(self) -> None:
        self._held.resume()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.leave(kind or GeneratorExit, error)
