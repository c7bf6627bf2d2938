"""Rules of the stream proxies: one end, right times, nothing about the stream changed."""

import asyncio
import contextlib
import gc
import inspect
import logging
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from turntrace.core.streams import PAUSE_NS
from turntrace.instrument.meter import LISTENER_ERRORS, Meter
from turntrace.instrument.streams import TracedAsyncStream, TracedStream, stream

MS = 1_000_000
TEXT = {"choices": [{"delta": {"content": "Hi"}}]}
ROLE = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
TOOL = {"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]}


class Listener:
    """A clock that stands still unless it is moved, and a log of all that was told."""

    def __init__(self, now=0):
        self.now = now
        self.told = []

    def now_ns(self):
        return self.now

    def pause(self, start_ns, end_ns):
        self.told.append(("pause", start_ns, end_ns))

    def first_chunk(self, at_ns):
        self.told.append(("first_chunk", at_ns))

    def first_token(self, at_ns):
        self.told.append(("first_token", at_ns))

    def first_visible(self, at_ns):
        self.told.append(("first_visible", at_ns))

    def finished(self, summary):
        self.told.append(("finished", summary))

    @property
    def summary(self):
        """The final summary, which must have been told exactly once."""
        (summary,) = [event[1] for event in self.told if event[0] == "finished"]
        return summary

    @property
    def outcome(self):
        return self.summary.outcome

    @property
    def open(self):
        return not any(event[0] == "finished" for event in self.told)


class Script:
    """What a fake provider does: moves the clock by a number, raises an exception, hands over the rest."""

    def __init__(self, listener, *steps):
        self.listener = listener
        self.steps = list(steps)
        self.closed = 0
        self.exited = None

    def take(self, end):
        while self.steps:
            step = self.steps.pop(0)
            if isinstance(step, BaseException):
                raise step
            if not isinstance(step, int):
                return step
            self.listener.now += step
        raise end

    def stop(self):
        self.closed += 1
        self.steps.clear()


class Stream(Script):
    def __iter__(self):
        return self

    def __next__(self):
        return self.take(StopIteration())

    def close(self):
        self.stop()


class ManagedStream(Stream):
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.exited = exc
        self.stop()


class AsyncStream(Script):
    def __aiter__(self):
        return self

    async def __anext__(self):
        step = self.take(StopAsyncIteration())
        return await step if isinstance(step, asyncio.Future) else step

    async def aclose(self):
        self.stop()

    close = aclose


class AsyncManagedStream(AsyncStream):
    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        self.exited = exc
        self.stop()


def generator(listener, *steps):
    yield from Stream(listener, *steps)


async def async_generator(listener, *steps):
    async for step in AsyncStream(listener, *steps):
        yield step


SYNC = pytest.mark.parametrize("make", [generator, Stream, ManagedStream])
ASYNC = pytest.mark.parametrize("make", [async_generator, AsyncStream, AsyncManagedStream])


@pytest.fixture
def listener():
    return Listener()


@pytest.fixture
def quiet(caplog):
    """Fails the test if anything at all was logged."""
    with caplog.at_level(logging.DEBUG, logger="opentelemetry"), caplog.at_level(logging.WARNING):
        yield
    assert not caplog.records


def forever():
    return asyncio.get_running_loop().create_future()


async def settle():
    """Give finalizers of async generators their turns."""
    for _ in range(5):
        await asyncio.sleep(0)


class TestSyncOutcomes:
    @SYNC
    def test_end(self, make, listener):
        """A stream that is read to its end is ok; items come unchanged and in order."""
        items = [ROLE, TEXT, object(), None]

        got = list(stream(make(listener, *items), listener))

        assert all(a is b for a, b in zip(items, got, strict=True))
        assert (listener.outcome, listener.summary.chunks) == ("ok", 4)

    @SYNC
    def test_empty(self, make, listener):
        """A stream without items is ok and has no firsts."""
        assert list(stream(make(listener, 5), listener)) == []
        assert listener.told == [("finished", listener.summary)]
        assert (listener.outcome, listener.summary.await_ns) == ("ok", 5)

    @SYNC
    @pytest.mark.parametrize(
        ("error", "outcome"),
        [
            (ValueError("boom"), "error"),
            (KeyboardInterrupt(), "cancelled"),
            (SystemExit(2), "cancelled"),
            (BaseException(), "error"),
        ],
    )
    def test_error(self, make, listener, error, outcome):
        """What a pull raises reaches the caller as the same object with nothing attached."""
        traced = stream(make(listener, TEXT, 7, error), listener)
        next(traced)
        with pytest.raises(type(error)) as caught:
            next(traced)

        assert caught.value is error
        assert error.__context__ is None
        assert error.__cause__ is None
        assert (listener.outcome, listener.summary.await_ns, listener.summary.chunks) == (outcome, 7, 1)

    @SYNC
    def test_break(self, make, listener, quiet):
        """Leaving the loop drops the stream, which ends it as abandoned at once."""
        for _ in stream(make(listener, TEXT, TEXT), listener):
            listener.now += 3
            break

        assert (listener.outcome, listener.summary.chunks) == ("abandoned", 1)
        assert (listener.summary.consume_ns, listener.summary.ended_ns) == (3, 3)

    @SYNC
    def test_error_of_the_consumer(self, make, listener):
        """An exception of the caller's own abandons the stream: the stream did not fail."""
        error = ValueError()
        with pytest.raises(ValueError) as caught:  # noqa: PT012 - the loop is the subject
            for _ in stream(make(listener, TEXT, TEXT), listener):
                raise error

        assert caught.value is error
        error.__traceback__ = caught = None
        gc.collect()
        assert listener.outcome == "abandoned"

    @SYNC
    def test_close(self, make, listener):
        """Closing before the end abandons, once, and closes the wrapped stream."""
        source = make(listener, TEXT, TEXT)
        traced = stream(source, listener)
        next(traced)
        traced.close()
        assert listener.outcome == "abandoned"
        traced.close()
        assert list(traced) == []
        del traced

        assert listener.outcome == "abandoned"
        assert getattr(source, "closed", 2) == 2

    @SYNC
    def test_close_after_the_end(self, make, listener):
        """Closing a stream that has ended is the wrapped method itself and changes nothing."""
        traced = stream(make(listener, TEXT), listener)
        list(traced)
        traced.close()

        assert listener.outcome == "ok"

    @SYNC
    def test_dropped(self, make, listener, quiet):
        """A stream that is never read ends when it is dropped."""
        traced = stream(make(listener, TEXT), listener)
        assert listener.open
        del traced

        assert (listener.outcome, listener.summary.chunks, listener.summary.await_ns) == ("abandoned", 0, 0)

    @SYNC
    def test_slow_consumer(self, make, listener):
        """The consumer's pauses are its own time, and long ones are told as they end."""
        traced = stream(make(listener, 30 * MS, TEXT, 30 * MS, TEXT, 30 * MS, TEXT), listener)
        told_during = []
        for _ in traced:
            told_during.append(len([event for event in listener.told if event[0] == "pause"]))
            listener.now += 200 * MS

        assert (listener.summary.await_ns, listener.summary.consume_ns) == (90 * MS, 600 * MS)
        assert told_during == [0, 1, 2]
        pauses = tuple((start, end) for name, *(start, end) in [e for e in listener.told if e[0] == "pause"])
        assert (
            pauses
            == listener.summary.pauses
            == ((30 * MS, 230 * MS), (260 * MS, 460 * MS), (490 * MS, 690 * MS))
        )

    def test_throw(self, listener):
        """An exception thrown into a generator comes out of it as it went in, and ends the stream."""
        traced = stream(generator(listener, TEXT, TEXT), listener)
        next(traced)
        error = ValueError()
        with pytest.raises(ValueError) as caught:
            traced.throw(error)

        assert caught.value is error
        assert listener.outcome == "error"

    def test_send(self, listener):
        """Values reach a generator, its items count, and its return value comes back."""

        def echo():
            got = yield "first"
            listener.now += 4
            got = yield got
            return got

        def outer():
            traced = stream(echo(), listener)
            return (yield from traced)

        driver = outer()
        assert (next(driver), driver.send("second")) == ("first", "second")
        with pytest.raises(StopIteration) as end:
            driver.send("last")

        assert end.value.value == "last"
        assert (listener.outcome, listener.summary.chunks, listener.summary.await_ns) == ("ok", 2, 4)

    @pytest.mark.parametrize(
        ("error", "outcome"),
        [(None, "abandoned"), (ValueError(), "abandoned"), (KeyboardInterrupt(), "cancelled")],
    )
    def test_exit(self, listener, error, outcome):
        """Leaving the block before the end abandons the stream, or cancels it if that is why."""
        source = ManagedStream(listener, TEXT, TEXT)
        with contextlib.suppress(ValueError, KeyboardInterrupt), stream(source, listener) as traced:
            next(traced)
            if error is not None:
                raise error

        assert (listener.outcome, source.closed, source.exited[1]) == (outcome, 1, error)

    def test_exit_after_the_end(self, listener):
        """Leaving the block after the end changes nothing."""
        with stream(ManagedStream(listener, TEXT), listener) as traced:
            list(traced)

        assert listener.outcome == "ok"


class TestAsyncOutcomes:
    @ASYNC
    async def test_end(self, make, listener):
        """A stream that is read to its end is ok; items come unchanged and in order."""
        items = [ROLE, TEXT, object(), None]

        got = [item async for item in stream(make(listener, *items), listener)]

        assert all(a is b for a, b in zip(items, got, strict=True))
        assert (listener.outcome, listener.summary.chunks) == ("ok", 4)

    @ASYNC
    async def test_empty(self, make, listener):
        """A stream without items is ok and has no firsts."""
        assert [item async for item in stream(make(listener, 5), listener)] == []
        assert listener.told == [("finished", listener.summary)]
        assert (listener.outcome, listener.summary.await_ns) == ("ok", 5)

    @ASYNC
    @pytest.mark.parametrize(
        ("error", "outcome"),
        [(ValueError("boom"), "error"), (asyncio.CancelledError(), "cancelled"), (BaseException(), "error")],
    )
    async def test_error(self, make, listener, error, outcome):
        """What a pull raises reaches the caller as the same object with nothing attached."""
        traced = stream(make(listener, TEXT, 7, error), listener)
        await anext(traced)
        with pytest.raises(type(error)) as caught:
            await anext(traced)

        assert caught.value is error
        assert error.__context__ is None
        assert error.__cause__ is None
        assert (listener.outcome, listener.summary.await_ns, listener.summary.chunks) == (outcome, 7, 1)

    @pytest.mark.parametrize("make", [async_generator, AsyncStream, AsyncManagedStream])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    def test_interrupt(self, make, listener, error):
        """An interrupt inside a pull stops the loop as it would, and the stream is cancelled."""

        async def consume():
            async for _ in stream(make(listener, TEXT, error()), listener):
                pass

        with pytest.raises(error):
            asyncio.run(consume())

        assert listener.outcome == "cancelled"

    @ASYNC
    async def test_break(self, make, listener, quiet):
        """Leaving the loop drops the stream, which ends it as abandoned at once."""
        async for _ in stream(make(listener, TEXT, TEXT), listener):
            listener.now += 3
            break

        assert (listener.outcome, listener.summary.chunks) == ("abandoned", 1)
        assert (listener.summary.consume_ns, listener.summary.ended_ns) == (3, 3)
        await settle()

    @ASYNC
    async def test_close(self, make, listener):
        """Closing before the end abandons once the close was awaited, and closes the wrapped stream."""
        traced = stream(make(listener, TEXT, TEXT), listener)
        await anext(traced)
        closing = traced.aclose()
        assert listener.open
        await closing
        await traced.aclose()

        assert listener.outcome == "abandoned"
        assert [item async for item in traced] == []

    async def test_close_is_the_providers_time(self, listener):
        """The time of an async close counts as awaited."""

        class Slow(AsyncStream):
            async def aclose(self):
                self.listener.now += 11

        traced = stream(Slow(listener, 4, TEXT), listener)
        await anext(traced)
        listener.now += 2
        await traced.aclose()

        assert (listener.summary.await_ns, listener.summary.consume_ns) == (15, 2)

    @pytest.mark.parametrize("make", [AsyncStream, AsyncManagedStream])
    @pytest.mark.parametrize("breaks", [False, True])
    async def test_close_from_another_task(self, make, listener, quiet, breaks):
        """A close while a pull is waiting abandons, whether the pull then ends normally or by an error."""
        waiting = forever()

        class Closing(make):
            async def __anext__(self):
                if (item := await super().__anext__()) is None:
                    raise StopAsyncIteration
                return item

            async def aclose(self):
                self.listener.now += 5
                if breaks:
                    waiting.set_exception(ConnectionError())
                else:
                    waiting.set_result(None)
                await settle()

        traced = stream(Closing(listener, TEXT, waiting), listener)
        pull = asyncio.create_task(self.drain(traced))
        await settle()
        await traced.aclose()
        await asyncio.wait([pull])

        assert (listener.outcome, listener.summary.chunks, listener.summary.await_ns) == ("abandoned", 1, 5)
        assert isinstance(pull.exception(), ConnectionError if breaks else type(None))

    async def test_refused_close_ends_nothing(self, listener, quiet):
        """An async generator refuses a close during a pull: its error comes through, the stream goes on."""
        waiting = forever()
        traced = stream(async_generator(listener, waiting, TEXT), listener)
        pull = asyncio.create_task(self.drain(traced))
        await settle()
        with pytest.raises(RuntimeError, match="already running"):
            await traced.aclose()
        assert listener.open
        waiting.set_result(TEXT)
        await pull

        assert (listener.outcome, listener.summary.chunks) == ("ok", 2)

    @staticmethod
    async def drain(traced):
        async for _ in traced:
            pass

    @ASYNC
    async def test_cancel(self, make, listener, quiet):
        """Cancelling the task in a pull cancels the stream; the pending wait counts, the task is cancelled."""
        traced = stream(make(listener, 10, TEXT, forever()), listener)
        task = asyncio.create_task(self.drain(traced))
        await settle()
        listener.now += 5
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await task

        assert (listener.outcome, listener.summary.await_ns, listener.summary.chunks) == ("cancelled", 15, 1)

    @ASYNC
    async def test_timeout(self, make, listener):
        """A time limit around a pull works as without the proxy."""
        traced = stream(make(listener, forever()), listener)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(traced)

        assert listener.outcome == "cancelled"

    @ASYNC
    async def test_closed_pull(self, make, listener):
        """A pull whose coroutine is closed, as by a loop that shuts down, abandons the stream."""
        pull = stream(make(listener, forever()), listener).__anext__()
        pull.send(None)
        pull.close()

        assert listener.outcome == "abandoned"

    @ASYNC
    async def test_dropped(self, make, listener, quiet):
        """A stream that is never read ends when it is dropped."""
        traced = stream(make(listener, TEXT), listener)
        assert listener.open
        del traced

        assert (listener.outcome, listener.summary.chunks, listener.summary.await_ns) == ("abandoned", 0, 0)

    @ASYNC
    async def test_slow_consumer(self, make, listener):
        """The consumer's pauses are its own time, and long ones are told as they end."""
        async for _ in stream(make(listener, 30 * MS, TEXT, 30 * MS, TEXT), listener):
            listener.now += 200 * MS

        assert (listener.summary.await_ns, listener.summary.consume_ns) == (60 * MS, 400 * MS)
        assert listener.summary.pauses == ((30 * MS, 230 * MS), (260 * MS, 460 * MS))

    async def test_athrow_and_asend(self, listener):
        """Values and exceptions reach an async generator and come out as they went in."""

        async def echo():
            got = yield "first"
            yield got

        traced = stream(echo(), listener)
        first = await anext(traced)
        second = await traced.asend("second")  # codespell:ignore asend
        assert (first, second) == ("first", "second")
        error = ValueError()
        with pytest.raises(ValueError) as caught:
            await traced.athrow(error)

        assert caught.value is error
        assert (listener.outcome, listener.summary.chunks) == ("error", 2)

    @pytest.mark.parametrize(
        ("error", "outcome"),
        [(None, "abandoned"), (ValueError(), "abandoned"), (asyncio.CancelledError(), "cancelled")],
    )
    async def test_exit(self, listener, error, outcome):
        """Leaving the block before the end abandons the stream, or cancels it if that is why."""
        source = AsyncManagedStream(listener, TEXT, TEXT)
        with contextlib.suppress(ValueError, asyncio.CancelledError):
            async with stream(source, listener) as traced:
                await anext(traced)
                if error is not None:
                    raise error

        assert (listener.outcome, source.closed, source.exited[1]) == (outcome, 1, error)


class TestMarksAndTimes:
    def test_role_chunk_is_not_the_first_token(self, listener):
        """R11: a role-only chunk at 10 ms and content at 400 ms are told apart."""
        list(stream(Stream(listener, 10 * MS, ROLE, 390 * MS, TEXT), listener))

        assert listener.told[:-1] == [
            ("first_chunk", 10 * MS),
            ("first_token", 400 * MS),
            ("first_visible", 400 * MS),
        ]

    def test_tool_fragment_is_the_first_token(self, listener):
        """R24: with tool calls only, the first fragment is the first token and nothing is visible."""
        list(stream(Stream(listener, 10, ROLE, 20, TOOL, 30, TOOL), listener))

        assert (listener.summary.first_token_ns, listener.summary.first_visible_ns) == (30, None)

    async def test_consumer_work_is_not_model_time(self, listener):
        """R12: five chunks 50 ms apart from 200 ms on, 100 ms of work after each."""
        sent = [(200 + 50 * i) * MS for i in range(5)]

        async def provider():
            for at in sent:
                listener.now = max(listener.now, at)
                yield TEXT

        async for _ in stream(provider(), listener):
            listener.now += 100 * MS

        summary = listener.summary
        assert summary.ended_ns - summary.started_ns == 700 * MS
        assert (summary.await_ns, summary.consume_ns) == (200 * MS, 500 * MS)
        assert summary.first_token_ns == 200 * MS

    def test_telling_of_a_pause_is_not_model_time(self, listener):
        """A listener that takes 5 ms to note a pause; the provider takes 30 ms for each item."""
        listener.pause = lambda *_: setattr(listener, "now", listener.now + 5 * MS)
        for _ in stream(Stream(listener, 30 * MS, TEXT, 30 * MS, TEXT), listener):
            listener.now += 100 * MS

        assert (listener.summary.await_ns, listener.summary.consume_ns) == (60 * MS, 210 * MS)

    async def test_a_stream_lasts_as_long_as_it_flows(self, listener):
        """A stream of 10 items 100 ms apart lasts a second; making the proxy is not its end."""
        traced = stream(async_generator(listener, *[100 * MS, TEXT] * 10), listener)
        assert listener.open
        async for _ in traced:
            pass

        assert listener.summary.ended_ns - listener.summary.started_ns == 1000 * MS

    @given(
        st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), max_size=20),
        st.integers(0, 10**18),
        st.booleans(),
        st.booleans(),
    )
    def test_await_and_consume_add_up(self, steps, start, is_async, leave_early):
        """Awaited plus consumed time is exactly the time from the first pull to the end."""
        listener = Listener(start)
        script = [part for wait, _ in steps for part in (wait, TEXT)]
        work = [done for _, done in steps]

        async def consume():
            source = stream(AsyncStream(listener, *script), listener)
            async for _ in source:
                listener.now += work.pop(0)
                if leave_early:
                    break

        if is_async:
            with contextlib.suppress(StopIteration):
                consume().send(None)
        else:
            for _ in stream(Stream(listener, *script), listener):
                listener.now += work.pop(0)
                if leave_early:
                    break

        summary = listener.summary
        read = steps[:1] if leave_early else steps
        assert summary.await_ns == sum(wait for wait, _ in read)
        assert summary.consume_ns == sum(done for _, done in read)
        assert summary.await_ns + summary.consume_ns == summary.ended_ns - summary.started_ns
        told = tuple(e[1:] for e in listener.told if e[0] == "pause")
        assert summary.pauses[: len(told)] == told
        assert len(summary.pauses) - len(told) <= leave_early  # the pause in which it was left

    def test_streams_do_not_share_sums(self):
        """Two streams that are read in turns have sums of their own."""
        first, second = Listener(), Listener()
        pairs = zip(
            stream(Stream(first, 5, TEXT, 5, TEXT), first),
            stream(Stream(second, 7, TEXT, 7, TEXT), second),
            strict=True,
        )
        list(pairs)

        assert (first.summary.await_ns, second.summary.await_ns) == (10, 14)

    def test_real_clock(self):
        """Without a listener the monotonic clock measures, and summary tells what it says."""
        traced = stream(iter(["a", "b"]))
        before = time.perf_counter_ns()
        next(traced)
        assert traced.summary.outcome == "incomplete"
        list(traced)

        assert before <= traced.summary.started_ns <= traced.summary.ended_ns <= time.perf_counter_ns()
        assert (traced.summary.outcome, traced.summary.chunks) == ("ok", 2)
        assert traced.summary is traced.summary

    def test_a_bare_clock_function_serves(self):
        """now_ns may be a plain function kept as an attribute: no call of ours is then between."""

        class Clocked(Listener):
            now_ns = staticmethod(time.perf_counter_ns)

        meter = stream([], Clocked()).turntrace_meter
        assert meter.clock is time.perf_counter_ns

    def test_finish_from_outside(self, listener):
        """The measurement can be ended while the stream lives on; of what follows nothing is told."""
        source = Stream(listener, ROLE, TEXT, TEXT)
        traced = stream(source, listener)
        next(traced)
        traced.turntrace_meter.finish("abandoned")
        next(traced)
        listener.now += PAUSE_NS

        assert (next(traced), source.closed) == (TEXT, 0)
        assert (listener.outcome, listener.summary.chunks) == ("abandoned", 1)
        assert listener.told[-1] == ("finished", listener.summary)

    def test_threads_may_take_turns(self, listener):
        """A server that pulls each item in another thread of a pool gets the same sums."""
        traced = stream(Stream(listener, 5, TEXT, 5, TEXT, 5), listener)
        for _ in range(3):
            puller = threading.Thread(target=next, args=(traced, None))
            puller.start()
            puller.join()

        assert (listener.outcome, listener.summary.await_ns) == ("ok", 15)


