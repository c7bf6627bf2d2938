"""Timed streams: thin proxies that measure any sync or async stream and change nothing about it.

Two shells, one recorder (:mod:`turntrace.core.streams`). Items keep their identity and order, errors
and cancellation pass through, everything else is the wrapped object's own. A stream that is left early
ends once: when it is closed or, at the latest, when the last reference to it is gone.
"""

import time
from collections import Counter
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from functools import partial, wraps
from threading import Lock
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, overload

from turntrace.core.outcomes import Outcome
from turntrace.core.streams import (
    NOT_IDLE,
    PAUSE_NS,
    StreamListener,
    StreamRecorder,
    StreamSummary,
    content_kind,
    outcome_of,
    stream_protocol,
)

__all__ = ["LISTENER_ERRORS", "Meter", "TracedAsyncStream", "TracedStream", "stream"]

T = TypeVar("T")
_Listener = StreamListener | None

LISTENER_ERRORS: Final[Counter[str]] = Counter()
"""Errors of listeners that were kept from the caller, counted by type."""


class Meter:
    """One measurement: the recorder, its clock and its listener, shared by all proxies of a stream.

    It dies with the last of them, and then the stream is abandoned unless it had ended. Whoever wants
    to end it earlier keeps a weak reference and calls :meth:`finish`. As a context manager it measures
    a pull that brings no item: an enter, an await.
    """

    __slots__ = ("__weakref__", "_listener", "_once", "clock", "leaving", "recorder")

    def __init__(self, listener: _Listener = None) -> None:
        self._listener = listener
        self._once = Lock()
        self.clock = time.perf_counter_ns if listener is None else listener.now_ns
        self.leaving: Outcome | None = None
        self.recorder = StreamRecorder()

    def resume(self, at_ns: int) -> None:
        """Tell the recorder of a pull, and the listener of the pause that it ends."""
        if pause := self.recorder.pull(at_ns):
            self._tell("pause", *pause)

    def look(self, item: object, at_ns: int) -> None:
        """Tell the listener which marks the item is the first to reach."""
        for mark in self.recorder.look(at_ns, content_kind(item)):
            self._tell(mark, at_ns)

    def stop(self, error: BaseException) -> None:
        """Finish as ``error``, raised by a pull, says; the end that a close brings about is the close's."""
        outcome = outcome_of(error)
        self.finish(outcome if outcome == "cancelled" else self.leaving or outcome)

    def finish(self, outcome: Outcome) -> None:
        """End the measurement now, once; the wrapped stream is not touched."""
        if self._once.acquire(blocking=False):
            now_ns = self.clock()
            self.recorder.pull(now_ns)  # a last pause is told by the summary only
            self._tell("finished", self.recorder.finish(now_ns, outcome))
            self._listener = None

    def summary(self) -> StreamSummary:
        """The summary so far, or the final one."""
        return self.recorder.summary(self.clock())

    def __enter__(self) -> None:
        self.resume(self.clock())

    def __exit__(self, kind: object, error: BaseException | None, tb: object) -> None:
        if error is None:
            self.recorder.idle(self.clock())
        else:
            self.stop(error)

    def _tell(self, event: str, *values: object) -> None:
        """Call the listener, if any; the one guard between its errors and the caller."""
        if self._listener is None:
            return
        try:
            getattr(self._listener, event)(*values)
        except Exception as error:  # noqa: BLE001 - telemetry never reaches the caller; it is counted
            LISTENER_ERRORS[type(error).__name__] += 1

    def __del__(self) -> None:
        try:
            self.finish("abandoned")
        except Exception as error:  # noqa: BLE001 - half built, or the interpreter is shutting down
            del error


class _Leaving:
    """A close or an exit: its time is the provider's, and the stream is over after it.

    A close that fails because a pull is under way (an async generator refuses it) ends nothing.
    """

    __slots__ = ("_busy", "_meter", "_outcome", "over")

    def __init__(self, meter: Meter, error: object = None) -> None:
        cancelled = isinstance(error, BaseException) and outcome_of(error) == "cancelled"
        self._outcome: Outcome = "cancelled" if cancelled else "abandoned"
        self._busy = meter.recorder.pulling
        self._meter = meter
        self.over = True

    def __enter__(self) -> Self:
        self._meter.resume(self._meter.clock())
        self._meter.leaving = self._outcome
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, tb: object) -> None:
        if kind is not None and self._busy:
            self._meter.leaving = None
        elif self.over:
            self._meter.finish(self._outcome)


