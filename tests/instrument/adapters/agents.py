"""An agent that reads streams, through an SDK or with nothing but an HTTP client and our wrapper.

It is written once, async. A sync client's agent never really waits, so that it needs no event loop.
"""

import gc
import json
from contextlib import ExitStack

import httpx2

import turntrace as tt
from instrument.adapters.clients import SAID, client_of, done
from instrument.adapters.wire import AsyncWitness, Witness, now_ns
from turntrace.instrument.adapters.leftovers import LEFTOVERS

__all__ = ["Agent", "BrokenAnswerError"]


class BrokenAnswerError(Exception):
    """The answer told of an error."""


class _Events:
    """What an agent without an SDK makes of the lines of an answer."""

    def __init__(self, response):
        self._response = response
        self._lines = (
            response.aiter_lines() if hasattr(response.stream, "__aiter__") else response.iter_lines()
        )

    def _event(self, line):
        data = line.removeprefix("data: ")
        if data == "[DONE]" or not line.startswith("data: "):
            return None
        event = json.loads(data)
        if "error" in event:
            raise BrokenAnswerError
        return event


class Events(_Events):
    """The events of a sync client's answer."""

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            event = self._event(next(self._lines))
            if event is not None:
                return event

    def close(self):
        """Close the connection; any thread may."""
        self._response.close()


class AsyncEvents(_Events):
    """The events of an async client's answer."""

    def __aiter__(self):
        return self

    async def __anext__(self):
        while True:
            event = self._event(await anext(self._lines))
            if event is not None:
                return event

    async def aclose(self):
        """Close the connection; any task may."""
        await self._response.aclose()


class Agent:
    """Opens streams and reads them; ``call`` is what it and its transport saw of the one that is open."""

    def __init__(self, url, way, session, *, is_async):
        self.is_async, self.way, self.is_pulling = is_async, way, False
        self.witness = AsyncWitness() if is_async else Witness()
        self._http = (httpx2.AsyncClient if is_async else httpx2.Client)(transport=self.witness)
        self._url = f"{url}/s/{session}/v1/chat/completions"
        if way != "wrapper":
            server = type("Server", (), {"url": url})
            self._client = client_of(server, way, is_async=is_async, session=session, http_client=self._http)
        self.stream = self.call = self._response = None
        self._blocks = ExitStack()

    async def open(self):
        """Ask for a stream."""
        self.call = self.witness.begin()
        if self.way == "wrapper":
            generation = self._blocks.enter_context(tt.generation(model="m-1"))
            request = self._http.build_request("POST", self._url, json={**SAID, "stream": True})
            self._response = await done(self._http.send(request, stream=True))
            self.stream = generation.stream((AsyncEvents if self.is_async else Events)(self._response))
        else:
            self.stream = await self._client.stream()
        self.call.opened = now_ns()

    async def pull(self):
        """The next item, as "content" or "other"; None at the end."""
        item, asked_ns = None, now_ns()
        self.is_pulling = True
        try:
            item = await anext(self.stream) if self.is_async else next(self.stream)
        except (StopIteration, StopAsyncIteration):
            return None
        finally:
            given_ns, self.is_pulling = now_ns(), False
            item = None if item is None else _kind(item)
            self.call.pulls.append((asked_ns, given_ns, item))
        return item

    async def pull_first_content(self):
        """Read until the model has said something."""
        while await self.pull() != "content":
            pass

    async def close(self):
        """Close the stream; from now on it is over."""
        self.call.left = now_ns()
        await done(getattr(self.stream, "aclose" if hasattr(self.stream, "aclose") else "close")())
        self.call.gone = now_ns()

    def drop(self):
        """Forget the stream, so that nothing but the garbage collector ends it."""
        self.stream = None
        gc.collect()
        assert LEFTOVERS.settle(5)

    async def finish(self):
        """Leave the block around the call, and tidy up what it left open."""
        self._blocks.close()
        if self._response is not None:
            await done(self._response.aclose() if self.is_async else self._response.close())
        self.stream = self._response = None

    async def stop(self):
        """Close the client."""
        await done(self._http.aclose() if self.is_async else self._http.close())


def _kind(item):
    event = item if isinstance(item, dict) else item.model_dump()
    if "choices" in event:
        is_content = bool(event["choices"] and event["choices"][0]["delta"].get("content"))
    else:
        is_content = event["type"] in {"content_block_delta", "response.output_text.delta"}
    return "content" if is_content else "other"