class TestNesting:
    @pytest.fixture
    def spans(self):
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        self.tracer = provider.get_tracer("test")
        yield exporter
        provider.shutdown()

    def traced(self, name, source):
        """``source`` with a span that lives as long as the stream."""
        tracer = self.tracer

        class SpanListener(Listener):
            span = tracer.start_span(name)

            def finished(self, summary):
                super().finished(summary)
                self.span.set_attribute("outcome", summary.outcome)
                self.span.end()

        return stream(source, SpanListener())

    async def level(self, depth):
        if depth == 0:
            for number in range(10):
                await asyncio.sleep(0)
                yield number
        else:
            async for item in self.traced(f"level {depth}", self.level(depth - 1)):
                yield item

    async def leave(self, how):
        async for item in self.traced("level 3", self.level(2)):
            if item == 2:
                if how == "break":
                    break
                if how == "return":
                    return
                if how == "raise":
                    raise LookupError
                asyncio.current_task().cancel()

    @pytest.mark.parametrize("debug", [False, True])
    def test_r18_three_nested_generators_left_in_four_ways(self, spans, quiet, debug):
        """R14, R18: twelve spans end once each, nothing is logged, the next span's parent is right."""
        trouble, parents = [], []

        async def main():
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: trouble.append(context))
            for how in ("break", "return", "raise", "cancel"):
                with self.tracer.start_as_current_span("caller") as caller:
                    await asyncio.wait([task := asyncio.create_task(self.leave(how))])
                    assert isinstance(task.cancelled() or task.exception(), bool | LookupError | None)
                    await settle()
                    with self.tracer.start_as_current_span("next") as following:
                        parents.append(following.parent.span_id == caller.context.span_id)
                del task
                gc.collect()
                await settle()

        asyncio.run(main(), debug=debug)

        levels = [span for span in spans.get_finished_spans() if span.name.startswith("level")]
        assert len(levels) == len({span.context.span_id for span in levels}) == 12
        outer = [span.attributes["outcome"] for span in levels if span.name == "level 3"]
        assert outer == ["abandoned", "abandoned", "abandoned", "cancelled"]
        assert (trouble, parents) == ([], [True] * 4)
        assert trace.get_current_span() is trace.INVALID_SPAN

    def test_traced_twice(self):
        """A proxy can be wrapped again; both measure."""
        outer, inner = Listener(), Listener()

        assert list(stream(stream(Stream(inner, TEXT), inner), outer)) == [TEXT]
        assert (outer.outcome, inner.outcome) == ("ok", "ok")


