"""Turns of Gemini CLI on a terminal, whose own span ends before they do."""

from core.raws import raw
from turntrace.core.continued_turns import with_continuations


def span(span_id, start, end, operation, parent=None, scope="gemini-cli"):
    """A span of the CLI."""
    attributes = {"gen_ai.operation.name": operation}
    return raw(span_id, start, end, scope=scope, name=operation, parent=parent, attributes=attributes)


def test_a_turn_ends_with_the_last_span_that_goes_on_for_it():
    """Over a chain of them; a turn without one, and what goes on for nothing, are as they were."""
    given = [
        span("a", 0, 10, "user_prompt"),
        span("b", 10, 20, "system_prompt", "a"),
        span("c", 20, 35, "system_prompt", "b"),
        span("d", 12, 15, "llm_call", "b"),
        span("e", 40, 50, "user_prompt"),
        span("f", 41, 45, "system_prompt", "e"),
        span("g", 60, 70, "system_prompt"),
        span("h", 0, 90, "system_prompt", "a", scope="another"),
    ]
    ends = {one.span_id: one.end_ns for one in with_continuations(given)}
    before = {one.span_id: one.end_ns for one in given}
    assert ends == {**before, "a": before["c"]}
    assert with_continuations(given[:1]) == given[:1]
