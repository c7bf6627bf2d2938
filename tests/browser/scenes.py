"""Turns that the page is looked at with: a very long one, one without an end, names that attack."""

from dataclasses import replace

from cli.conftest import with_real_ids
from report.turns import HOSTILE, example, hostile, span, turn
from turntrace.core.attribution import attribute
from turntrace.core.codec.encode import encode_block

ROUNDS = 500
TOOLS = 32


def long_turn():
    """50,000 spans in 500 rounds: a model call with its connection, a batch of tools with queues and steps."""
    spans = []
    for number in range(ROUNDS):
        spans.extend(_round(number + 1, number * 1_000))
    assert len(spans) == 50_000
    return turn(spans, ROUNDS * 1_000, model="gpt-demo", rounds=ROUNDS, session_id="s1")


def _round(number, at):
    yield span(f"p{number}", "prompt_build", at, at + 20, round=number)
    yield span(f"g{number}", "generation", at + 20, at + 400, round=number, model="gpt-demo")
    yield span(f"c{number}", "provider_connect", at + 20, at + 60, f"g{number}")
    yield span(f"b{number}", None, at + 400, at + 990, round=number, name="tools")
    for index in range(TOOLS):
        start = at + 405 + index * 4
        tool, name = f"t{number}.{index}", f"tool{index % 5}"
        yield span(
            tool, "tool_execution", start, start + 300 + index * 5, f"b{number}", round=number, tool=name
        )
        yield span(f"q{number}.{index}", "tool_queue", start, start + 20 + index, tool)
        yield span(f"w{number}.{index}", "process_wait", start + 150, start + 200 + index, tool)


def one_round():
    """50,000 spans in one round, one after the other."""
    phases = ("generation", "tool_execution", "tool_queue", "retry_wait")
    spans = [
        span(f"x{at}", phases[at % 4], at * 2, at * 2 + 2, round=1, name=f"s{at}") for at in range(50_000)
    ]
    return turn(spans, 100_000, rounds=1)


def stopped_turn():
    """A turn whose agent was killed: no end, a model call that never came back."""
    spans = example().spans[:5]
    return replace(turn(spans, 0, status="interrupted", model="gpt-demo"), completed_ns=None)


def hostile_turn():
    """Names that would break out of a page."""
    return hostile()


def write(path, *turns):
    """The turns as a trace file."""
    with path.open("wb") as file:
        for one in map(with_real_ids, turns):
            made = attribute(
                one.spans, started_ns=one.started_ns, completed_ns=one.completed_ns, root_id=one.span_id
            )
            file.writelines(encode_block(one, made))
    return path


__all__ = ["HOSTILE", "hostile_turn", "long_turn", "one_round", "stopped_turn", "write"]
