"""Timed streams: thin proxies that measure any sync or async stream and change nothing about it.

Two shells, one recorder (:mod:`turntrace.core.streams`). Items keep their identity and order, errors
and cancellation pass through, everything else is the wrapped object's own. A stream that is left early
ends once: when it is closed or, at the latest, when the last reference to it is gone.
"""

from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, overload

from turntrace.core.streams import (
    StreamListener,
    StreamSummary,
    stream_protocol,
)
from turntrace.instrument.meter import Leaving, Meter, closing, timed, timed_async

__all__ = ["TracedAsyncStream", "TracedStream", "stream"]

T = TypeVar("T")
_Listener = StreamListener | None


class _Traced:
    """What the proxies share: all that is not a pull belongs to the wrapped object.

    The two own attributes carry a prefix, so that they hide none. ``summary`` is the measurement so
    far, unless the wrapped object has a ``summary`` itself.
    """

    __slots__ = ("__weakref__", "turntrace_meter", "turntrace_source")
    _pulls: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    summary: StreamSummary

    def __init__(self, source: Any, meter: Meter) -> None:
        object.__setattr__(self, "turntrace_source", source)
        object.__setattr__(self, "turntrace_meter", meter)

    def __getattr__(self, name: str) -> Any:
        meter = object.__getattribute__(self, "turntrace_meter")
        try:
            value = getattr(object.__getattribute__(self, "turntrace_source"), name)
        except AttributeError:
            if name != "summary":
                raise
            return meter.summary()
        if name in {"close", "aclose"}:
            return closing(value, meter)
        if timed := self._pulls.get(name):
            return lambda *values: timed(partial(value, *values), meter)()
        return value

    @property  # type: ignore[misc]  # read-only: nobody assigns the class of a stream
    def __class__(self) -> type:
        return type(self.turntrace_source)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.turntrace_source, name, value)

    def __dir__(self) -> Iterable[str]:
        return dir(self.turntrace_source)

    def __bool__(self) -> bool:
        return bool(self.turntrace_source)

    def __len__(self) -> int:
        return len(self.turntrace_source)

    def __enter__(self) -> Any:
        with self.turntrace_meter:
            entered = self.turntrace_source.__enter__()
        return self if entered is self.turntrace_source else _proxy(entered, self.turntrace_meter)

    def __exit__(self, *exc: object) -> Any:
        with Leaving(self.turntrace_meter, exc[1]):
            return self.turntrace_source.__exit__(*exc)

    async def __aenter__(self) -> Any:
        with self.turntrace_meter:
            entered = await self.turntrace_source.__aenter__()
        return self if entered is self.turntrace_source else _proxy(entered, self.turntrace_meter)

    async def __aexit__(self, *exc: object) -> Any:
        with Leaving(self.turntrace_meter, exc[1]):
            return await self.turntrace_source.__aexit__(*exc)


class TracedStream(_Traced, Generic[T]):
    """A proxy of a sync stream, made by :func:`stream`.

    ``__next__`` is a slot that holds the measured pull, so that no pull pays for ``__getattr__``.
    """

    __slots__ = ("__next__",)
    __next__: Callable[..., T]
    _pulls: ClassVar = {"send": timed, "throw": timed}

    def __init__(self, source: Any, meter: Meter) -> None:
        super().__init__(source, meter)
        advance = getattr(source, "__next__", partial(next, source))
        object.__setattr__(self, "__next__", timed(advance, meter))

    def __iter__(self) -> "TracedStream[T]":
        inner = iter(self.turntrace_source)
        return self if inner is self.turntrace_source else TracedStream(inner, self.turntrace_meter)


