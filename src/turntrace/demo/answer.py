"""A streamed chat completion put back together."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

__all__ = ["Answer", "RequestedCall"]


@dataclass(slots=True, kw_only=True)
class RequestedCall:
    """A tool call the model asked for; ``arguments`` is JSON text that grows while it streams."""

    call_id: str = ""
    name: str = ""
    arguments: str = ""

    def parsed(self) -> dict[str, Any]:
        """Return the arguments as an object."""
        arguments: dict[str, Any] = json.loads(self.arguments)
        return arguments


@dataclass(slots=True, kw_only=True)
class Answer:
    """What the model has said so far. ``usage`` holds the last report, None while there was none."""

    text: str = ""
    calls: dict[int, RequestedCall] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None

    def add(self, chunk: Mapping[str, Any]) -> Self:
        """Take in one chunk of the stream."""
        self.usage = chunk.get("usage") or self.usage
        for choice in chunk["choices"]:
            delta = choice["delta"]
            self.text += delta.get("content") or ""
            for piece in delta.get("tool_calls", ()):
                self._add_call(piece)
        return self

    def _add_call(self, piece: Mapping[str, Any]) -> None:
        call = self.calls.setdefault(piece["index"], RequestedCall())
        call.call_id = piece.get("id", call.call_id)
        call.name += piece["function"].get("name", "")
        call.arguments += piece["function"].get("arguments", "")

    def tokens(self) -> dict[str, int | None]:
        """Return the reported token counts by turntrace's names, None for what was not reported."""
        usage = self.usage or {}
        return {
            "input_tokens": usage.get("prompt_tokens"),
            "output_tokens": usage.get("completion_tokens"),
            "cached_input_tokens": usage.get("prompt_tokens_details", {}).get("cached_tokens"),
            "reasoning_tokens": usage.get("completion_tokens_details", {}).get("reasoning_tokens"),
        }

    def message(self) -> dict[str, Any]:
        """Return the answer as a message of the conversation."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.calls:
            message["tool_calls"] = [
                {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in self.calls.values()
            ]
        return message
