"""The line below a title: rounds, calls and tokens, of one turn or of many."""

from collections.abc import Sequence

from turntrace.core.usage import UsageTotals, total
from turntrace.report.blocks import Facts
from turntrace.report.case import Case
from turntrace.report.rounding import count_text, quotient
from turntrace.report.strings import UNKNOWN, Words

__all__ = ["facts_of", "token_facts"]


def facts_of(cases: Sequence[Case]) -> Facts:
    """Rounds, model calls, tool calls and tokens, summed over the cases; what one of them lacks is left out."""
    parts: list[Words] = []
    rounds = _sum([case.turn.rounds for case in cases])
    if rounds is not None:
        parts.append((_counted(rounds, "round"),))
    calls = _counter(cases, "model_requests")
    if calls is not None:
        retried = _counter(cases, "retry_count", 0)
        suffix = f", {count_text(retried)} retried" if retried else ""
        parts.append((_counted(calls, "model call") + suffix + _failed(cases, "generation"),))
    tools = _counter(cases, "tool_calls")
    if tools is not None:
        parts.append((_counted(tools, "tool call") + _failed(cases, "tool_execution"),))
    usage = (
        cases[0].usage
        if len(cases) == 1
        else total([one for case in cases for one in case.turn.usage], calls or 0)
    )
    parts.extend(token_facts(usage, calls or 0))
    return Facts(parts=tuple((part, "") for part in parts))


def _failed(cases: Sequence[Case], phase: str) -> str:
    """How many calls of a phase failed or never ended, as a part of the count before it."""
    outcomes = [
        times.span.outcome for case in cases for times in case.attribution.spans if times.phase == phase
    ]
    failed, running = outcomes.count("error"), outcomes.count("incomplete")
    said = f", {count_text(failed)} failed" if failed else ""
    return said + (f", {count_text(running)} unfinished" if running else "")


def _counter(cases: Sequence[Case], name: str, default: int | None = None) -> int | None:
    return _sum([case.turn.counters.get(name, default) for case in cases])


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _counted(count: int, noun: str) -> str:
    return f"{count_text(count)} {noun}" if count == 1 else f"{count_text(count)} {noun}s"


def token_facts(usage: UsageTotals, model_requests: int = 0) -> list[Words]:
    """Tokens in and out; an unknown total is a dash, with what is known beside it."""
    calls = max(usage.reports + usage.missing, model_requests)
    if not calls:
        return []
    tokens_in = _tokens(usage, "input_tokens", "tokens in", calls)
    if usage.input_tokens and usage.cached_input_tokens is not None:
        tokens_in += f" ({quotient(usage.cached_input_tokens * 100, usage.input_tokens)} % cached)"
    return [(tokens_in,), (_tokens(usage, "output_tokens", "out", calls),)]


def _tokens(usage: UsageTotals, key: str, name: str, calls: int) -> str:
    count = getattr(usage, key)
    if count is not None:
        return f"{count_text(count)} {name}"
    known = usage.known.get(key)
    if known is None:
        return f"{UNKNOWN} {name}"
    return f"{UNKNOWN} {name} ({count_text(known)} from {usage.reports} of {calls} calls)"
