"""The first moments of a turn: first token and what it waited for, first visible text, first tool."""

from collections import Counter

from turntrace.core.attribution import attribute
from turntrace.report.blocks import Facts
from turntrace.report.case import Case
from turntrace.report.rounding import Unit, apportion
from turntrace.report.strings import Words

__all__ = ["first_token_parts", "moments"]

_PLAIN_NAMES = {
    "prompt_build": "prompt",
    "tool_partition": "prompt",
    "provider_queue": "queue",
    "provider_connect": "connect",
    "generation": "model",
    "retry_wait": "retry",
}


def first_token_parts(case: Case) -> dict[str, int]:
    """What the time to the first token was spent on, in nanoseconds; empty when it is unknown."""
    turn = case.turn
    if turn.first_token_ns is None or turn.started_ns is None:
        return {}
    before = attribute(
        [span for span in turn.spans if span.start_ns < turn.first_token_ns],
        started_ns=turn.started_ns,
        completed_ns=turn.first_token_ns,
        root_id=turn.span_id,
    )
    parts: Counter[str] = Counter()
    for totals in before.phases:
        parts[_PLAIN_NAMES.get(totals.name, totals.name)] += totals.wall_share_ns or 0
    parts["other"] += before.unattributed_ns or 0
    order = dict.fromkeys((*_PLAIN_NAMES.values(), *parts))
    return {name: parts[name] for name in order if parts[name]}


def moments(case: Case, unit: Unit) -> Facts | None:
    """The line of first moments as offsets from the start of the turn; None when all are unknown."""
    turn = case.turn
    start_ns = turn.started_ns
    if start_ns is None:
        return None
    parts: list[tuple[Words, str]] = []
    for name, at_ns in (
        ("first token", turn.first_token_ns),
        ("visible", turn.first_visible_ns),
        ("first tool", turn.first_useful_ns),
    ):
        if at_ns is not None:
            text = unit.of(at_ns - start_ns) if parts else unit.with_name(at_ns - start_ns)
            parts.append(((f"{name} {text}",), _breakdown(case, unit) if name == "first token" else ""))
    return Facts(parts=tuple(parts)) if parts else None


def _breakdown(case: Case, unit: Unit) -> str:
    parts = first_token_parts(case)
    ticks = apportion(list(parts.values()), 1, unit.tick_ns)
    texts = [f"{name} {unit.text(tick)}" for name, tick in zip(parts, ticks, strict=True) if tick]
    return f" ({', '.join(texts)})" if texts else ""
