"""What an answer of a model says of itself: its id, why it stopped, what it cost. Never what it says.

One class for each wire format. ``see`` takes the events of a stream one by one, ``whole`` an answer that
came at once; both take objects of an SDK and decoded JSON.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from turntrace.core.usage import inclusive_input

__all__ = ["Answer", "ChatAnswer", "MessageAnswer", "ResponseAnswer", "code_of"]


class Answer(Protocol):
    """What is known of an answer so far; None is unknown. ``failure`` is an error told inside the answer.

    ``is_final``: the model said that it stopped, so that what it counted is all there is.
    """

    response_id: str | None
    model: str | None
    reasons: tuple[str, ...]
    failure: str | None
    is_final: bool

    def see(self, event: Any) -> None:
        """Take the next event of a stream."""
        ...

    def whole(self, body: Any) -> None:
        """Take a whole answer."""
        ...

    def tokens(self) -> Mapping[str, int | None]:
        """What it cost, by the names of ``GenerationSpan.usage``."""
        ...


def _field(item: Any, *path: str) -> Any:
    """A value at the end of ``path``, through objects and dicts; None when it is not there."""
    for name in path:
        item = item.get(name) if isinstance(item, dict) else getattr(item, name, None)
        if item is None:
            return None
    return item


class _Known:
    """The part that all wire formats share."""

    __slots__ = ("failure", "is_final", "model", "reasons", "response_id", "usage")

    def __init__(self) -> None:
        self.response_id: str | None = None
        self.model: str | None = None
        self.reasons: tuple[str, ...] = ()
        self.failure: str | None = None
        self.is_final = False
        self.usage: Any = None

    def name(self, body: Any) -> None:
        """Note who answered."""
        response_id, model = _field(body, "id"), _field(body, "model")
        self.response_id = response_id if isinstance(response_id, str) else None
        self.model = model if isinstance(model, str) else None

    def stopped(self, *reasons: Any) -> None:
        """Note why the model stopped."""
        self.reasons = tuple(reason for reason in reasons if isinstance(reason, str))
        self.is_final = True


class ChatAnswer(_Known):
    """OpenAI's chat completions and the older ones; a later count replaces an earlier one, unless left out."""

    __slots__ = ("_counts",)
    _PATHS: Final = (
        ("input_tokens", ("prompt_tokens",)),
        ("output_tokens", ("completion_tokens",)),
        ("cached_input_tokens", ("prompt_tokens_details", "cached_tokens")),
        ("reasoning_tokens", ("completion_tokens_details", "reasoning_tokens")),
    )

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, int] = {}

    def see(self, event: Any) -> None:
        """See Answer."""
        if self.response_id is None:
            self.name(event)
        usage = event.usage
        if usage is not None:
            self._count(usage)
        for choice in event.choices:
            reason = choice.finish_reason
            if reason is not None:
                self.stopped(*self.reasons, reason)

    def whole(self, body: Any) -> None:
        """See Answer."""
        self.name(body)
        self._count(_field(body, "usage"))
        self.stopped(*(_field(choice, "finish_reason") for choice in _field(body, "choices") or ()))

    def tokens(self) -> Mapping[str, int | None]:
        """See Answer; prompt tokens include cached ones."""
        return {name: self._counts.get(name) for name, _ in self._PATHS}

    def _count(self, usage: Any) -> None:
        for name, path in self._PATHS:
            count = _field(usage, *path)
            if isinstance(count, int):
                self._counts[name] = count


_OVER: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})


class ResponseAnswer(_Known):
    """OpenAI's responses."""

    __slots__ = ()

    def see(self, event: Any) -> None:
        """See Answer."""
        kind = event.type
        if kind in _OVER:
            self.whole(event.response)
        elif kind == "error":
            self.failure = code_of(event)
        elif kind == "response.created":
            self.name(event.response)

    def whole(self, body: Any) -> None:
        """See Answer; one that runs in the background has not stopped yet."""
        self.name(body)
        self.usage = _field(body, "usage")
        status = _field(body, "status")
        if status == "failed":
            self.failure = code_of(_field(body, "error"))
        if status in {"completed", "failed", "incomplete", "cancelled"}:
            self.stopped(_field(body, "incomplete_details", "reason") or status)

    def tokens(self) -> Mapping[str, int | None]:
        """See Answer; input tokens include cached ones."""
        return {
            "input_tokens": _field(self.usage, "input_tokens"),
            "output_tokens": _field(self.usage, "output_tokens"),
            "cached_input_tokens": _field(self.usage, "input_tokens_details", "cached_tokens"),
            "reasoning_tokens": _field(self.usage, "output_tokens_details", "reasoning_tokens"),
        }


def code_of(error: Any) -> str:
    """The short name of an error that an answer tells of."""
    code = _field(error, "code") or _field(error, "type")
    return code if isinstance(code, str) and code.isidentifier() else "error"


class MessageAnswer(_Known):
    """Anthropic's messages; a later count of a stream replaces an earlier one, unless it is left out."""

    __slots__ = ("_counts",)
    _NAMES: Final = (
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    )

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, int] = {}

    def see(self, event: Any) -> None:
        """See Answer."""
        kind = event.type
        if kind == "content_block_delta":
            return
        if kind == "message_start":
            self.name(event.message)
            self._count(_field(event.message, "usage"))
        elif kind == "message_delta":
            self._count(event.usage)
            self.stopped(event.delta.stop_reason)

    def whole(self, body: Any) -> None:
        """See Answer."""
        self.name(body)
        self._count(_field(body, "usage"))
        self.stopped(_field(body, "stop_reason"))

    def tokens(self) -> Mapping[str, int | None]:
        """See Answer; the provider counts what was read from and written to a cache apart."""
        known = self._counts.get
        cached, written = known("cache_read_input_tokens"), known("cache_creation_input_tokens")
        return {
            "input_tokens": inclusive_input(known("input_tokens"), cached, written),
            "output_tokens": known("output_tokens"),
            "cached_input_tokens": cached,
            "cache_write_tokens": written,
        }

    def _count(self, usage: Any) -> None:
        for name in self._NAMES:
            count = _field(usage, name)
            if isinstance(count, int):
                self._counts[name] = count
