"""Reads a span by its dialect: what it is, who and which model it names, what it consumed.

Live spans and files are read by the same three functions over the same table. They are pure, never
raise on odd values, and ``classify`` is quick enough for every span of a running agent.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

import orjson

from turntrace.core import attributes as names
from turntrace.core.dialect_facts import FACTS
from turntrace.core.dialect_model import Facts, Role, Row, Verdict
from turntrace.core.dialect_table import (
    HTTP_ATTEMPT,
    LEAF,
    NAMED_TOOL,
    PLUMBING,
    ROWS,
    TOOL_NAME_PREFIXES,
)
from turntrace.core.model import Usage
from turntrace.core.usage import inclusive_input

__all__ = [
    "Description",
    "Role",
    "Verdict",
    "classify",
    "describe",
    "has_failed",
    "reports_usage",
    "request_of",
    "usage_of",
]

_MAX_COUNT: Final = 2**63 - 1
_MAX_OFFSET_NS: Final = 2**62
_NS_PER_MS: Final = 1_000_000
_HTTP_METHODS: Final = (names.HTTP_METHOD, "http.method")
_QUOTES: Final = str.maketrans("'", '"')
_ENTRY_KINDS: Final = frozenset({"server", "consumer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a span says of itself; None where it says nothing.

    ``first_*_ns`` are offsets from the span's start. ``resends``: requests sent again after a failure.
    """

    agent: str | None = None
    session_id: str | None = None
    tool: str | None = None
    model: str | None = None
    provider: str | None = None
    response_id: str | None = None
    run_id: str | None = None
    round: int | None = None
    resends: int | None = None
    first_chunk_ns: int | None = None
    first_token_ns: int | None = None
    first_visible_ns: int | None = None


def classify(scope: str, name: str, kind: str, attributes: Mapping[str, Any]) -> Verdict:
    """Say what a span is, from its scope, name, kind (as in RawSpan) and attributes.

    The answer for one and the same kind of span is one and the same object. A plain dict is the quick
    kind of mapping.

    >>> classify("any.scope", "chat m", "client", {"gen_ai.operation.name": "chat"}).phase
    'generation'
    >>> classify("my.app", "handle", "internal", {}).role
    <Role.LEAF: 'leaf'>
    """
    exact, rows, fallback = _rows(scope)
    if name in exact:
        return exact[name]
    get = attributes.get
    for key, verdicts, otherwise, named in rows:
        value = get(key)
        if value is None:
            continue
        verdict = verdicts.get(value, otherwise) if isinstance(value, str) else otherwise
        if verdict is not None:
            return _overruled(verdict, value, name, named) if named else verdict
    return _by_shape(name, kind, attributes) if fallback is None else fallback


_Named = tuple[tuple[str, str, str, Verdict], ...]
_Keyed = tuple[str, Mapping[str, Verdict], Verdict | None, _Named]


@lru_cache(maxsize=512)
def _rows(scope: str) -> tuple[Mapping[str, Verdict], tuple[_Keyed, ...], Verdict | None]:
    """The rows that can know spans of ``scope``: by exact name, by attribute in order, and for the rest."""
    mine = [row for row in ROWS if not row.scopes or scope.startswith(row.scopes)]
    exact = {name: verdict for row in mine if not row.key for name, verdict in row.verdicts.items()}
    fallback = next((row.otherwise for row in mine if not row.key and row.otherwise), None)
    return exact, tuple(_keyed(row) for row in mine if row.key), fallback


def _keyed(row: Row) -> _Keyed:
    named = ((value, pattern.partition("*"), verdict) for value, pattern, verdict in row.named)
    heads = tuple((value, head, tail, verdict) for value, (head, _, tail), verdict in named)
    return row.key, row.verdicts, row.otherwise, heads


def _overruled(verdict: Verdict, value: object, name: str, named: _Named) -> Verdict:
    for other_value, head, tail, other in named:
        if value == other_value and name.startswith(head) and name.endswith(tail):
            return other
    return verdict


def _by_shape(name: str, kind: str, attributes: Mapping[str, Any]) -> Verdict:
    """The verdict on a span that names no dialect: by its kind, else by its name."""
    if kind in _ENTRY_KINDS:
        return PLUMBING
    if kind == "client" and any(method in attributes for method in _HTTP_METHODS):
        return HTTP_ATTEMPT
    if name.startswith(TOOL_NAME_PREFIXES):
        tool = _without(NAMED_TOOL, name)
        if tool is not None and " " not in tool:
            return NAMED_TOOL
    return LEAF


