"""The OpenAI chat-completions protocol: a scripted reply as the bytes that go over the wire.

Source: OpenAI API reference, Chat Completions (object, chunk object, streaming); ``reasoning_content`` is
what the servers send that stream reasoning in this protocol.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from turntrace.demo.encoding import Frame
from turntrace.demo.script import ModelRequest, Reply, TokenUsage, ToolCall

__all__ = ["ChatCompletions"]

_CREATED: Final = 1_700_000_000
"""A fixed time of creation (Unix seconds): equal scripts give equal bytes."""


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _usage(usage: TokenUsage | Literal["absent", "null"]) -> dict[str, Any] | None:
    """Return the usage object, None for ``null`` (and for ``absent``, which callers leave out)."""
    if isinstance(usage, str):
        return None
    report: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cached_input_tokens is not None:
        report["prompt_tokens_details"] = {"cached_tokens": usage.cached_input_tokens}
    if usage.reasoning_tokens is not None:
        report["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return report


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.tool_calls else "stop"


def _tool_call_deltas(index: int, call: ToolCall) -> Iterator[dict[str, Any]]:
    """Yield the deltas of one tool call: first its name, then its arguments piece by piece."""
    function = {"name": call.name, "arguments": ""}
    yield {"tool_calls": [{"index": index, "id": call.call_id, "type": "function", "function": function}]}
    for piece in call.arguments:
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _deltas(reply: Reply) -> Iterator[dict[str, Any]]:
    """Yield what the answer consists of, in the order a model thinks, speaks and calls tools."""
    for piece in reply.reasoning:
        yield {"reasoning_content": piece}
    for piece in reply.content:
        yield {"content": piece}
    for index, call in enumerate(reply.tool_calls):
        yield from _tool_call_deltas(index, call)


def _envelope(request: ModelRequest, kind: str) -> dict[str, Any]:
    model = request.body.get("model", "")
    return {"id": f"chatcmpl-{request.index}", "object": kind, "created": _CREATED, "model": model}


def _message(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.content) or None}
    if reply.reasoning:
        message["reasoning_content"] = "".join(reply.reasoning)
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": "".join(call.arguments)},
            }
            for call in reply.tool_calls
        ]
    return message


class ChatCompletions:
    """Encodes replies for ``POST /v1/chat/completions``."""

    __slots__ = ()

    def streams(self, request: ModelRequest) -> bool:
        """Tell whether the request asks for a stream."""
        return request.body.get("stream") is True

    def frames(self, request: ModelRequest, reply: Reply) -> Iterator[Frame]:
        """Yield the events of a streamed answer, from the role to ``[DONE]``."""
        envelope = _envelope(request, "chat.completion.chunk")
        wanted = self._usage_wanted(request) and reply.usage != "absent"
        if wanted:
            envelope["usage"] = None  # as OpenAI does on every chunk but the last

        def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
            return _json(envelope | {"choices": [choice]})

        yield Frame(chunk({"role": "assistant", "content": ""}))
        for delta in _deltas(reply):
            yield Frame(chunk(delta), content=True)
        yield Frame(chunk({}, _finish_reason(reply)))
        if wanted:
            last = _json(envelope | {"choices": [], "usage": _usage(reply.usage)})
            yield Frame(last, usage=reply.reported_usage)
        yield Frame(b"[DONE]")

    def body(self, request: ModelRequest, reply: Reply) -> bytes:
        """Return a whole answer as one JSON document."""
        choice = {"index": 0, "message": _message(reply), "finish_reason": _finish_reason(reply)}
        document = _envelope(request, "chat.completion") | {"choices": [choice]}
        if reply.usage != "absent":
            document["usage"] = _usage(reply.usage)
        return _json(document)

    def error(self, status: int) -> bytes:
        """Return the JSON document that goes with an HTTP error."""
        error = {"message": f"scripted status {status}", "type": "error", "param": None, "code": str(status)}
        return _json({"error": error})

    @staticmethod
    def _usage_wanted(request: ModelRequest) -> bool:
        options = request.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True
