"""The model behind the agent ``reference``: replies derived from a task's solution, damaged as its class asks.

Pure: a script for the bundled model server from what has to be written and said.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from turntrace.demo.script import Conversation, ModelRequest, Reply, Script, TokenUsage, ToolCall

__all__ = ["FALLBACK_MODEL", "PRIMARY_MODEL", "Solution", "reference_script"]

PRIMARY_MODEL: Final = "reference-1"
FALLBACK_MODEL: Final = "reference-fallback"
FALLBACK_CLASS: Final = "fallback"
SILENT_CLASS: Final = "missing-usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What solves a task: files to write by relative path, None to remove, and the last words."""

    files: Mapping[str, str | None]
    answer: str


def reference_script(task_class: str, solution: Solution, handlers: int) -> Script:
    """Look, write, tell. ``handlers`` tools are asked for at once where overlap has to be shown, 0 elsewhere.

    In the class ``fallback`` the primary model is overloaded in the second round; in ``missing-usage``
    the last answer does not say what it cost.
    """
    rounds = [_round(0, "I look first. ", _looks(solution, handlers))]
    writes = [
        _call(f"w{place}", *_write(path, text)) for place, (path, text) in enumerate(solution.files.items())
    ]
    if writes:
        rounds.append(_round(1, "Now I change it. ", tuple(writes)))
    usage: TokenUsage | Literal["absent"] = "absent" if task_class == SILENT_CLASS else _usage(len(rounds))
    rounds.append(Reply(first_token_ms=4, chunk_interval_ms=1, content=_pieces(solution.answer), usage=usage))
    conversation = Conversation(tuple((reply,) for reply in rounds))
    if task_class != FALLBACK_CLASS:
        return conversation

    def overloaded(request: ModelRequest) -> Reply:
        """The primary model refuses whatever comes after the first round."""
        if request.answers and request.body.get("model") == PRIMARY_MODEL:
            return Reply(status=503, header_delay_ms=2)
        return conversation(request)

    return overloaded


def _looks(solution: Solution, handlers: int) -> tuple[ToolCall, ...]:
    if handlers:
        return tuple(
            _call(f"p{place}", "probe", {"handler": f"handler-{place}"}) for place in range(handlers)
        )
    paths = tuple(solution.files) or (".",)
    return tuple(_call(f"r{place}", "read_file", {"path": path}) for place, path in enumerate(paths))


def _write(path: str, text: str | None) -> tuple[str, dict[str, str]]:
    return ("remove_file", {"path": path}) if text is None else ("write_file", {"path": path, "text": text})


def _round(number: int, said: str, calls: tuple[ToolCall, ...]) -> Reply:
    return Reply(
        header_delay_ms=2,
        first_token_ms=5,
        chunk_interval_ms=1,
        content=(said,),
        tool_calls=calls,
        usage=_usage(number),
    )


def _usage(number: int) -> TokenUsage:
    return TokenUsage(
        input_tokens=400 + 300 * number, output_tokens=40 + number, cached_input_tokens=300 * number
    )


def _call(call_id: str, name: str, arguments: Mapping[str, str]) -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=(json.dumps(arguments),))


def _pieces(answer: str) -> tuple[str, ...]:
    """The answer in a few pieces, as a model streams it."""
    words = answer or "done"
    size = max(len(words) // 4, 1)
    return tuple(words[start : start + size] for start in range(0, len(words), size))
