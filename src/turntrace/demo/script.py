"""What the model server answers: plain records, the same for every protocol it speaks.

A script is any callable from a request to a reply. The two here keep no state, so that a repeated run
gets the same replies however its requests interleave with those of others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

__all__ = [
    "RETRY_COUNT_HEADER",
    "Conversation",
    "InOrder",
    "ModelRequest",
    "Reply",
    "Script",
    "TokenUsage",
    "ToolCall",
]

RETRY_COUNT_HEADER: Final = "x-stainless-retry-count"
"""The request header in which OpenAI's own clients say how often they have tried before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """What a reply claims to have cost; input includes the cached part, output the reasoning."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call the model asks for; ``arguments`` are the pieces in which its JSON text is streamed."""

    call_id: str
    name: str
    arguments: tuple[str, ...] = ("{}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer of the model server.

    Attributes:
        status: An HTTP status; anything but 200 is answered with an error body at once.
        retry_after_ms: Sent with an error as ``Retry-After`` (whole seconds, rounded up) and ``retry-after-ms``.
        header_delay_ms: From the request read in full to the response headers.
        first_token_ms: From the headers to the first content.
        chunk_interval_ms: Between two pieces of content.
        keep_alives: SSE comments, spread evenly over the wait for the first content.
        usage: ``absent`` sends no usage at all, ``null`` sends the key with JSON null.
        drop_after_chunks: Breaks the connection once so many events of the stream are out, 0 right after
            the headers; an answer in one piece loses its body.
    """

    status: int = 200
    retry_after_ms: int | None = None
    header_delay_ms: int = 0
    first_token_ms: int = 0
    chunk_interval_ms: int = 0
    keep_alives: int = 0
    reasoning: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage | Literal["absent", "null"] = "absent"
    drop_after_chunks: int | None = None

    @property
    def reported_usage(self) -> TokenUsage | None:
        """The usage the reply reports, None when it is absent or null."""
        return None if isinstance(self.usage, str) else self.usage

    @property
    def pieces(self) -> int:
        """How many pieces of content the reply has: reasoning, text, names and arguments of tool calls."""
        calls = sum(1 + len(call.arguments) for call in self.tool_calls)
        return len(self.reasoning) + len(self.content) + calls


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request as a script sees it: its number in order of arrival, its headers, its parsed body."""

    index: int
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attempt(self) -> int:
        """How often the client says it has tried before, 0 when it says nothing."""
        count = self.headers.get(RETRY_COUNT_HEADER, "0")
        return int(count) if count.isdecimal() else 0

    @property
    def answers(self) -> int:
        """How many answers of the model the conversation holds already."""
        messages = self.body.get("messages")
        if not isinstance(messages, list):
            return 0
        return sum(isinstance(message, dict) and message.get("role") == "assistant" for message in messages)


Script = Callable[[ModelRequest], Reply]
"""Chooses the reply to a request. Called from many threads at once."""


@dataclass(frozen=True, slots=True)
class InOrder:
    """One reply after the other in order of arrival, from the first again after the last.

    >>> script = InOrder((Reply(status=503), Reply(content=("hello",))))
    >>> [script(ModelRequest(index=index, path="/")).status for index in range(3)]
    [503, 200, 503]
    """

    replies: tuple[Reply, ...]

    def __post_init__(self) -> None:
        if not self.replies:
            message = "a script needs at least one reply"
            raise ValueError(message)

    def __call__(self, request: ModelRequest) -> Reply:
        """Return the reply whose turn it is."""
        return self.replies[request.index % len(self.replies)]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Replies by round and attempt, so that many conversations can run at once.

    The round is the number of answers in the request's messages, the attempt what its retry header says;
    beyond the script the last round, or the last attempt of a round, goes on.

    >>> script = Conversation(((Reply(status=429), Reply(content=("hello",))),))
    >>> script(ModelRequest(index=7, path="/", headers={"x-stainless-retry-count": "1"})).content
    ('hello',)
    """

    rounds: tuple[tuple[Reply, ...], ...]

    def __post_init__(self) -> None:
        if not self.rounds or not all(self.rounds):
            message = "a conversation needs at least one round, each with at least one attempt"
            raise ValueError(message)

    def __call__(self, request: ModelRequest) -> Reply:
        """Return the reply of the request's round and attempt."""
        attempts = self.rounds[min(request.answers, len(self.rounds) - 1)]
        return attempts[min(request.attempt, len(attempts) - 1)]
