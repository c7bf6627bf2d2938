"""Turns whose own span ends before they do: what goes on below it belongs to them.

Gemini CLI in a terminal ends the span of a prompt when the tools that were asked for have run, and goes on in a
span below it that is made for what the tools said; so does that one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from turntrace.core import attributes as names
from turntrace.core.ancestry import Key, inherited, key_of
from turntrace.core.model import RawSpan

__all__ = ["with_continuations"]

_SCOPE: Final = "gemini-cli"
_BEGINS: Final = "user_prompt"
_GOES_ON: Final = "system_prompt"


def with_continuations(spans: Sequence[RawSpan]) -> Sequence[RawSpan]:
    """``spans``, each turn among them ended with the last span that goes on for it."""
    later = [span for span in spans if _does(span, _GOES_ON)]
    if not later:
        return spans
    turns = inherited(spans, lambda span: key_of(span) if _does(span, _BEGINS) else None)
    ends: dict[Key, int] = {}
    for span in later:
        turn = turns.get(key_of(span))
        if turn is not None:
            ends[turn] = max(span.end_ns, ends.get(turn, 0))
    return [_ended(span, ends.get(key_of(span), 0)) for span in spans]


def _does(span: RawSpan, operation: str) -> bool:
    return span.attributes.get(names.OPERATION) == operation and span.scope.startswith(_SCOPE)


def _ended(span: RawSpan, end_ns: int) -> RawSpan:
    return replace(span, end_ns=end_ns) if end_ns > span.end_ns else span
