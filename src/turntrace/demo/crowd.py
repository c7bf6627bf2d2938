"""Hundreds of agents in one event loop: the asyncio example, and a test that turns never mix."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from http.client import parse_headers
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import turntrace as tt
from turntrace.demo.answer import Answer, RequestedCall
from turntrace.demo.chat_client import (
    DONE,
    MAX_RETRIES,
    PATH,
    RETRYABLE,
    ModelUnavailableError,
    StreamBrokenError,
    request_body,
    request_headers,
    retry_after_ms,
)
from turntrace.demo.scenario import MODEL
from turntrace.demo.sse import EventDecoder

__all__ = ["run_many"]

_MAX_REQUESTS: Final = 200
"""Requests with the model at once; the other turns wait in ``provider_queue``."""

_TOOL_S: Final = 0.002


async def run_many(base_url: str, turns: int) -> list[str]:
    """Return the answers of ``turns`` turns that run at the same time in this event loop.

    Turn ``n`` has the session id ``crowd-n``; every turn sends its own requests with that id inside.

    Raises:
        ExceptionGroup: A turn failed; the others are cancelled.
    """
    slots = asyncio.Semaphore(_MAX_REQUESTS)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_turn(base_url, f"crowd-{number}", slots)) for number in range(turns)]
    return [task.result() for task in tasks]


async def _turn(base_url: str, session_id: str, slots: asyncio.Semaphore) -> str:
    async with tt.turn("crowd-agent", session_id=session_id):
        messages: list[dict[str, Any]] = [{"role": "user", "content": session_id}]
        while True:
            with tt.phase("prompt_build"):
                request = request_body(MODEL, messages, ("search",))
            answer = await _ask(base_url, request, slots)
            messages.append(answer.message())
            if not answer.calls:
                return answer.text
            async with asyncio.TaskGroup() as group:
                results = [group.create_task(_run_tool(call)) for call in answer.calls.values()]
            messages.extend(result.result() for result in results)


async def _ask(base_url: str, request: bytes, slots: asyncio.Semaphore) -> Answer:
    async with tt.phase("provider_queue"):
        await slots.acquire()
    try:
        async with tt.generation(model=MODEL, provider="openai") as generation:
            answer = Answer()
            async with await _send(base_url, request) as response:
                async for chunk in generation.stream(response):
                    answer.add(chunk)
            generation.usage(**answer.tokens())
            return answer
    finally:
        slots.release()


async def _send(base_url: str, request: bytes) -> "_Response":
    retries = 0
    while True:
        async with tt.phase("provider_connect", attributes={"turntrace.attempt": retries + 1}) as attempt:
            response = await _connect(base_url, request, retries)
            attempt.set("http.response.status_code", response.status)
        if response.status == HTTPStatus.OK:
            return response
        response.close()
        if retries == MAX_RETRIES or response.status not in RETRYABLE:
            raise ModelUnavailableError(response.status)
        retries += 1
        tt.count("retry_count")
        async with tt.phase("retry_wait", attributes={"turntrace.reason": str(response.status)}):
            await asyncio.sleep(response.retry_after_ms / 1000)


async def _run_tool(call: RequestedCall) -> dict[str, str]:
    async with tt.tool(call.name, call_id=call.call_id):
        await asyncio.sleep(_TOOL_S)
    return {"role": "tool", "tool_call_id": call.call_id, "content": "done"}


class _Response:
    """A response whose headers are there: a status, and chunks to iterate over once."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        self._reader = reader
        self._writer = writer
        status_line, _, headers = head.partition(b"\r\n")
        self.status = int(status_line.split()[1])
        self.retry_after_ms = retry_after_ms(parse_headers(io.BytesIO(headers)))

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        decoder = EventDecoder()
        async for line in self._reader:
            event = decoder.feed(line)
            if event == DONE:
                return
            if event is not None:
                yield json.loads(event)
        raise StreamBrokenError

    def close(self) -> None:
        self._writer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


async def _connect(base_url: str, body: bytes, retries: int) -> _Response:
    """Open a connection, send the request and wait for the response headers.

    It speaks HTTP/1.0, in which a response ends with its connection and needs no decoding of its framing.
    """
    address = urlsplit(base_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        fields = request_headers(retries) | {"Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"POST {PATH} HTTP/1.0\r\n{head}\r\n".encode() + body)
        await writer.drain()
        return _Response(reader, writer, await reader.readuntil(b"\r\n\r\n"))
    except BaseException:
        writer.close()
        raise