class TestAbandonment:
    COUNT = 10_000

    def abandon(self, read):
        """Run ``read`` for each of many listeners; the memory that is left afterwards."""
        listeners = [Listener() for _ in range(self.COUNT)]
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            for listener in listeners:
                read(listener)
            ended = [listener.outcome for listener in listeners]
            for listener in listeners:
                listener.told.clear()
            return ended, tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
            gc.enable()

    @SYNC
    def test_sync(self, make):
        """Ten thousand abandoned streams all end, without a collection, and leave nothing behind."""
        ended, left_bytes = self.abandon(lambda listener: next(stream(make(listener, TEXT, TEXT), listener)))

        assert ended == ["abandoned"] * self.COUNT
        assert left_bytes < 2_000_000

    @pytest.mark.parametrize("make", [AsyncStream, AsyncManagedStream])
    def test_async(self, make):
        """The same for async streams, pulled and never awaited to their end."""

        def read(listener):
            with contextlib.suppress(StopIteration):
                stream(make(listener, TEXT, TEXT), listener).__anext__().send(None)

        ended, left_bytes = self.abandon(read)

        assert ended == ["abandoned"] * self.COUNT
        assert left_bytes < 2_000_000

    async def test_async_generators(self, quiet):
        """Async generators too: the proxy ends at once, the loop closes the generator behind it."""
        listeners = [Listener() for _ in range(1000)]
        for listener in listeners:
            async for _ in stream(async_generator(listener, TEXT, TEXT), listener):
                break
        await settle()

        assert [listener.outcome for listener in listeners] == ["abandoned"] * 1000

    def test_cycle(self, listener, quiet):
        """A stream in a reference cycle ends when the collector finds it."""
        holder = {"stream": stream(Stream(listener, TEXT), listener)}
        holder["self"] = holder
        del holder
        assert listener.open
        gc.collect()

        assert listener.outcome == "abandoned"

    def test_other_thread(self, listener, quiet):
        """The last reference may go in any thread."""
        holder = [stream(Stream(listener, TEXT), listener)]
        dropper = threading.Thread(target=holder.clear)
        dropper.start()
        dropper.join()

        assert listener.outcome == "abandoned"

    def test_once_among_threads(self):
        """Two threads that end a stream at the same time end it once."""
        gate = threading.Barrier(2)

        class Gated(Listener):
            def finished(self, summary):
                with contextlib.suppress(threading.BrokenBarrierError):
                    gate.wait(0.2)
                super().finished(summary)

        listener = Gated()
        meter = stream(Stream(listener, TEXT), listener).turntrace_meter
        enders = [threading.Thread(target=meter.finish, args=("ok",)) for _ in range(2)]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()

        assert listener.outcome == "ok"

    def test_interpreter_exit(self):
        """Streams that live until the interpreter ends make no noise, in globals and in cycles."""
        script = (
            "import sys, turntrace.instrument.streams as s\n"
            "class L:\n"
            "    def now_ns(self): return 1\n"
            "    def finished(self, summary): print(summary.outcome, flush=True)\n"
            "async def agen(): yield 1\n"
            "kept = s.stream(iter('ab'), L()); next(kept)\n"
            "ring = [s.stream(agen(), L())]; ring.append(ring)\n"
            "sys.modules['keeper'] = s.stream(iter('ab'))\n"
        )
        done = subprocess.run([sys.executable, "-X", "dev", "-c", script], capture_output=True, text=True)

        assert (done.returncode, done.stderr) == (0, "")
        assert set(done.stdout.split()) <= {"abandoned"}


