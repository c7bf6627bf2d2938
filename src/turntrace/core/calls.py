"""Counts each model call and each tool call once, however many instrumentations saw it.

Two instrumentations of one call make a span in a span, or two spans side by side. The outermost gives
the latency, the one that says most gives the tokens, any of them the retries.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from turntrace.core.model import Usage
from turntrace.core.usage import richer

__all__ = [
    "SAME_SHARE",
    "Calls",
    "Generation",
    "ToolSpan",
    "count_tools",
    "fold",
    "is_one_model",
    "tokens_of",
]

SAME_SHARE: Final = 0.9
"""Two spans side by side are one call when they overlap by this share of the longer one."""

_LOOK_BACK: Final = 64
"""How many calls that started earlier are compared with a call: a bound on the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A generation span. Rows number a forest in preorder; ``last`` is the last row below ``row``.

    ``above`` is the generation it lies in, with no tool and no agent between. ``attempts`` counts the
    provider_connect spans below it, ``resends`` is what it says itself. ``is_refused``: it failed
    before any answer. ``request`` tells requests apart, where the span holds what was sent.
    """

    row: int
    last: int
    above: int | None
    start_ns: int
    end_ns: int
    instrumentation: str
    model: str | None = None
    response_id: str | None = None
    usage: Usage | None = None
    resends: int | None = None
    attempts: int = 0
    parent: int = -1
    is_refused: bool = False
    request: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The model calls behind the generation spans.

    ``into`` leads from a span that repeats a call to the span that stands for it. ``wrappers`` lie
    around several calls and are none. ``retried`` leads from a try that was refused to the call that took
    its place. ``usages`` has the calls that reported or should have, by row.
    """

    rows: tuple[int, ...]
    into: Mapping[int, int]
    retried: Mapping[int, int]
    wrappers: frozenset[int]
    usages: Mapping[int, Usage]
    retries: int | None


@dataclass(slots=True, kw_only=True)
class _Call:
    """A call while its spans are gathered. ``partners``: the other instrumentations that saw it."""

    span: Generation
    usage: Usage | None
    response_id: str | None
    retries: int | None
    partners: set[str] = field(default_factory=set)

    @property
    def identity(self) -> str | int:
        """What tells this call from another."""
        return self.span.row if self.response_id is None else self.response_id


def fold(generations: Sequence[Generation]) -> Calls:
    """Find the calls behind ``generations`` (parents before their children).

    A generation in a generation is the same call, unless several calls in it reported tokens: then it
    is a wrapper around them. Side by side, spans of two instrumentations are one call when neither
    model, response id nor tokens tell them apart and they overlap by nine tenths, or have the same
    tokens and one lies in the other. One after the other, a refused try and the same request again are
    one call.
    """
    into: dict[int, int] = {}
    wrappers: list[int] = []
    calls: list[_Call] = []
    inside: defaultdict[int, list[_Call]] = defaultdict(list)
    hidden: defaultdict[int, int] = defaultdict(int)
    for span in reversed(generations):
        inner = inside.pop(span.row, [])
        answers = hidden.pop(span.row, 0) + _answers(inner)
        if answers > 1:
            wrappers.append(span.row)
            calls.extend(inner)
            if span.above is not None:
                hidden[span.above] += answers
            continue
        call = _gathered(span, inner)
        into.update((other.span.row, span.row) for other in inner)
        (calls if span.above is None else inside[span.above]).append(call)
    retried: dict[int, int] = {}
    kept = _one_after_another(_side_by_side(calls, into), retried)
    return Calls(
        rows=tuple(sorted(call.span.row for call in kept)),
        into={row: _end_of(into, row) for row in into},
        retried={row: _end_of(retried, row) for row in retried},
        wrappers=frozenset(wrappers),
        usages={call.span.row: call.usage for call in kept if call.usage is not None},
        retries=_added(call.retries for call in kept),
    )


def _answers(inner: Iterable[_Call]) -> int:
    """How many different answers with tokens lie in a generation."""
    return len({call.identity for call in inner if call.usage and call.usage.provenance == "reported"})


def _gathered(span: Generation, inner: Sequence[_Call]) -> _Call:
    """The call that ``span`` stands for, with what the spans inside it say, which are nearer to the wire."""
    tries = max(span.attempts, len({call.identity for call in inner}))
    retries = [
        span.resends,
        *(call.retries for call in inner),
        tries - 1 if tries > 1 or span.attempts else None,
    ]
    ids = [span.response_id, *(call.response_id for call in inner)]
    return _Call(
        span=span,
        usage=richer(usage for usage in (*(call.usage for call in inner), span.usage) if usage is not None),
        response_id=next((response_id for response_id in ids if response_id is not None), None),
        retries=max((count for count in retries if count is not None), default=None),
    )


