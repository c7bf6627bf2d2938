"""A small coding agent that tells turntrace where its turn goes: the example to copy from.

Take every ``tt.`` line away and the same agent is left. Nothing here asks whether tracing is on.
"""

import contextvars
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final

import turntrace as tt
from turntrace.demo.answer import Answer, RequestedCall
from turntrace.demo.chat_client import (
    MAX_RETRIES,
    RETRYABLE,
    ChatResponse,
    ModelUnavailableError,
    connect,
    request_body,
)
from turntrace.demo.scenario import MODEL, SYSTEM_PROMPT, TASK
from turntrace.demo.tools import Workspace

__all__ = ["run_agent"]

_TOOLS: Final = ("search", "fetch", "read_file", "python", "edit_file")
_TOOL_SLOTS: Final = 2
_FULL_HISTORY: Final = 8
"""Messages from which on old tool results are shortened."""

_requests = threading.BoundedSemaphore(64)
"""How many requests of this process may be with the model at once."""


def run_agent(
    base_url: str,
    *,
    speed: float = 1.0,
    turn_name: str = "demo-agent",
    session_id: str = "demo",
    print_answer: bool = False,
) -> str:
    """Return the agent's answer to the demo task after one whole turn against ``base_url``.

    ``speed`` divides every pause of the agent and its tools.

    Raises:
        ModelUnavailableError: The server refused every attempt of a request.
        OSError: The server cannot be reached or broke the connection.
    """
    with tt.turn(turn_name, session_id=session_id):
        answer = _Agent(base_url, Workspace(speed=speed)).solve(TASK)
    if print_answer:
        sys.stdout.write(f"{answer}\n")
    return answer


class _Agent:
    """One conversation: ask, run the tools asked for, ask again, until the model asks for none."""

    def __init__(self, base_url: str, workspace: Workspace) -> None:
        self._base_url = base_url
        self._workspace = workspace
        self._tool_slots = threading.BoundedSemaphore(_TOOL_SLOTS)
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM_PROMPT}]

    def solve(self, task: str) -> str:
        self._messages.append({"role": "user", "content": task})
        while True:
            answer = self._ask(self._next_request())
            self._messages.append(answer.message())
            if not answer.calls:
                return answer.text
            self._run_tools(tuple(answer.calls.values()))

    def _next_request(self) -> bytes:
        if len(self._messages) > _FULL_HISTORY:
            with tt.phase("compaction"):
                self._compact()
            tt.count("compaction_count")
        with tt.phase("prompt_build"):
            self._workspace.pause(10)
            messages = list(self._messages)
        with tt.phase("tool_partition"):
            self._workspace.pause(3)
            return request_body(MODEL, messages, _TOOLS)

    def _ask(self, request: bytes) -> Answer:
        """Return the model's answer, streamed."""
        with tt.phase("provider_queue"):
            self._workspace.pause(6)
            _requests.acquire()
        try:
            with tt.generation(model=MODEL, provider="openai") as generation:
                answer = Answer()
                with self._send(request) as response:
                    for chunk in generation.stream(response):
                        answer.add(chunk)
                generation.usage(**answer.tokens())
                return answer
        finally:
            _requests.release()

    def _send(self, request: bytes) -> ChatResponse:
        """Return the first response that is no refusal, waiting as long as the server asks before each retry."""
        retries = 0
        while True:
            with tt.phase("provider_connect", attributes={"turntrace.attempt": retries + 1}) as attempt:
                response = connect(self._base_url, request, retries=retries)
                attempt.set("http.response.status_code", response.status)
            if response.status == HTTPStatus.OK:
                return response
            response.close()
            if retries == MAX_RETRIES or response.status not in RETRYABLE:
                raise ModelUnavailableError(response.status)
            retries += 1
            tt.count("retry_count")
            with tt.phase("retry_wait", attributes={"turntrace.reason": str(response.status)}):
                self._workspace.pause(response.retry_after_ms)

    def _run_tools(self, calls: Sequence[RequestedCall]) -> None:
        """Run the calls side by side, each in a copy of this context, and append what they return."""
        with ThreadPoolExecutor(len(calls)) as pool:
            results = [pool.submit(contextvars.copy_context().run, self._run_tool, call) for call in calls]
        for call, result in zip(calls, results, strict=True):
            self._messages.append({"role": "tool", "tool_call_id": call.call_id, "content": result.result()})
        if any(call.name == "edit_file" for call in calls):
            with tt.phase("verification"):
                self._messages[-1]["content"] += f"; checks: {self._workspace.check()}"

    def _run_tool(self, call: RequestedCall) -> str:
        with tt.tool(call.name, call_id=call.call_id):
            with tt.phase("tool_queue"):
                self._tool_slots.acquire()
            try:
                return self._workspace.run(call.name, call.parsed())
            finally:
                self._tool_slots.release()

    def _compact(self) -> None:
        """Shorten the older tool results, keeping every message and its place."""
        self._workspace.pause(25)
        for message in self._messages[:-2]:
            if message["role"] == "tool":
                message["content"] = message["content"][:40]