class TestListenerErrors:
    @pytest.mark.parametrize("event", ["first_chunk", "first_token", "first_visible", "pause", "finished"])
    def test_errors_of_a_listener_are_counted_and_kept(self, event, quiet):
        """Whatever a listener raises, the caller gets the items, the error is counted, the rest is told."""

        class Failing(Listener):
            def fail(self, *_):
                raise ZeroDivisionError

        setattr(Failing, event, Failing.fail)
        listener = Failing()
        counted = LISTENER_ERRORS["ZeroDivisionError"]

        got = []
        for item in stream(Stream(listener, TEXT, TEXT), listener):
            listener.now += PAUSE_NS
            got.append(item)

        assert got == [TEXT, TEXT]
        assert LISTENER_ERRORS["ZeroDivisionError"] > counted
        told = {entry[0] for entry in listener.told}
        assert told == {"first_chunk", "first_token", "first_visible", "pause", "finished"} - {event}

    def test_error_of_the_stream_wins(self):
        """A listener that fails while the stream's error passes leaves no trace on that error."""

        class Failing(Listener):
            def finished(self, summary):
                raise ZeroDivisionError

        listener, error = Failing(), ValueError()
        with pytest.raises(ValueError) as caught:
            next(stream(Stream(listener, error), listener))

        assert caught.value is error
        assert error.__context__ is None

    def test_half_built(self):
        """A listener without a clock is the programmer's error, and the half-built meter stays silent."""
        with pytest.raises(AttributeError, match="now_ns"):
            Meter(object())
        gc.collect()