def _side_by_side(calls: Iterable[_Call], into: dict[int, int]) -> list[_Call]:
    """Fold calls that two instrumentations reported without one lying in the other's tree."""
    ordered = sorted(calls, key=lambda call: (call.span.start_ns, -call.span.end_ns, call.span.row))
    if len({call.span.instrumentation for call in ordered}) < 2:  # noqa: PLR2004 - it takes two
        return ordered
    kept: list[_Call] = []
    for call in ordered:
        twin = next((other for other in reversed(kept[-_LOOK_BACK:]) if _is_same(other, call)), None)
        if twin is None:
            kept.append(call)
            continue
        into[call.span.row] = twin.span.row
        twin.partners.add(call.span.instrumentation)
        twin.usage = richer(usage for usage in (twin.usage, call.usage) if usage is not None)
        twin.retries = max((one.retries for one in (twin, call) if one.retries is not None), default=None)
    return kept


def _one_after_another(calls: Iterable[_Call], retried: dict[int, int]) -> list[_Call]:
    """Join the tries of one call that each made a span: ``calls`` come by start."""
    kept: dict[int, _Call] = {}
    latest: dict[tuple[int, str, int], _Call] = {}
    for call in calls:
        kept[call.span.row] = call
        if call.span.request is None:
            continue
        key = call.span.parent, call.span.instrumentation, call.span.request
        before = latest.get(key)
        latest[key] = call
        if before and before.span.is_refused and before.span.end_ns <= call.span.start_ns:
            retried[before.span.row] = call.span.row
            call.retries = (call.retries or 0) + (before.retries or 0) + 1
            del kept[before.span.row]
    return list(kept.values())


def _is_same(outer: _Call, inner: _Call) -> bool:
    """Whether ``inner``, which started later, is the same call seen by another instrumentation."""
    one, other = outer.span, inner.span
    if other.instrumentation in {one.instrumentation, *outer.partners} or _is_below(one, other):
        return False
    tokens, other_tokens = tokens_of(outer.usage), tokens_of(inner.usage)
    told_apart = not (
        _agree(outer.response_id, inner.response_id)
        and is_one_model(one.model, other.model)
        and _agree(tokens, other_tokens)
    )
    if told_apart:
        return False
    if tokens is not None and tokens == other_tokens and other.end_ns <= one.end_ns:
        return True
    shared_ns = min(one.end_ns, other.end_ns) - other.start_ns
    longest_ns = max(one.end_ns - one.start_ns, other.end_ns - other.start_ns)
    return shared_ns > 0 and shared_ns >= SAME_SHARE * longest_ns


def _is_below(one: Generation, other: Generation) -> bool:
    """Whether one lies in the other's tree: then a tool or an agent is between, and they are two calls."""
    return one.row < other.row <= one.last or other.row < one.row <= other.last


def _agree(one: object, other: object) -> bool:
    return one is None or other is None or one == other


def is_one_model(one: str | None, other: str | None) -> bool:
    """Whether two names may be those of one model: None is any, openai/gpt and gpt are one.

    >>> is_one_model("openai/gpt", "gpt"), is_one_model("gpt", None), is_one_model("gpt", "claude")
    (True, True, False)
    """
    return None in {one, other} or _tail(one) == _tail(other)


def _tail(model: str | None) -> str:
    return (model or "").rpartition("/")[2]


def tokens_of(usage: Usage | None) -> tuple[int | None, int | None] | None:
    """The tokens in and out that a call reported."""
    if usage is None or usage.provenance != "reported":
        return None
    return usage.input_tokens, usage.output_tokens


def _end_of(into: dict[int, int], row: int) -> int:
    """Where the chain of ``into`` ends; the path is shortened on the way."""
    path = []
    while row in into:
        path.append(row)
        row = into[row]
    into.update(dict.fromkeys(path[:-1], row))
    return row


def _added(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpan:
    """A tool_execution span. ``above`` is the tool it lies in, with no agent between."""

    row: int
    above: int | None
    tool: str | None


def count_tools(spans: Sequence[ToolSpan]) -> int:
    """Count tool calls: a span in one of the same tool, or of no name, is the same call.

    A span without a name around others is the batch, not a call.

    >>> count_tools([ToolSpan(row=0, above=None, tool=None), ToolSpan(row=1, above=0, tool="bash")])
    1
    """
    names = {span.row: span.tool for span in spans}
    batches = {span.above for span in spans if span.above is not None and names[span.above] is None}
    repeats = {
        span.row
        for span in spans
        if span.above is not None and names[span.above] is not None and span.tool in {None, names[span.above]}
    }
    return len(names.keys() - batches - repeats)
