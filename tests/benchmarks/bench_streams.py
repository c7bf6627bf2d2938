"""G10: what a timed stream adds to each chunk, in nanoseconds and against the least timed class.

Workload: 25 streams of 2,000 chunks that never suspend. The first chunk carries text, so that all first
marks are known from there on. The nanoseconds are of this machine; the ratio carries over: the least
class reads the clock twice, sums and counts (197 and 270 ns added where the goals, 220 and 300 ns, were
set), without pauses, marks, outcome or attributes. ``python tests/benchmarks/bench_streams.py`` prints all.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from measure import calibrated_ns, interleaved

__all__ = ["run"]

STREAMS = 25
CHUNKS = 2_000
ITEMS = [{"choices": [{"index": 0, "delta": {"content": "Hi"}}]}] * CHUNKS


class Stream:
    """The bare stream: a class that knows its place, as those of SDKs."""

    def __init__(self):
        self.place = 0

    def __iter__(self):
        return self

    def __next__(self):
        place = self.place
        if place == CHUNKS:
            raise StopIteration
        self.place = place + 1
        return ITEMS[place]


class AsyncStream:
    """The same, async."""

    def __init__(self):
        self.place = 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        place = self.place
        if place == CHUNKS:
            raise StopAsyncIteration
        self.place = place + 1
        return ITEMS[place]


class Least:
    """The least sync class that times its pulls."""

    __slots__ = ("advance", "await_ns", "chunks")

    def __init__(self):
        self.advance = Stream().__next__
        self.await_ns = self.chunks = 0

    def __iter__(self):
        return self

    def __next__(self):
        start_ns = time.perf_counter_ns()
        item = self.advance()
        self.await_ns += time.perf_counter_ns() - start_ns
        self.chunks += 1
        return item


class LeastAsync:
    """The same, async."""

    __slots__ = ("advance", "await_ns", "chunks")

    def __init__(self):
        self.advance = AsyncStream().__anext__
        self.await_ns = self.chunks = 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        start_ns = time.perf_counter_ns()
        item = await self.advance()
        self.await_ns += time.perf_counter_ns() - start_ns
        self.chunks += 1
        return item


async def _called():
    """A call that brings a stream, to be awaited by the first pull."""
    return AsyncStream()


def _read(make: Callable[[], object]) -> Callable[[], None]:
    def work() -> None:
        for _ in range(STREAMS):
            for _ in make():
                pass

    return work


def _read_async(make: Callable[[], object]) -> Callable[[], None]:
    async def read() -> None:
        for _ in range(STREAMS):
            async for _ in make():
                pass

    def work() -> None:
        try:
            read().send(None)
        except StopIteration:
            return
        raise AssertionError("a stream of the benchmark suspended")

    return work


def _work(variant: str) -> Callable[[], None]:
    from turntrace.instrument.streams import stream

    return {
        "sync": lambda: _read(Stream),
        "sync_least": lambda: _read(Least),
        "sync_timed": lambda: _read(lambda: stream(Stream())),
        "async": lambda: _read_async(AsyncStream),
        "async_least": lambda: _read_async(LeastAsync),
        "async_timed": lambda: _read_async(lambda: stream(AsyncStream())),
        "async_called": lambda: _read_async(lambda: stream(_called())),
    }[variant]()


VARIANTS = ("sync", "sync_least", "sync_timed", "async", "async_least", "async_timed", "async_called")


def run(rounds: int) -> list[tuple[str, str, float, float]]:
    """Goal id, what, figure and goal (thread CPU)."""
    ns = interleaved(Path(__file__), VARIANTS, rounds)
    added = {name: ns[name] - ns[name.partition("_")[0]] for name in VARIANTS}
    return [
        ("G10", "added to a sync chunk, ns", added["sync_timed"], 220),
        ("G10", "added to an async chunk, ns", added["async_timed"], 300),
        (
            "G10",
            "added to a sync chunk / by the least timed class",
            added["sync_timed"] / added["sync_least"],
            1.12,
        ),
        (
            "G10",
            "added to an async chunk / by the least timed class",
            added["async_timed"] / added["async_least"],
            1.11,
        ),
        ("-", "added to a chunk of a call that the first pull awaits, ns", added["async_called"], 0.0),
        ("-", "bare sync chunk, ns", ns["sync"], 0.0),
        ("-", "bare async chunk, ns", ns["async"], 0.0),
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work = _work(sys.argv[1])
        work()
        print(json.dumps(calibrated_ns(work, STREAMS * CHUNKS)))
    else:
        for goal, what, figure, bound in run(9):
            print(f"{goal:5} {what}: {figure:.2f}" + (f" (goal {bound:g})" if bound else ""))