class TestUnchanged:
    def test_attributes(self, listener):
        """Reading, setting and listing attributes, and calling methods, reach the wrapped object."""
        source = Stream(listener, TEXT)
        source.response = object()
        source.get_final_message = lambda: "final"
        traced = stream(source, listener)

        assert traced.response is source.response
        assert traced.get_final_message() == "final"
        traced.note = 1
        assert (source.note, dir(traced)) == (1, dir(source))
        with pytest.raises(AttributeError, match="'Stream' object has no attribute 'missing'"):
            traced.missing  # noqa: B018 - the read is the subject

    def test_class(self, listener):
        """isinstance sees the wrapped object's class, as do inspect and the abstract classes."""
        assert isinstance(stream(Stream(listener)), Stream)
        assert isinstance(stream(Stream(listener)), TracedStream)
        assert inspect.isgenerator(stream(generator(listener)))
        assert inspect.isasyncgen(traced := stream(async_generator(listener)))
        assert isinstance(traced, TracedAsyncStream)
        assert isinstance(traced, AsyncIterator)
        assert not isinstance(traced, Iterator)
        assert not inspect.isawaitable(traced)

    def test_own_summary_wins(self, listener):
        """A stream that has a summary itself keeps it; ours is then at the meter."""
        source = Stream(listener, TEXT)
        source.summary = "theirs"
        traced = stream(source, listener)
        list(traced)

        assert traced.summary == "theirs"
        assert traced.turntrace_meter.summary().chunks == 1

    @pytest.mark.parametrize("source", [[], [1, 2], (1,), "abc", range(3)], ids=repr)
    def test_containers(self, source):
        """A container keeps its length and truth, and can be read again from the start."""
        traced = stream(source)

        assert (bool(traced), len(traced)) == (bool(source), len(source))
        assert list(traced) == list(traced) == list(source)

    def test_what_is_not_there_is_not_there(self, listener):
        """A method that the wrapped object lacks is missing, and misuse raises what it always raised."""
        traced = stream(Stream(listener))

        assert not hasattr(traced, "send")
        assert not hasattr(traced, "aclose")
        with pytest.raises(TypeError, match="has no len"):
            len(traced)
        with pytest.raises(TypeError, match="'int' object is not iterable"):
            list(stream(7))
        with pytest.raises(TypeError, match="'list' object is not an iterator"):
            next(stream([]))
        with pytest.raises(AttributeError, match="__enter__"), traced:
            pass

    def test_close_keeps_its_face(self, listener):
        """The measured close has the name, the arguments, the result and the errors of the wrapped one."""

        class Closing(Stream):
            def close(self, *, code):
                """Close it."""
                if code:
                    raise OSError(code)
                return "closed"

        traced = stream(Closing(listener, TEXT), listener)
        assert (traced.close.__name__, traced.close.__doc__) == ("close", "Close it.")
        with pytest.raises(OSError, match="5"):
            traced.close(code=5)
        assert (traced.close(code=0), listener.outcome) == ("closed", "abandoned")

    def test_iterable_whose_iterator_is_another_object(self, listener):
        """A stream that iterates through a generator of its own can be left and read on."""

        class Sdk(Stream):
            def __iter__(self):
                while self.steps:
                    yield self.take(None)

        traced = stream(Sdk(listener, 1, 2, TEXT, ROLE, TOOL), listener)
        for item in traced:
            assert item is TEXT
            break
        assert listener.open
        assert list(traced) == [ROLE, TOOL]
        assert (listener.outcome, listener.summary.chunks) == ("ok", 3)

    async def test_async_iterable_whose_iterator_is_another_object(self, listener):
        """The same for async streams, and a close of the inner iterator ends them."""

        class Sdk(AsyncStream):
            async def __aiter__(self):
                while self.steps:
                    yield self.take(None)

        traced = stream(Sdk(listener, TEXT, ROLE), listener)
        inner = aiter(traced)
        assert await anext(inner) is TEXT
        await inner.aclose()
        assert listener.outcome == "abandoned"

    async def test_either_way(self, listener):
        """An object that can be iterated either way can be as a proxy, and is measured both ways."""

        class Both(Stream):
            __aiter__ = AsyncStream.__aiter__
            __anext__ = AsyncStream.__anext__

        traced = stream(Both(listener, TEXT, ROLE, TOOL), listener)
        assert next(traced) is TEXT
        assert await anext(traced) is ROLE
        assert [item async for item in traced] == [TOOL]
        assert (listener.outcome, listener.summary.chunks) == ("ok", 3)


