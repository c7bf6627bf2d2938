"""The table of log events: what coding agents say in events only, and what becomes of each.

An event with a duration becomes a span where no span tells the same, and fills one that does. Names, units
and attributes are those of the versions in docs/coding-agents.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from turntrace.core import attributes as names

__all__ = ["EVENTS", "REPORTS", "EventRow", "Meaning", "Report", "event_name"]


class Meaning(StrEnum):
    """What an event is: a span, the start or end of a model call, an approval, the prompt of a turn."""

    SPAN = "span"
    OPENS = "opens"
    CLOSES = "closes"
    DECIDES = "decides"
    PROMPT = "prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One meaning of one event.

    ``when`` is an attribute and the values with which the row holds, without values: it is there.
    ``renamed`` leads from the event's attributes to a span's; the others keep their names. ``call`` is the
    attribute with the id of a tool's call. ``failed``: the attribute and the value that tell of a failure;
    ``fails``: the event itself does.
    """

    name: str
    dialect: str
    meaning: Meaning
    phase: str = ""
    when: tuple[str, frozenset[str]] | None = None
    session: str = "session.id"
    call: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    failed: tuple[str, str] = ("", "")
    fails: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A span of plumbing that tells what a call consumed; ``copied`` goes to the span of the call."""

    name: str
    dialect: str
    phase: str
    needs: str
    copied: tuple[str, ...]


_USER: Final = frozenset(
    {"User", "user", "user_temporary", "user_permanent", "user_reject", "user_abort", "user_approved"}
)
_TOOL: Final = names.TOOL_NAME
_CALL: Final = names.TOOL_CALL_ID
_MODEL: Final = names.REQUEST_MODEL
_CODEX_TOKENS: Final = {
    "input_token_count": names.INPUT_TOKENS,
    "output_token_count": names.OUTPUT_TOKENS,
    "cached_token_count": names.CACHE_READ_TOKENS,
    "cache_write_token_count": names.CACHE_WRITE_TOKENS,
    "reasoning_token_count": "codex.usage.reasoning_output_tokens",
    "model": _MODEL,
}
_GEMINI_TOKENS: Final = {
    "input_token_count": names.INPUT_TOKENS,
    "output_token_count": names.OUTPUT_TOKENS,
    "cached_content_token_count": names.CACHE_READ_TOKENS,
    "thoughts_token_count": names.REASONING_TOKENS,
    "model": _MODEL,
}

_ROWS: Final = (
    EventRow(name="claude_code.user_prompt", dialect="claude_code", meaning=Meaning.PROMPT),
    EventRow(name="claude_code.api_request", dialect="claude_code", meaning=Meaning.SPAN, phase="generation"),
    EventRow(
        name="claude_code.api_error",
        dialect="claude_code",
        meaning=Meaning.SPAN,
        phase="generation",
        fails=True,
    ),
    EventRow(
        name="claude_code.tool_result",
        dialect="claude_code",
        meaning=Meaning.SPAN,
        phase="tool_execution",
        call="tool_use_id",
        renamed={"tool_name": _TOOL, "tool_use_id": _CALL},
        failed=("success", "false"),
    ),
    EventRow(
        name="claude_code.tool_decision",
        dialect="claude_code",
        meaning=Meaning.DECIDES,
        phase="permission_wait",
        when=("source", _USER),
        call="tool_use_id",
    ),
    EventRow(name="codex.user_prompt", dialect="codex", meaning=Meaning.PROMPT, session="conversation.id"),
    EventRow(
        name="codex.api_request",
        dialect="codex",
        meaning=Meaning.OPENS,
        session="conversation.id",
    ),
    EventRow(
        name="codex.api_request",
        dialect="codex",
        meaning=Meaning.SPAN,
        phase="provider_connect",
        session="conversation.id",
        failed=("success", "false"),
    ),
    EventRow(
        name="codex.websocket_request",
        dialect="codex",
        meaning=Meaning.OPENS,
        session="conversation.id",
    ),
    *(
        EventRow(
            name=name,
            dialect="codex",
            meaning=Meaning.CLOSES,
            phase="generation",
            when=("input_token_count", frozenset()),
            session="conversation.id",
            renamed=_CODEX_TOKENS,
        )
        for name in ("codex.sse_event", "codex.websocket_event")
    ),
    EventRow(
        name="codex.tool_result",
        dialect="codex",
        meaning=Meaning.SPAN,
        phase="tool_execution",
        session="conversation.id",
        call="call_id",
        renamed={"tool_name": _TOOL, "call_id": _CALL},
        failed=("success", "false"),
    ),
    EventRow(
        name="codex.tool_decision",
        dialect="codex",
        meaning=Meaning.DECIDES,
        phase="permission_wait",
        when=("source", _USER),
        session="conversation.id",
        call="call_id",
    ),
    EventRow(name="gemini_cli.user_prompt", dialect="gemini_cli", meaning=Meaning.PROMPT),
    EventRow(
        name="gemini_cli.api_response",
        dialect="gemini_cli",
        meaning=Meaning.SPAN,
        phase="generation",
        renamed=_GEMINI_TOKENS,
    ),
    EventRow(
        name="gemini_cli.api_error",
        dialect="gemini_cli",
        meaning=Meaning.SPAN,
        phase="generation",
        renamed={"model": _MODEL},
        fails=True,
    ),
    EventRow(
        name="gemini_cli.tool_call",
        dialect="gemini_cli",
        meaning=Meaning.SPAN,
        phase="tool_execution",
        renamed={"function_name": _TOOL},
        failed=("success", "false"),
    ),
)

EVENTS: Final[Mapping[str, tuple[EventRow, ...]]] = {
    row.name: tuple(other for other in _ROWS if other.name == row.name) for row in _ROWS
}
"""The rows by the name of the event."""

REPORTS: Final = (
    Report(
        name="handle_responses",
        dialect="codex",
        phase="generation",
        needs=names.INPUT_TOKENS,
        copied=(
            names.INPUT_TOKENS,
            names.OUTPUT_TOKENS,
            names.CACHE_READ_TOKENS,
            names.CACHE_WRITE_TOKENS,
            "codex.usage.reasoning_output_tokens",
        ),
    ),
)
"""Spans that are read like events."""

_SHORT: Final = {"com.anthropic.claude_code.events": "claude_code."}
"""What a scope leaves out of the names of its events."""


def event_name(scope: str, stated: str, body: object) -> str | None:
    """The name of an event that the table knows, from its attribute or field ``stated`` or its text.

    >>> event_name("com.anthropic.claude_code.events", "api_request", None)
    'claude_code.api_request'
    """
    for name in (stated, _SHORT.get(scope, "") + stated, body):
        if isinstance(name, str) and name in EVENTS:
            return name
    return None