def _closing(close: Callable[..., Any], meter: Meter) -> Callable[..., Any]:
    """``close`` as the end of the stream: when it has returned or, if it is async, was awaited."""

    async def wait(leaving: _Leaving, result: Coroutine[Any, Any, object]) -> object:
        leaving.over = True
        with leaving:
            return await result

    @wraps(close)
    def closed(*args: Any, **kwargs: Any) -> Any:
        with _Leaving(meter) as leaving:
            result = close(*args, **kwargs)
            leaving.over = not isinstance(result, Coroutine)
        return result if leaving.over else wait(leaving, result)

    return closed


def _timed(advance: Callable[[], T], meter: Meter) -> Callable[[], T]:
    """``advance`` as a measured pull; what it does around it is the recorder's pull and item, inlined."""
    recorder, clock = meter.recorder, meter.clock

    def pull() -> T:
        gap_ns = clock() - recorder.idle_since_ns
        if gap_ns < PAUSE_NS:
            recorder.consume_ns += gap_ns
        else:
            meter.resume(recorder.idle_since_ns + gap_ns)
        recorder.idle_since_ns = NOT_IDLE
        try:
            item = advance()
        except BaseException as error:
            meter.stop(error)
            raise
        recorder.idle_since_ns = clock()
        recorder.chunks += 1
        if recorder.searching:
            meter.look(item, recorder.idle_since_ns)
        return item

    return pull


def _timed_async(advance: Callable[[], Awaitable[T]], meter: Meter) -> Callable[[], Coroutine[Any, Any, T]]:
    """As :func:`_timed`, awaiting the item."""
    recorder, clock = meter.recorder, meter.clock

    async def pull() -> T:
        gap_ns = clock() - recorder.idle_since_ns
        if gap_ns < PAUSE_NS:
            recorder.consume_ns += gap_ns
        else:
            meter.resume(recorder.idle_since_ns + gap_ns)
        recorder.idle_since_ns = NOT_IDLE
        try:
            item = await advance()
        except BaseException as error:
            meter.stop(error)
            raise
        recorder.idle_since_ns = clock()
        recorder.chunks += 1
        if recorder.searching:
            meter.look(item, recorder.idle_since_ns)
        return item

    return pull


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
            return _closing(value, meter)
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
        with _Leaving(self.turntrace_meter, exc[1]):
            return self.turntrace_source.__exit__(*exc)

    async def __aenter__(self) -> Any:
        with self.turntrace_meter:
            entered = await self.turntrace_source.__aenter__()
        return self if entered is self.turntrace_source else _proxy(entered, self.turntrace_meter)

    async def __aexit__(self, *exc: object) -> Any:
        with _Leaving(self.turntrace_meter, exc[1]):
            return await self.turntrace_source.__aexit__(*exc)


class TracedStream(_Traced, Generic[T]):
    """A proxy of a sync stream, made by :func:`stream`.

    ``__next__`` is a slot that holds the measured pull, so that no pull pays for ``__getattr__``.
    """

    __slots__ = ("__next__",)
    __next__: Callable[..., T]
    _pulls: ClassVar = {"send": _timed, "throw": _timed}

    def __init__(self, source: Any, meter: Meter) -> None:
        super().__init__(source, meter)
        advance = getattr(source, "__next__", partial(next, source))
        object.__setattr__(self, "__next__", _timed(advance, meter))

    def __iter__(self) -> "TracedStream[T]":
        inner = iter(self.turntrace_source)
        return self if inner is self.turntrace_source else TracedStream(inner, self.turntrace_meter)


class TracedAsyncStream(_Traced, Generic[T]):
    """A proxy of an async stream, made by :func:`stream`."""

    __slots__ = ("__anext__",)
    __anext__: Callable[..., Coroutine[Any, Any, T]]
    _pulls: ClassVar = {"asend": _timed_async, "athrow": _timed_async}  # codespell:ignore asend

    def __init__(self, source: Any, meter: Meter) -> None:
        super().__init__(source, meter)
        advance = getattr(source, "__anext__", partial(anext, source))
        object.__setattr__(self, "__anext__", _timed_async(advance, meter))

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
        object.__setattr__(self, "__anext__", _timed_async(pending.advance, meter))

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