class Opening:
    """Opens on entering, as the stream helpers of SDKs do."""

    swallows = False

    def __init__(self, brings, listener):
        self.brings = brings
        self.listener = listener
        self.exited = False

    def enter(self):
        self.listener.now += 6
        if isinstance(self.brings, Exception):
            raise self.brings
        return self.brings


class Manager(Opening):
    def __enter__(self):
        return self.enter()

    def __exit__(self, *exc):
        self.exited = True
        return self.swallows


class AsyncManager(Opening):
    async def __aenter__(self):
        return self.enter()

    async def __aexit__(self, *exc):
        self.exited = True


class TestManagers:
    def test_entered_stream_is_measured(self, listener):
        """What entering brings is measured from the entering on, and keeps its own attributes."""
        source = Stream(listener, 4, TEXT)
        manager = Manager(source, listener)
        with stream(manager, listener) as traced:
            assert isinstance(traced, TracedStream)
            assert traced.turntrace_source is source
            assert list(traced) == [TEXT]

        assert manager.exited
        assert (listener.outcome, listener.summary.await_ns, listener.summary.chunks) == ("ok", 10, 1)

    def test_exit_keeps_its_say(self, listener):
        """A manager that swallows an exception still does, and the stream is abandoned."""
        manager = Manager(Stream(listener, TEXT), listener)
        manager.swallows = True
        with stream(manager, listener):
            raise ValueError

        assert listener.outcome == "abandoned"

    def test_failed_enter(self, listener):
        """A manager that cannot be entered raises its own error, and the stream ended by it."""
        error = ConnectionError()
        with pytest.raises(ConnectionError) as caught, stream(Manager(error, listener), listener):
            pass

        assert caught.value is error
        assert (listener.outcome, listener.summary.await_ns) == ("error", 6)

    @pytest.mark.parametrize("brings", [7, "text", ["a", "list"], None])
    def test_no_stream_is_left_alone(self, listener, brings):
        """What is no stream comes out of the manager as it is."""
        with stream(Manager(brings, listener), listener) as entered:
            assert entered is brings

        assert listener.outcome == "abandoned"

    async def test_async(self, listener):
        """Async managers are the same; the stream may be left open and is ended by the exit."""
        manager = AsyncManager(AsyncStream(listener, 4, TEXT, TEXT), listener)
        async with stream(manager, listener) as traced:
            assert await anext(traced) is TEXT
            assert listener.open

        assert (listener.outcome, listener.summary.await_ns) == ("abandoned", 10)


