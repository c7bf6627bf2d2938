"""What a dialect is made of: records without behaviour.

A row names what betrays a dialect (a scope, an attribute, a span name) and what its values mean. The
facts of a dialect name the attributes that hold its tokens, models and names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from turntrace.core import attributes as names

__all__ = ["Facts", "Role", "Row", "Tokens", "Verdict"]


class Role(StrEnum):
    """What a span is in its turn. A LEAF maps to nothing: `other` without children, else structure."""

    TURN = "turn"
    AGENT = "agent"
    STRUCTURE = "structure"
    PHASE = "phase"
    LEAF = "leaf"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a dialect says of a span; one instance for each distinct answer.

    ``phase`` is set for PHASE only. ``http_attempt``: below a generation this is a provider_connect.
    """

    role: Role
    phase: str | None
    dialect: str
    http_attempt: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One way to know a span.

    ``scopes`` are prefixes, none means any scope. ``key`` is the attribute whose value decides; without
    one the exact span name does. ``otherwise`` answers for values that are not in ``verdicts``; without
    it they are left to the rows below. ``named`` overrules by (value, span name), where one ``*`` stands for
    anything.
    """

    key: str
    verdicts: Mapping[str, Verdict]
    scopes: tuple[str, ...] = ()
    otherwise: Verdict | None = None
    named: tuple[tuple[str, str, Verdict], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Where a dialect keeps its counts, best name first; ``name#a.b`` is a path into JSON text."""

    input: tuple[str, ...]
    output: tuple[str, ...]
    cached: tuple[str, ...] = ()
    cache_write: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    total: tuple[str, ...] = ()
    input_excludes_cache: bool = False
    output_excludes_reasoning: bool = False
    zero_is_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Where a dialect keeps the rest. ``answered``: attributes that only a model's answer brings.

    ``first_chunk`` and ``first_token`` are (name, nanoseconds in its unit). ``affixes`` surround the
    name of the tool or agent in the span's own name; an empty pair takes the whole name.
    ``request``: what was sent, if content is kept. ``cut_by_error``: what a failed call without a finish
    reason counted is not its usage. ``exception_is_failure``: spans that failed have an exception event and
    the status ok. ``called``: the agent, where a turn does not
    name it.
    """

    tokens: Tokens
    agent: tuple[str, ...] = (names.AGENT_NAME,)
    session: tuple[str, ...] = (names.CONVERSATION_ID, "session.id")
    tool: tuple[str, ...] = (names.TOOL_NAME,)
    model: tuple[str, ...] = (names.REQUEST_MODEL, names.RESPONSE_MODEL)
    provider: tuple[str, ...] = (names.PROVIDER, names.SYSTEM)
    response_id: tuple[str, ...] = (names.RESPONSE_ID,)
    finished: tuple[str, ...] = (names.FINISH_REASONS,)
    answered: tuple[str, ...] = ()
    first_chunk: tuple[tuple[str, int], ...] = ()
    first_token: tuple[tuple[str, int], ...] = ()
    affixes: tuple[tuple[str, str], ...] = ()
    request: tuple[str, ...] = ()
    cut_by_error: bool = True
    exception_is_failure: bool = False
    called: str | None = None
