"""Witnesses of one stream that know nothing of turntrace: the server's log, the client's transport, its caller.

All read the machine's monotonic clock, the server in a process of its own. What lies between a chunk's sending
and its arrival, or between a request's sending and the moment the server's thread gets a processor, is the
machine's doing and no error of a measurement: on a busy machine it is milliseconds. So it is measured for each
request and taken into account. The wire says what a time is at least; the caller's own clock, read before and
after each item without any tracing, says what it is at most.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx2

__all__ = ["Apart", "AsyncWitness", "Call", "Witness"]

now_ns = time.perf_counter_ns
NS_PER_MS = 1_000_000


class Apart:
    """A model server in another process."""

    def __init__(self):
        path = Path(__file__).with_name("server_apart.py")
        self._process = subprocess.Popen(
            [sys.executable, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(path.parents[2])},
        )
        self.url = self._process.stdout.readline().strip()

    def script(self, session, steps):
        """What a session answers, from now on."""
        self._ask({"script": session, "steps": [asdict(step) for step in steps]})

    def wire(self, session):
        """What went over the wire in a session, once all that was scripted is done with."""
        return self._ask({"log": session})

    def _ask(self, command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.communicate(timeout=30)


@dataclass
class Call:
    """One request and its answer as they passed: moments of the monotonic clock, in ns.

    ``arrived`` has a moment and a number of bytes for each piece, ``over`` the moment at which the body ended
    or broke. The caller notes ``begun`` before it asks for a stream and ``opened`` when it has it, ``pulls``
    before and after each item, ``left`` and ``gone`` before and after somebody ends the stream early.
    """

    begun: int = 0
    sent: int = 0
    answered: int = 0
    opened: int = 0
    arrived: list = field(default_factory=list)
    over: int | None = None
    pulls: list = field(default_factory=list)
    left: int | None = None
    gone: int | None = None

    def check(self, exchange):
        """Hold the transport against the server's log: nothing comes before it was sent."""
        assert self.begun <= self.sent <= exchange["came_ns"] <= self.answered <= self.opened
        count = 0
        for sent_ns, size, _ in exchange["sent"]:
            count += size
            arrived_ns = self._arrival(count)
            assert arrived_ns is None or arrived_ns >= sent_ns or size == 0

    def first_token_ms(self, exchange):
        """The least and the most from the request to the first content; None when there was none.

        The least is the time by the server's log and what the two sides took to wake up.
        """
        count = 0
        for sent_ns, size, content in exchange["sent"]:
            count += size
            if content:
                logged_ns = sent_ns - exchange["came_ns"]
                woken_ns = exchange["came_ns"] - self.sent + self._arrival(count) - sent_ns
                seen_ns = next(given_ns for _, given_ns, item in self.pulls if item == "content")
                return (logged_ns + woken_ns) / NS_PER_MS, (seen_ns - self.begun) / NS_PER_MS
        return None

    def await_ms(self, *, with_request):
        """The least and the most that the caller waited: not before it asked, nor for what had come already."""
        least_ns = self.answered - self.sent if with_request else 0
        most_ns = self.opened - self.begun if with_request else 0
        for asked_ns, given_ns, item in self.pulls:
            least_ns += max(0, self._ready_ns(given_ns, item) - asked_ns)
            most_ns += (self.gone or given_ns if item is None else given_ns) - asked_ns
        return least_ns / NS_PER_MS, most_ns / NS_PER_MS

    def _arrival(self, byte):
        """When so many bytes had come."""
        count = 0
        for at_ns, size in self.arrived:
            count += size
            if count >= byte:
                return at_ns
        return None

    def _ready_ns(self, given_ns, item):
        """When all was there that a pull needed to end."""
        if item is None and self.left is not None:
            return self.left
        moments = [at_ns for at_ns, _ in self.arrived]
        if item is None and self.over is not None:
            moments.append(self.over)
        return max((at_ns for at_ns in moments if at_ns <= given_ns), default=0)


class _Calls:
    """What both transports note."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def begin(self):
        """The next request begins now."""
        self.calls.append(Call(begun=now_ns()))
        return self.calls[-1]


class Witness(_Calls, httpx2.HTTPTransport):
    """The transport of a sync client."""

    def handle_request(self, request):
        """Note when the request went and its answer came."""
        call = self.calls[-1]
        call.sent = now_ns()
        response = super().handle_request(request)
        call.answered = now_ns()
        response.stream = _Body(response.stream, call)
        return response


class AsyncWitness(_Calls, httpx2.AsyncHTTPTransport):
    """The transport of an async client."""

    async def handle_async_request(self, request):
        """As handle_request."""
        call = self.calls[-1]
        call.sent = now_ns()
        response = await super().handle_async_request(request)
        call.answered = now_ns()
        response.stream = _AsyncBody(response.stream, call)
        return response


class _Body(httpx2.SyncByteStream):
    def __init__(self, source, call):
        self._source, self._call = source, call

    def __iter__(self):
        try:
            for piece in self._source:
                self._call.arrived.append((now_ns(), len(piece)))
                yield piece
        finally:
            self._call.over = self._call.over or now_ns()

    def close(self):
        self._source.close()


class _AsyncBody(httpx2.AsyncByteStream):
    def __init__(self, source, call):
        self._source, self._call = source, call

    async def __aiter__(self):
        try:
            async for piece in self._source:
                self._call.arrived.append((now_ns(), len(piece)))
                yield piece
        finally:
            self._call.over = self._call.over or now_ns()

    async def aclose(self):
        await self._source.aclose()