class TestAwaitables:
    async def open(self, brings):
        await asyncio.sleep(0)
        if isinstance(brings, Exception):
            raise brings
        return brings

    async def test_first_pull_awaits(self, listener):
        """A call that was not awaited is awaited by the first pull, and its time counts."""
        source = AsyncStream(listener, 4, TEXT, TEXT)

        async def call():
            listener.now += 6
            return source

        traced = stream(call(), listener)
        assert inspect.isawaitable(traced)
        got = [item async for item in traced]

        assert got == [TEXT, TEXT]
        assert (listener.outcome, listener.summary.await_ns, listener.summary.chunks) == ("ok", 10, 2)
        assert traced.steps is source.steps

    async def test_await(self, listener):
        """Awaiting the proxy brings a proxy of what the call brings."""
        source = AsyncStream(listener, TEXT, ROLE)
        traced = stream(self.open(source), listener)
        opened = await traced

        assert isinstance(opened, TracedAsyncStream)
        assert opened.turntrace_source is source
        assert await anext(opened) is TEXT
        assert [item async for item in traced] == [ROLE]
        assert listener.outcome == "ok"

    async def test_await_of_no_stream(self, listener):
        """An answer that is no stream comes out as it is."""
        answer = object()

        assert await stream(self.open(answer), listener) is answer
        assert listener.outcome == "abandoned"

    async def test_async_with(self, listener):
        """A call that was not awaited can be entered as what it brings."""
        source = AsyncManagedStream(listener, TEXT)
        async with stream(self.open(source), listener) as traced:
            assert [item async for item in traced] == [TEXT]

        assert (listener.outcome, source.closed) == ("ok", 1)

    async def test_awaitable_manager(self, listener):
        """An awaitable that is a context manager itself is entered as one."""
        source = AsyncStream(listener, TEXT)

        class Call(AsyncManager):
            def __await__(self):
                raise AssertionError

        async with stream(Call(source, listener), listener) as traced:
            assert [item async for item in traced] == [TEXT]

        assert listener.outcome == "ok"

    @pytest.mark.parametrize("how", ["pull", "await"])
    async def test_failed_call(self, listener, how):
        """A call that fails raises its own error and ends the stream."""
        error = ConnectionError()
        traced = stream(self.open(error), listener)
        with pytest.raises(ConnectionError) as caught:
            await (anext(traced) if how == "pull" else traced)

        assert caught.value is error
        assert listener.outcome == "error"

    async def test_future(self, listener):
        """A task is awaited, although futures have an __iter__."""
        task = asyncio.create_task(self.open(AsyncStream(listener, TEXT)))

        assert [item async for item in stream(task, listener)] == [TEXT]

    async def test_cancelled_call(self, listener):
        """Cancelling while the call is awaited cancels the stream."""
        traced = stream(forever(), listener)
        task = asyncio.create_task(anext(traced))
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert listener.outcome == "cancelled"

    async def test_never_awaited(self, listener):
        """A call that nobody awaits ends as abandoned, with Python's own warning and no other."""
        traced = stream(self.open(7), listener)
        with pytest.warns(RuntimeWarning, match="was never awaited"):
            del traced

        assert listener.outcome == "abandoned"
