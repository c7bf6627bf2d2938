"""What a chunk of a stream holds: visible text, other content, or nothing yet.

Chunks are told by their shape, since every SDK has its own classes: chat completions, the responses API,
Anthropic's events, Gemini's candidates, server-sent events as bytes, plain text.
"""

from typing import Any, Final, Literal

import orjson

__all__ = ["ContentKind", "content_kind"]

ContentKind = Literal["token", "visible"]


def content_kind(item: object) -> ContentKind | None:
    """What a chunk hands over: text a person sees, other content of the model, or None.

    Reads chunks of OpenAI chat completions and responses, Anthropic messages and Gemini, as objects or
    as decoded JSON. A string is text; bytes are server-sent events or text. Chunks that carry only a
    role, usage or a ping are None, as is everything unknown. Never raises.

    >>> content_kind({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
    >>> content_kind({"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]})
    'token'
    >>> content_kind("Hello")
    'visible'
    """
    try:
        if isinstance(item, str):
            return "visible" if item else None
        if isinstance(item, bytes | bytearray):
            return _bytes_kind(item)
        return _record_kind(item)
    except Exception:  # noqa: BLE001 - attributes of foreign objects may raise anything; such content is unknown
        return None


_VISIBLE_EVENTS: Final = frozenset(
    {
        "content.delta",
        "refusal.delta",
        "response.output_text.delta",
        "response.refusal.delta",
        "response.text.delta",
    }
)
_BLOCK_DELTAS: Final[dict[object, tuple[str, ContentKind]]] = {
    "text_delta": ("text", "visible"),
    "thinking_delta": ("thinking", "token"),
    "input_json_delta": ("partial_json", "token"),
}
_CALL_STARTS: Final = {
    "content_block_start": ("content_block", "tool_use"),
    "response.output_item.added": ("item", "_call"),
}
_EVENT_LINES: Final = (b"data:", b"event:", b"id:", b"retry:", b":")


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _has_text(item: Any, *names: str) -> bool:
    """Whether one of the fields is a string that is not empty."""
    return any(isinstance(text := _field(item, name), str) and text != "" for name in names)


def _record_kind(item: object) -> ContentKind | None:
    if choices := _field(item, "choices"):
        return _choice_kind(choices[0])
    if isinstance(name := _field(item, "type"), str):
        return _event_kind(name, item)
    if candidates := _field(item, "candidates"):
        return _parts_kind(_field(_field(candidates[0], "content"), "parts"))
    return None


def _choice_kind(choice: object) -> ContentKind | None:
    """OpenAI chat completions, and the older completions, which have ``text`` and no ``delta``."""
    delta = _field(choice, "delta")
    if _has_text(choice, "text") or _has_text(delta, "content", "refusal"):
        return "visible"
    calls = _field(delta, "tool_calls")
    if (
        _has_text(delta, "reasoning_content", "reasoning", "thinking")
        or (calls is not None and len(calls) > 0)
        or _has_text(_field(delta, "function_call"), "name", "arguments")
    ):
        return "token"
    return None


def _event_kind(name: str, event: object) -> ContentKind | None:
    """Events with a type: Anthropic's blocks, OpenAI's responses."""
    if name == "content_block_delta":
        delta = _field(event, "delta")
        field, kind = _BLOCK_DELTAS.get(_field(delta, "type"), ("", None))
        return kind if _has_text(delta, field) else None
    if name in _CALL_STARTS:
        field, ending = _CALL_STARTS[name]
        return "token" if str(_field(_field(event, field), "type")).endswith(ending) else None
    if name.endswith(".delta") and _has_text(event, "delta", "arguments_delta"):
        return "visible" if name in _VISIBLE_EVENTS else "token"
    return None


def _parts_kind(parts: Any) -> ContentKind | None:
    """Gemini; thoughts are text that is not shown."""
    kind: ContentKind | None = None
    for part in parts or ():
        if _has_text(part, "text"):
            if _field(part, "thought") is not True:
                return "visible"
            kind = "token"
        elif _field(part, "function_call") is not None or _field(part, "functionCall") is not None:
            kind = "token"
    return kind


def _bytes_kind(data: bytes | bytearray) -> ContentKind | None:
    """Server-sent events when the lines look like it, else text unless blank."""
    lines = data.split(b"\n")
    if not lines[0].startswith(_EVENT_LINES):
        return "visible" if data.strip() else None
    kind: ContentKind | None = None
    for line in lines:
        payload = line[5:].strip() if line.startswith(b"data:") else b""
        if payload and payload != b"[DONE]":
            found = _record_kind(orjson.loads(payload))
            if found == "visible":
                return found
            kind = kind or found
    return kind
