"""One measurement of a stream: the recorder, its clock and listener, and the pulls that feed it."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from threading import Lock
from typing import Any, Final, Self, TypeVar

from turntrace.core.chunks import content_kind
from turntrace.core.outcomes import Outcome
from turntrace.core.streams import (
    NOT_IDLE,
    PAUSE_NS,
    StreamListener,
    StreamRecorder,
    StreamSummary,
    outcome_of,
)

__all__ = ["LISTENER_ERRORS", "Leaving", "Meter", "closing", "timed", "timed_async"]

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
        """Tell the recorder of a pull, and the listener of the pause that it ends; telling is nobody's wait."""
        if pause := self.recorder.pull(at_ns):
            self._tell("pause", *pause)
            self.recorder.consume_ns += self.clock() - at_ns

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


class Leaving:
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


def closing(close: Callable[..., Any], meter: Meter) -> Callable[..., Any]:
    """``close`` as the end of the stream: when it has returned or, if it is async, was awaited."""

    async def wait(leaving: Leaving, result: Coroutine[Any, Any, object]) -> object:
        """Await the end of the stream, and only then end its measurement."""
        leaving.over = True
        with leaving:
            return await result

    @wraps(close)
    def closed(*args: Any, **kwargs: Any) -> Any:
        with Leaving(meter) as leaving:
            result = close(*args, **kwargs)
            leaving.over = not isinstance(result, Coroutine)
        return result if leaving.over else wait(leaving, result)

    return closed


def timed(advance: Callable[[], T], meter: Meter) -> Callable[[], T]:
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


def timed_async(advance: Callable[[], Awaitable[T]], meter: Meter) -> Callable[[], Coroutine[Any, Any, T]]:
    """As :func:`timed`, awaiting the item."""
    recorder, clock = meter.recorder, meter.clock

    async def pull() -> T:
        """Take the next item and count the time it took."""
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