def describe(verdict: Verdict, name: str, attributes: Mapping[str, Any]) -> Description:
    """Read what a span says of its agent, session, tool, model and first chunks.

    >>> verdict = classify("s", "execute_tool bash", "internal", {"gen_ai.operation.name": "execute_tool"})
    >>> describe(verdict, "execute_tool bash", {}).tool
    'bash'
    """
    get = attributes.get
    found: dict[str, Any] = {}
    for field, sources, read, unit in _readers(verdict.dialect):
        for source in sources:
            value = get(source)
            if value is not None and (value := read(value, unit)) is not None:
                found[field] = value
                break
    named = _NAMED_AFTER.get(verdict.phase or verdict.role)
    if named is not None and named not in found:
        called = FACTS[verdict.dialect].called if verdict.role is Role.TURN else None
        found[named] = _without(verdict, name) or called
    return Description(**found) if found else _NOTHING


_NOTHING: Final = Description()
_NAMED_AFTER: Final = {Role.AGENT: "agent", Role.TURN: "agent", "tool_execution": "tool"}
"""What the name of the span may tell, by phase or role."""

_Reader = tuple[str, tuple[str, ...], Callable[[Any, int], object], int]


@cache
def _readers(dialect: str) -> tuple[_Reader, ...]:
    """What to read of a span: a field, the attributes that may hold it, how, in which unit."""
    facts = FACTS[dialect]
    texts = {
        "agent": facts.agent,
        "session_id": facts.session,
        "tool": facts.tool,
        "model": facts.model,
        "provider": facts.provider,
        "response_id": facts.response_id,
        "run_id": (names.RUN_ID,),
    }
    offsets = {
        "first_chunk_ns": facts.first_chunk,
        "first_token_ns": facts.first_token,
        "first_visible_ns": ((names.FIRST_VISIBLE_MS, _NS_PER_MS),),
    }
    return (
        *((field, sources, _text, 0) for field, sources in texts.items()),
        ("round", (names.ROUND,), _number, 0),
        ("resends", (names.HTTP_RESEND,), _number, 0),
        *(
            (field, (source,), _offset_ns, unit_ns)
            for field, sources in offsets.items()
            for source, unit_ns in reversed(sources)
        ),
    )


def _text(value: object, _: int = 0) -> str | None:
    """A string that is not empty, cut."""
    return value[: names.MAX_STRING_CHARACTERS] if isinstance(value, str) and value else None


def _number(value: object, _: int = 0) -> int | None:
    return _count(value)


