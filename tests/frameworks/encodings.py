"""How each provider puts an answer on the wire: whole, or as the events of a stream."""

import base64
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from frameworks.steps import Step

__all__ = ["Asked", "Encoding", "Event", "encoding_of"]

Tokens = dict[str, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its API, its place in the session, its body."""

    api: str
    number: int
    body: Mapping[str, Any]
    model: str
    stream: bool

    @property
    def wants_usage(self) -> bool:
        """Whether the caller will be told the tokens; OpenAI's chat streams tell them on demand only."""
        if self.api != "openai.chat" or not self.stream:
            return True
        return bool((self.body.get("stream_options") or {}).get("include_usage"))


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream; ``content`` when it carries text or part of a tool call.

    ``tokens`` is what it says that the call cost, ``input_tokens`` when it tells of the input only.
    """

    data: dict[str, Any] | str
    name: str | None = None
    content: bool = False
    tokens: Tokens | None = None
    input_tokens: int | None = None

    def frame(self) -> bytes:
        """The event as the lines that go over the wire."""
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        head = f"event: {self.name}\n" if self.name else ""
        return f"{head}data: {data}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Encoding:
    """The wire format of one API."""

    api: str
    whole: Callable[[Step, Asked], dict[str, Any]]
    events: Callable[[Step, Asked], Iterator[Event]]
    error: Callable[[int, str], dict[str, Any]]
    in_band: Callable[[], Event]
    usage: Callable[[Tokens], dict[str, Any]]


def encoding_of(path: str) -> Encoding | None:
    """The encoding that answers requests to ``path``."""
    for endings, encoding in (
        (("/chat/completions",), CHAT),
        (("/responses",), RESPONSES),
        (("/messages",), MESSAGES),
        (("/embeddings",), EMBEDDINGS),
        ((":generateContent", ":streamGenerateContent"), GEMINI),
    ):
        if path.endswith(endings):
            return encoding
    return None


def _with_usage(value: dict[str, Any], key: str, step: Step, make: Callable[[Tokens], Any]) -> dict[str, Any]:
    """``value`` with its usage as the step wants it: there, null, or no such key."""
    tokens = step.tokens()
    if tokens is not None:
        value[key] = make(tokens)
    elif step.usage == "null":
        value[key] = None
    return value


# -- OpenAI chat ----------------------------------------------------------------------------------------


def _chat_usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "prompt_tokens": tokens["input"],
        "completion_tokens": tokens["output"],
        "total_tokens": tokens["input"] + tokens["output"],
        "prompt_tokens_details": {"cached_tokens": tokens["cached"], "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": tokens["reasoning"], "audio_tokens": 0},
    }


def _chat_calls(step: Step, asked: Asked) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": f"call_{asked.number:04}_{index}",
            "type": "function",
            "function": {"name": tool.name, "arguments": json.dumps(tool.arguments)},
        }
        for index, tool in enumerate(step.tools)
    ]


def _chat_head(asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{asked.number:04}",
        "object": kind,
        "created": 1_796_000_000,
        "model": asked.model,
        "service_tier": "default",
        "system_fingerprint": "fp_fake",
    }


def _chat_whole(step: Step, asked: Asked) -> dict[str, Any]:
    calls = [
        {key: call[key] for key in ("id", "type", "function")} for call in _chat_calls(step, asked)
    ] or None
    message = {
        "role": "assistant",
        "content": "".join(step.pieces()) or None,
        "refusal": None,
        "annotations": [],
    }
    if calls:
        message["tool_calls"] = calls
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if calls else "stop",
    }
    value = {**_chat_head(asked, "chat.completion"), "choices": [choice]}
    return _with_usage(value, "usage", step, _chat_usage)


def _chat_events(step: Step, asked: Asked) -> Iterator[Event]:
    head = _chat_head(asked, "chat.completion.chunk")
    pieces, calls = step.pieces(), _chat_calls(step, asked)
    count = len(pieces) + len(calls)

    def chunk(delta: dict[str, Any], sent: int, finish: str | None = None) -> Event:
        value = {
            **head,
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        }
        tokens = step.tokens(sent / count if count else 1.0) if step.usage == "cumulative" else None
        if tokens is not None:
            value["usage"] = _chat_usage(tokens)
        elif asked.wants_usage and step.usage in {"present", "null", "zero"}:
            value["usage"] = None
        content = bool(delta.get("content") or delta.get("tool_calls"))
        return Event(value, content=content, tokens=tokens)

    yield chunk({"role": "assistant", "content": "" if pieces else None}, 0)
    for at, piece in enumerate(pieces, 1):
        yield chunk({"content": piece}, at)
    for at, call in enumerate(calls, len(pieces) + 1):
        yield chunk({"tool_calls": [call]}, at)
    yield chunk({}, count, "tool_calls" if calls else "stop")
    tokens = step.tokens() if asked.wants_usage and step.usage in {"present", "zero"} else None
    if tokens is not None:
        yield Event({**head, "choices": [], "usage": _chat_usage(tokens)}, tokens=tokens)
    yield Event("[DONE]")


def _openai_error(status: int, message: str) -> dict[str, Any]:
    kind = "rate_limit_exceeded" if status == 429 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


CHAT = Encoding(
    "openai.chat",
    _chat_whole,
    _chat_events,
    _openai_error,
    lambda: Event(_openai_error(500, "The server had an error")),
    _chat_usage,
)


# -- OpenAI responses -----------------------------------------------------------------------------------


def _responses_usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens["input"],
        "input_tokens_details": {"cached_tokens": tokens["cached"]},
        "output_tokens": tokens["output"],
        "output_tokens_details": {"reasoning_tokens": tokens["reasoning"]},
        "total_tokens": tokens["input"] + tokens["output"],
    }


def _responses_items(step: Step, asked: Asked) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    text = "".join(step.pieces())
    if text:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        items.append(
            {
                "type": "message",
                "id": f"msg_{asked.number:04}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for index, tool in enumerate(step.tools):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{asked.number:04}_{index}",
                "call_id": f"call_{asked.number:04}_{index}",
                "name": tool.name,
                "arguments": json.dumps(tool.arguments),
                "status": "completed",
            }
        )
    return items


def _responses_head(asked: Asked, status: str) -> dict[str, Any]:
    return {
        "id": f"resp_{asked.number:04}",
        "object": "response",
        "created_at": 1_796_000_000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }


def _responses_whole(step: Step, asked: Asked) -> dict[str, Any]:
    value = {**_responses_head(asked, "completed"), "output": _responses_items(step, asked)}
    return _with_usage(value, "usage", step, _responses_usage)


def _responses_events(step: Step, asked: Asked) -> Iterator[Event]:
    number = -1

    def event(kind: str, *, content: bool = False, tokens: Tokens | None = None, **fields: Any) -> Event:
        nonlocal number
        number += 1
        return Event({"type": kind, "sequence_number": number, **fields}, kind, content, tokens)

    yield event("response.created", response=_responses_head(asked, "in_progress"))
    yield event("response.in_progress", response=_responses_head(asked, "in_progress"))
    for index, item in enumerate(_responses_items(step, asked)):
        place = {"output_index": index, "item_id": item["id"]}
        opened = {**item, "status": "in_progress"}
        if item["type"] == "message":
            part = {**place, "content_index": 0}
            empty = {**item["content"][0], "text": ""}
            yield event("response.output_item.added", output_index=index, item={**opened, "content": []})
            yield event("response.content_part.added", **part, part=empty)
            for piece in step.pieces():
                yield event("response.output_text.delta", content=True, **part, delta=piece, logprobs=[])
            yield event("response.output_text.done", **part, text=item["content"][0]["text"], logprobs=[])
            yield event("response.content_part.done", **part, part=item["content"][0])
        else:
            yield event("response.output_item.added", output_index=index, item={**opened, "arguments": ""})
            words = item["arguments"]
            yield event("response.function_call_arguments.delta", content=True, **place, delta=words)
            yield event("response.function_call_arguments.done", **place, name=item["name"], arguments=words)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", tokens=step.tokens(), response=_responses_whole(step, asked))


RESPONSES = Encoding(
    "openai.responses",
    _responses_whole,
    _responses_events,
    _openai_error,
    lambda: Event(
        {
            "type": "error",
            "code": "server_error",
            "message": "The server had an error",
            "param": None,
            "sequence_number": 99,
        },
        "error",
    ),
    _responses_usage,
)


# -- Anthropic messages ---------------------------------------------------------------------------------


def _messages_usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens["input"] - tokens["cached"] - tokens["cache_write"],
        "cache_creation_input_tokens": tokens["cache_write"],
        "cache_read_input_tokens": tokens["cached"],
        "output_tokens": tokens["output"],
    }


def _messages_blocks(step: Step, asked: Asked) -> list[dict[str, Any]]:
    text = "".join(step.pieces())
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text, "citations": None}] if text else []
    for index, tool in enumerate(step.tools):
        blocks.append(
            {
                "type": "tool_use",
                "id": f"toolu_{asked.number:04}_{index}",
                "name": tool.name,
                "input": tool.arguments,
            }
        )
    return blocks


def _messages_head(asked: Asked) -> dict[str, Any]:
    return {
        "id": f"msg_{asked.number:04}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _messages_whole(step: Step, asked: Asked) -> dict[str, Any]:
    value = {
        **_messages_head(asked),
        "content": _messages_blocks(step, asked),
        "stop_reason": "tool_use" if step.tools else "end_turn",
    }
    return _with_usage(value, "usage", step, _messages_usage)


def _messages_events(step: Step, asked: Asked) -> Iterator[Event]:
    def event(name: str, *, content: bool = False, tokens: Tokens | None = None, **fields: Any) -> Event:
        return Event({"type": name, **fields}, name, content, tokens)

    opened = _messages_head(asked)
    tokens = step.tokens()
    if tokens is not None:
        opened["usage"] = _messages_usage({**tokens, "output": min(1, tokens["output"])})
    yield replace(
        event("message_start", message=opened), input_tokens=None if tokens is None else tokens["input"]
    )
    yield event("ping")
    for index, block in enumerate(_messages_blocks(step, asked)):
        text = block["type"] == "text"
        empty = {**block, "text": ""} if text else {**block, "input": {}}
        yield event("content_block_start", index=index, content_block=empty)
        deltas = (
            [{"type": "text_delta", "text": piece} for piece in step.pieces()]
            if text
            else [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        )
        for delta in deltas:
            yield event("content_block_delta", content=True, index=index, delta=delta)
        yield event("content_block_stop", index=index)
    ended: dict[str, Any] = {
        "delta": {"stop_reason": "tool_use" if step.tools else "end_turn", "stop_sequence": None}
    }
    if tokens is not None:
        ended["usage"] = _messages_usage(tokens)
    elif step.usage == "null":
        ended["usage"] = None
    yield event("message_delta", tokens=tokens, **ended)
    yield event("message_stop")


def _anthropic_error(status: int, message: str) -> dict[str, Any]:
    kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


MESSAGES = Encoding(
    "anthropic.messages",
    _messages_whole,
    _messages_events,
    _anthropic_error,
    lambda: Event(_anthropic_error(529, "Overloaded"), "error"),
    _messages_usage,
)


# -- Gemini ---------------------------------------------------------------------------------------------


def _gemini_usage(tokens: Tokens) -> dict[str, Any]:
    found = {
        "promptTokenCount": tokens["input"],
        "candidatesTokenCount": tokens["output"] - tokens["reasoning"],
        "totalTokenCount": tokens["input"] + tokens["output"],
    }
    if tokens["cached"]:
        found["cachedContentTokenCount"] = tokens["cached"]
    if tokens["reasoning"]:
        found["thoughtsTokenCount"] = tokens["reasoning"]
    return found


def _gemini_value(parts: list[dict[str, Any]], asked: Asked, finish: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "modelVersion": asked.model,
        "responseId": f"gemini-{asked.number:04}",
    }


def _gemini_calls(step: Step) -> list[dict[str, Any]]:
    return [{"functionCall": {"name": tool.name, "args": tool.arguments}} for tool in step.tools]


def _gemini_whole(step: Step, asked: Asked) -> dict[str, Any]:
    text = "".join(step.pieces())
    parts = ([{"text": text}] if text else []) + _gemini_calls(step)
    return _with_usage(_gemini_value(parts, asked, "STOP"), "usageMetadata", step, _gemini_usage)


def _gemini_events(step: Step, asked: Asked) -> Iterator[Event]:
    parts = [{"text": piece} for piece in step.pieces()] + _gemini_calls(step)
    for at, part in enumerate(parts, 1):
        last = at == len(parts)
        value = _gemini_value([part], asked, "STOP" if last else None)
        share = at / len(parts)
        tokens = step.tokens(share) if last or step.usage == "cumulative" else None
        if tokens is not None:
            value["usageMetadata"] = _gemini_usage(tokens)
        yield Event(value, content=True, tokens=tokens)


def _gemini_error(status: int, message: str) -> dict[str, Any]:
    word = {429: "RESOURCE_EXHAUSTED"}.get(status, "INTERNAL")
    return {"error": {"code": status, "message": message, "status": word}}


GEMINI = Encoding(
    "gemini",
    _gemini_whole,
    _gemini_events,
    _gemini_error,
    lambda: Event(_gemini_error(500, "Internal error")),
    _gemini_usage,
)


# -- embeddings -----------------------------------------------------------------------------------------


def _embeddings_usage(tokens: Tokens) -> dict[str, Any]:
    return {"prompt_tokens": tokens["input"], "total_tokens": tokens["input"]}


def _embeddings_whole(step: Step, asked: Asked) -> dict[str, Any]:
    given = asked.body.get("input", "")
    values = [0.5, -0.25, 0.125, 0.0]
    vector: Any = values
    if asked.body.get("encoding_format") == "base64":
        vector = base64.b64encode(struct.pack("<4f", *values)).decode()
    several = isinstance(given, list) and bool(given) and isinstance(given[0], str | list)
    data = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index in range(len(given) if several else 1)
    ]
    value = {"object": "list", "data": data, "model": asked.model}
    return _with_usage(value, "usage", step, _embeddings_usage)


EMBEDDINGS = Encoding(
    "openai.embeddings",
    _embeddings_whole,
    lambda step, asked: iter(()),
    _openai_error,
    lambda: Event(_openai_error(500, "The server had an error")),
    _embeddings_usage,
)
