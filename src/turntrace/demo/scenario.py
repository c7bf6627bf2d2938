"""The story the demo plays: a coding agent finds and fixes a bug in four rounds.

Everything in it is fixed, so that every run sends the same requests and prints the same answer. Times are
milliseconds at speed 1; the turn takes a little under three seconds.
"""

import json
from collections.abc import Mapping
from typing import Final

from turntrace.demo.script import Conversation, Reply, TokenUsage, ToolCall

__all__ = ["ANSWER", "DEMO_SCRIPT", "MODEL", "SYSTEM_PROMPT", "TASK"]

MODEL: Final = "gpt-demo"
SYSTEM_PROMPT: Final = "You are a coding agent. Read before you write, and check your work."
TASK: Final = "read_lines drops the last line of a file without a final newline. Find out why and fix it."

_ANSWER_PIECES: Final = (
    "The last line ", "was lost because ", "read_lines split ", "at line feeds ", "and threw away ",
    "what followed the last one. ", "It now uses splitlines, ", "which keeps that rest. ",
    "Both checks pass: ", "with a final newline ", "and without one.",
)  # fmt: skip
ANSWER: Final = "".join(_ANSWER_PIECES)
"""What the agent says in the end."""

_CHECK: Final = (
    "read_lines = str.splitlines\n"
    "assert read_lines('a\\nb\\n') == ['a', 'b']\n"
    "assert read_lines('a\\nb') == ['a', 'b']\n"
    "print('2 passed')\n"
)
_FIX: Final = "def read_lines(text):\n    return text.splitlines()\n"


def _call(call_id: str, name: str, arguments: Mapping[str, str]) -> ToolCall:
    """Return a call whose arguments are streamed in two pieces."""
    text = json.dumps(arguments)
    middle = len(text) // 2
    return ToolCall(call_id=call_id, name=name, arguments=(text[:middle], text[middle:]))


def _usage(input_tokens: int, cached: int, output: int, reasoning: int = 0) -> TokenUsage:
    return TokenUsage(
        input_tokens=input_tokens,
        output_tokens=output,
        cached_input_tokens=cached,
        reasoning_tokens=reasoning,
    )


_LOOK: Final = Reply(
    header_delay_ms=15,
    first_token_ms=190,
    chunk_interval_ms=13,
    keep_alives=1,
    reasoning=(
        "The end of the file ",
        "is special here. ",
        "I should read the function ",
        "and its callers. ",
    ),
    content=("I will look at ", "read_lines and ", "where it is used."),
    tool_calls=(
        _call("call_1", "search", {"query": "read_lines"}),
        _call("call_2", "fetch", {"page": "str.splitlines"}),
        _call("call_3", "read_file", {"path": "reader.py"}),
    ),
    usage=_usage(3_120, 0, 61, 22),
)
_TRY: Final = Reply(
    header_delay_ms=15,
    first_token_ms=170,
    chunk_interval_ms=15,
    content=(
        "The loop stops ",
        "at the last line feed. ",
        "Before I change it ",
        "I try the ",
        "library's own way. ",
    ),
    tool_calls=(_call("call_4", "python", {"code": _CHECK}),),
    usage=_usage(4_410, 2_944, 52),
)
_FIX_IT: Final = Reply(
    header_delay_ms=15,
    first_token_ms=180,
    chunk_interval_ms=15,
    content=("That works. ", "I replace ", "the loop. "),
    tool_calls=(_call("call_5", "edit_file", {"path": "reader.py", "text": _FIX}),),
    usage=_usage(5_020, 4_224, 48),
)
_TELL: Final = Reply(
    header_delay_ms=15,
    first_token_ms=160,
    chunk_interval_ms=17,
    content=_ANSWER_PIECES,
    usage=_usage(5_690, 4_864, 53),
)
_TOO_MANY: Final = Reply(status=429, retry_after_ms=500, header_delay_ms=8)

DEMO_SCRIPT: Final = Conversation(((_LOOK,), (_TOO_MANY, _TRY), (_FIX_IT,), (_TELL,)))
"""What the model server answers; the second round is refused once."""