def _offset_ns(value: object, unit_ns: int) -> int | None:
    """An offset in nanoseconds from one in another unit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value * unit_ns) if 0 <= value * unit_ns < _MAX_OFFSET_NS else None


def usage_of(
    verdict: Verdict, span_id: str, attributes: Mapping[str, Any], *, failed: bool = False
) -> Usage | None:
    """Read what a model call consumed, once it has ended. None for spans that are no model call.

    A call that was answered without counts is ``missing``, never 0. None too for a call that ``failed``
    before any answer came: there was nothing to report. What a failed stream had counted up to the
    failure is kept in ``raw`` and is no usage.

    >>> usage_of(classify("s", "c", "client", {"gen_ai.operation.name": "chat"}), "01", {}).provenance
    'missing'
    """
    if verdict.phase != "generation":
        return None
    facts = FACTS[verdict.dialect]
    counts, raw = _counts(verdict.dialect, attributes)
    if failed and not raw and not _any(attributes, facts.answered):
        return None
    if failed and facts.cut_by_error and not _any(attributes, facts.finished):
        counts = {}
    cached, cache_write = counts.get("cached"), counts.get("cache_write")
    tokens_in, tokens_out = counts.get("input"), counts.get("output")
    if facts.tokens.input_excludes_cache:
        tokens_in = inclusive_input(tokens_in, cached, cache_write)
    if facts.tokens.output_excludes_reasoning and tokens_out is not None:
        tokens_out += counts.get("reasoning", 0)
    return Usage(
        span_id=span_id,
        provenance="reported" if "input" in counts or "output" in counts else "missing",
        model=_first_text(attributes, facts.model),
        provider=_first_text(attributes, facts.provider),
        input_tokens=tokens_in,
        cached_input_tokens=cached,
        cache_write_tokens=cache_write,
        output_tokens=tokens_out,
        reasoning_tokens=counts.get("reasoning"),
        raw=raw,
    )


def has_failed(verdict: Verdict, status: str, events: Iterable[str]) -> bool:
    """Whether a span ended in failure: by its status, or where its dialect says so by the names of its events.

    >>> has_failed(classify("s", "c", "client", {}), "ok", ["exception"])
    False
    """
    if status == "error":
        return True
    return FACTS[verdict.dialect].exception_is_failure and "exception" in events


def reports_usage(verdict: Verdict, attributes: Mapping[str, Any]) -> bool:
    """Whether the span carries token counts, as parents do that repeat those of their model calls."""
    return bool(_counts(verdict.dialect, attributes)[0])


def request_of(verdict: Verdict, attributes: Mapping[str, Any]) -> int | None:
    """A number that is the same for the same request, where the span holds what was sent; else None.

    It is good within one process only, and nothing of the request can be read from it.
    """
    for name in FACTS[verdict.dialect].request:
        sent = attributes.get(name)
        if isinstance(sent, str) and sent:
            return hash(sent)
    return None


def _counts(dialect: str, attributes: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """The counts by field, the best name winning, and every count under the name it came from."""
    counts: dict[str, int] = {}
    raw: dict[str, int] = {}
    documents: dict[str, object] = {}
    get = attributes.get
    for part, source, name, path in _token_sources(dialect):
        value = get(name)
        if value is None:
            continue
        if path:
            value = _inside(documents, name, value, path)
        count = _count(value)
        if count is not None:
            raw[source] = count
            counts.setdefault(part, count)
    counts.pop("total", None)
    if FACTS[dialect].tokens.zero_is_missing and not any(raw.values()):
        counts = {}
    return counts, raw


_TOKEN_PARTS: Final = ("input", "output", "cached", "cache_write", "reasoning", "total")


@cache
def _token_sources(dialect: str) -> tuple[tuple[str, str, str, tuple[str, ...]], ...]:
    """Where counts may be: the part, the source as the table writes it, the attribute, the path in it."""
    tokens = FACTS[dialect].tokens
    parted = (
        (part, source, source.partition("#")) for part in _TOKEN_PARTS for source in getattr(tokens, part)
    )
    return tuple(
        (part, source, name, tuple(path.split(".")) if path else ())
        for part, source, (name, _, path) in parted
    )


def _inside(documents: dict[str, object], name: str, value: object, path: tuple[str, ...]) -> object:
    """The value at ``path`` in the JSON text of an attribute, which is parsed once."""
    if name not in documents:
        documents[name] = _json(value)
    found = documents[name]
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _json(value: object) -> object:
    """A document from JSON text, or from a dict of numbers as Python prints it."""
    if not isinstance(value, str):
        return None
    try:
        return orjson.loads(value.translate(_QUOTES) if value.startswith("{'") else value)
    except orjson.JSONDecodeError:
        return None


def _count(value: object) -> int | None:
    """A count of 0 to 2^63-1, written as a number or as digits; None for anything else."""
    if isinstance(value, str):
        value = (
            int(value) if value.isascii() and value.isdigit() and len(value) <= len(str(_MAX_COUNT)) else None
        )
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT:
        return value
    return None


def _first_text(attributes: Mapping[str, Any], sources: Iterable[str]) -> str | None:
    """The first of the attributes that is a string and not empty."""
    return next((text for source in sources if (text := _text(attributes.get(source)))), None)


def _any(attributes: Mapping[str, Any], sources: Iterable[str]) -> bool:
    return any(name in attributes for name in sources)


def _without(verdict: Verdict, name: str) -> str | None:
    """The name of the tool or agent inside the span's name."""
    facts: Facts = FACTS[verdict.dialect]
    for prefix, suffix in facts.affixes:
        if name.startswith(prefix) and name.endswith(suffix) and len(name) > len(prefix) + len(suffix):
            return name[len(prefix) : len(name) - len(suffix)][: names.MAX_STRING_CHARACTERS]
    return None
