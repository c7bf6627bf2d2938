"""What the model server is told to answer: one step for each request, and the tokens that a step costs."""

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Step", "ToolCall"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The answer to one request.

    Args:
        text: What the model says.
        tools: The tools it asks for, all at once.
        latency_s: Time before an answer that is not streamed.
        headers_s: Time before the headers of a stream.
        ttft_s: Time between these and its first content.
        chunks: Pieces in which a stream brings the text.
        gap_s: Time between two pieces.
        status: Another than 200 refuses the request.
        retry_after_s: What a refusal asks for.
        retried: The client will try again, so that this is no call of its own; by default when refused.
        drop_after: Break the connection after so many pieces; -1 before the status line.
        error_after: Send an error in the stream after so many pieces.
        usage: ``present``, ``absent``, ``null``, ``zero`` or, on every piece of a stream, ``cumulative``.
        input_tokens: All input, with what was read from and written to a cache.
        output_tokens: All output, with the reasoning.
        keep_alive: Comments sent before the first content of a stream.
        empty: A stream that ends after its headers, without a single event.
        under: Whose call it is: the turn's own or that of an agent which a tool of this name runs.
    """

    text: str = "ok"
    tools: tuple[ToolCall, ...] = ()
    latency_s: float = 0.0
    headers_s: float = 0.0
    ttft_s: float = 0.0
    chunks: int = 1
    gap_s: float = 0.0
    status: int = 200
    retry_after_s: float | None = None
    retried: bool | None = None
    drop_after: int | None = None
    error_after: int | None = None
    usage: str = "present"
    input_tokens: int = 10
    output_tokens: int = 5
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    keep_alive: int = 0
    empty: bool = False
    under: str = "turn"

    @property
    def is_attempt(self) -> bool:
        """Whether the call goes on with another request."""
        return self.status != 200 if self.retried is None else self.retried

    def pieces(self) -> list[str]:
        """The text as a stream brings it; nothing but tools is no piece."""
        if self.tools and self.text == "ok":
            return []
        size = -(-len(self.text) // self.chunks)
        return [self.text[at : at + size] for at in range(0, len(self.text), size)]

    def tokens(self, share: float = 1.0) -> dict[str, int] | None:
        """What the step says that it cost, after ``share`` of the output; None when it does not say."""
        if self.usage in {"absent", "null"}:
            return None
        scale = 0 if self.usage == "zero" else 1
        return {
            "input": scale * self.input_tokens,
            "output": int(scale * self.output_tokens * share),
            "cached": scale * self.cached_tokens,
            "cache_write": scale * self.cache_write_tokens,
            "reasoning": int(scale * self.reasoning_tokens * share),
        }