class TracedAsyncStream(_Traced, Generic[T]):
    """A proxy of an async stream, made by :func:`stream`."""

    __slots__ = ("__anext__",)
    __anext__: Callable[..., Coroutine[Any, Any, T]]
    _pulls: ClassVar = {"asend": timed_async, "athrow": timed_async}  # codespell:ignore asend

    def __init__(self, source: Any, meter: Meter) -> None:
        super().__init__(source, meter)
        advance = getattr(source, "__anext__", partial(anext, source))
        object.__setattr__(self, "__anext__", timed_async(advance, meter))

    def __aiter__(self) -> "TracedAsyncStream[T]":
        inner = aiter(self.turntrace_source)
        return self if inner is self.turntrace_source else TracedAsyncStream(inner, self.turntrace_meter)


class _TwoWay(TracedStream[T]):
    """A proxy of an object that can be iterated either way."""

    __slots__ = ()

    def __aiter__(self) -> TracedAsyncStream[T]:
        return aiter(TracedAsyncStream(self.turntrace_source, self.turntrace_meter))

    def __anext__(self) -> Coroutine[Any, Any, T]:
        return TracedAsyncStream[T](self.turntrace_source, self.turntrace_meter).__anext__()


class _Pending:
    """An awaitable that brings a stream; ``target`` is the stream as soon as it is there."""

    __slots__ = ("_opened", "_pull", "target")

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self._opened = False
        self._pull: Callable[[], Awaitable[Any]] | None = None
        self.target: Any = awaitable

    async def open(self) -> Any:
        """What the awaitable brings, awaited once."""
        if not self._opened:
            self.target, self._opened = await self.target, True
        return self.target

    def advance(self) -> Awaitable[Any]:
        """The next pull of the stream."""
        return self._first() if self._pull is None else self._pull()

    async def _first(self) -> Any:
        self._pull = pull = aiter(await self.open()).__anext__
        return await pull()


class _Awaited(TracedAsyncStream[T]):
    """A proxy of an awaitable that brings a stream: the first pull awaits it."""

    __slots__ = ("_pending",)

    def __init__(self, source: Any, meter: Meter) -> None:
        pending = _Pending(source)
        object.__setattr__(self, "_pending", pending)
        object.__setattr__(self, "turntrace_meter", meter)
        object.__setattr__(self, "__anext__", timed_async(pending.advance, meter))

    @property
    def turntrace_source(self) -> Any:
        """The stream or, until it is there, the awaitable."""
        return self._pending.target

    def __aiter__(self) -> Self:
        return self

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._bring().__await__()

    async def __aenter__(self) -> Any:
        if not hasattr(type(self.turntrace_source), "__aenter__"):
            await self._bring()
        return await super().__aenter__()

    async def _bring(self) -> Any:
        with self.turntrace_meter:
            brought = await self._pending.open()
        return _proxy(brought, self.turntrace_meter)


_PROXIES: Final = {"sync": TracedStream, "async": TracedAsyncStream, "both": _TwoWay, "awaitable": _Awaited}


def _proxy(brought: Any, meter: Meter) -> Any:
    """A proxy of what a context manager or an awaitable brought; what is no stream is left alone."""
    protocol = None if hasattr(type(brought), "__len__") else stream_protocol(type(brought))
    return brought if protocol is None else _PROXIES[protocol](brought, meter)


@overload
def stream(source: Iterable[T], listener: _Listener = None) -> TracedStream[T]: ...
@overload
def stream(source: AsyncIterable[T], listener: _Listener = None) -> TracedAsyncStream[T]: ...
@overload
def stream(source: Awaitable[AsyncIterable[T]], listener: _Listener = None) -> TracedAsyncStream[T]: ...
@overload
def stream(source: object, listener: _Listener = None) -> Any: ...
def stream(source: Any, listener: _Listener = None) -> Any:
    """``source`` as a stream that is measured and otherwise unchanged.

    Takes any iterator, iterable, async iterator or iterable, an awaitable that brings an async one, and
    a context manager that is or brings one. Without a listener it only measures: ``.summary``.

    >>> chunks = stream(iter(["Hello ", "world"]))
    >>> "".join(chunks)
    'Hello world'
    >>> chunks.summary.chunks, chunks.summary.outcome
    (2, 'ok')
    """
    return _PROXIES[stream_protocol(type(source)) or "sync"](source, Meter(listener))
