"""The reading of an answer that is still coming, whichever way the agent reads it.

An answer's body and the SDK's iterator over its events are measured where they are, inside the SDK's
own objects, so that these stay what they are. What is read as events is measured as events, everything
else as pieces of the body.
"""

import inspect
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any

from turntrace.core.streams import StreamSummary
from turntrace.instrument.adapters.event_lines import EventLines
from turntrace.instrument.adapters.leftovers import LEFTOVERS
from turntrace.instrument.adapters.model_call import ModelCall
from turntrace.instrument.adapters.parts import Parts
from turntrace.instrument.meter import Leaving, Meter, timed, timed_async
from turntrace.instrument.model_calls import GenerationStream
from turntrace.instrument.streams import TracedAsyncStream, TracedStream

__all__ = ["Reading"]

See = Callable[[Any], None]


class _CallStream(GenerationStream):
    """Hears of the stream and ends the call with it; holds the call, which nobody else may."""

    __slots__ = ("_call", "_parts", "failure", "is_closed")

    def __init__(self, call: ModelCall, *opened: Any, parts: Parts | None) -> None:
        super().__init__(call, *opened)
        self._call = call
        self._parts = parts
        self.failure: type[BaseException] | None = None
        self.is_closed = False

    def finished(self, summary: StreamSummary) -> None:
        """The stream is over; one that was dropped may be so inside the garbage collector."""
        super().finished(summary)
        call = self._call
        if summary.outcome == "abandoned" and not self.is_closed:
            LEFTOVERS.add(call.end)
            return
        if summary.outcome == "ok" and self._parts is not None:
            self._parts.tell(call.answer)
        call.end(self.failure if summary.outcome in {"error", "cancelled"} else None)

    def measured(self) -> Iterator[tuple[str, float]]:
        """What a stream measured; the pieces of a whole answer mean nothing."""
        return super().measured() if self._parts is None else iter(())


class _CallMeter(Meter):
    """A meter that tells which error ended the stream."""

    __slots__ = ()

    def stop(self, error: BaseException) -> None:
        """See Meter."""
        is_end = isinstance(error, StopIteration | StopAsyncIteration)
        if isinstance(self._listener, _CallStream) and not is_end:
            self._listener.failure = type(error)
        super().stop(error)


class Reading:
    """One answer's reading: begun with the request, over with the last event, an error or a close."""

    __slots__ = ("_iterator", "_listener", "_see_event", "_see_piece", "meter")

    def __init__(self, call: ModelCall, *opened: Any, encoding: str) -> None:
        """``opened``: the call's span and turn. ``encoding``: the body's Content-Encoding."""
        LEFTOVERS.watch()
        self._see_event = call.answer.see
        parts = None if call.is_stream else Parts(encoding)
        self._see_piece = EventLines(call.answer, encoding).add if parts is None else parts.add
        self._listener = _CallStream(call, *opened, parts=parts)
        self._iterator: Any = None
        self.meter = _CallMeter(self._listener)
        self.meter.resume(call.started_ns)
        self.meter.recorder.idle(self.meter.clock())
        self.meter.recorder.searching = parts is None
        call.streams(self._listener)

    @property
    def has_events(self) -> bool:
        """Whether the SDK's events are measured, so that the body below them is not."""
        return self._iterator is not None

    def events(self, iterator: Any) -> Any:
        """``iterator`` over the SDK's events, measured."""
        self._iterator = iterator
        return _measured(iterator, self.meter, self._see)

    def pieces(self, iterator: Any) -> Any:
        """``iterator`` over the body, measured."""
        return _measured(iterator, self.meter, self._see_piece)

    def leaving(self) -> AbstractContextManager[object]:
        """A block around the close of the body.

        The SDK's iterator closes it too: at its end, which is told by the pull that brings it, and when it
        is dropped, which the garbage collector may do.
        """
        frame = _frame_of(self._iterator)
        is_inside = frame is not None and _is_running_here(frame)
        if self.meter.recorder.pulling and (is_inside or frame is None):
            return nullcontext()
        if is_inside:
            self.meter.finish("abandoned")
            return nullcontext()
        self._listener.is_closed = True
        return Leaving(self.meter, sys.exc_info()[1])

    def _see(self, event: Any) -> None:
        try:
            self._see_event(event)
        except Exception:  # noqa: BLE001 - an event of another shape says nothing that we know
            return


class _Events(TracedStream[Any]):
    """A measured iterator whose items are also looked at."""

    __slots__ = ()

    def __init__(self, source: Any, meter: Meter, see: See) -> None:
        super().__init__(source, meter)
        advance = source.__next__

        def pull() -> Any:
            item = advance()
            see(item)
            return item

        object.__setattr__(self, "__next__", timed(pull, meter))


class _AsyncEvents(TracedAsyncStream[Any]):
    """As _Events, async."""

    __slots__ = ()

    def __init__(self, source: Any, meter: Meter, see: See) -> None:
        super().__init__(source, meter)
        advance: Callable[[], Coroutine[Any, Any, Any]] = source.__anext__

        async def pull() -> Any:
            item = await advance()
            see(item)
            return item

        object.__setattr__(self, "__anext__", timed_async(pull, meter))


def _measured(iterator: Any, meter: Meter, see: See) -> Any:
    kind = _AsyncEvents if hasattr(iterator, "__anext__") else _Events
    return kind(iterator, meter, see)


def _frame_of(generator: Any) -> FrameType | None:
    frame = getattr(generator, "gi_frame", None) or getattr(generator, "ag_frame", None)
    return frame if isinstance(frame, FrameType) else None


def _is_running_here(frame: FrameType) -> bool:
    """Whether ``frame`` is on this thread's stack: another thread's or task's is not."""
    current = inspect.currentframe()
    while current is not None and current is not frame:
        current = current.f_back
    return current is not None
