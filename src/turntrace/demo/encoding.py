"""What the model server asks of a provider's protocol. A new provider is one more class of this shape."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from turntrace.demo.script import ModelRequest, Reply, TokenUsage

__all__ = ["Encoding", "Frame"]


@dataclass(frozen=True, slots=True)
class Frame:
    """The data of one event: does it carry a piece of the answer, which usage does it report."""

    payload: bytes
    content: bool = False
    usage: TokenUsage | None = None


class Encoding(Protocol):
    """How a reply looks on the wire."""

    def streams(self, request: ModelRequest) -> bool:
        """Tell whether the request asks for a stream."""
        ...

    def frames(self, request: ModelRequest, reply: Reply) -> Iterator[Frame]:
        """Yield the events of a streamed answer."""
        ...

    def body(self, request: ModelRequest, reply: Reply) -> bytes:
        """Return a whole answer as one JSON document."""
        ...

    def error(self, status: int) -> bytes:
        """Return the JSON document that goes with an HTTP error."""
        ...
