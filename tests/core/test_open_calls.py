"""Model calls whose span stays open while their tools run."""

import pytest

from core.raws import MS, raw
from turntrace.core.open_calls import cut_at_tools
from turntrace.core.turns import assemble


def vercel(span_id, start_ms, end_ms, operation, **fields):
    """A span of the Vercel AI SDK."""
    return raw(span_id, start_ms, end_ms, name=operation, attributes={"ai.operationId": operation}, **fields)


def ends(*spans):
    """The ends (ms) and the ids of those that were cut for waiting."""
    found, waited = cut_at_tools(list(spans))
    return [one.end_ns // MS for one in found], sorted(key[1] for key in waited)


def stream(start_ms, end_ms, span_id="g", **fields):
    """A streamed call below ``p``."""
    return vercel(span_id, start_ms, end_ms, "ai.streamText.doStream", parent="p", **fields)


def called(span_id, start_ms, end_ms, **fields):
    """A tool below ``p``."""
    return vercel(span_id, start_ms, end_ms, "ai.toolCall", parent="p", **fields)


def test_a_call_that_waits_for_its_tools_ends_where_they_begin():
    """The last run of tools without a gap is taken off, its parallel ones together."""
    assert ends(stream(0, 1010), called("a", 400, 900), called("b", 450, 1000)) == ([400, 900, 1000], ["g"])


@pytest.mark.parametrize(
    "spans",
    [
        [stream(0, 1010), called("a", 400, 600)],  # it went on streaming
        [stream(0, 300), called("a", 400, 600)],  # the tool came after it
        [stream(500, 700), called("a", 400, 600)],  # another call's tool
        [stream(0, 1010), called("a", 400, 1000, trace_id="t2")],
        [vercel("g", 0, 1010, "ai.generateText.doGenerate", parent="p"), called("a", 400, 1000)],
        [stream(0, 1010)],
    ],
)
def test_other_calls_stay(spans):
    """Real overlap is no mistake."""
    assert ends(*spans) == ([one.end_ns // MS for one in spans], [])


def test_on_a_busy_machine_the_end_may_come_later():
    """A tenth of the tools' time is left for it."""
    assert ends(stream(0, 5300), called("a", 1000, 5000))[1] == ["g"]
    assert ends(stream(0, 5500), called("a", 1000, 5000))[1] == []


def test_a_short_overlap_with_the_next_step_is_cut_without_a_word():
    """Claude Code and codex end a call's span some milliseconds after its tool began, but wait for none."""
    scope = "com.anthropic.claude_code.tracing"

    def claude(span_id, start_ms, end_ms, kind):
        return raw(span_id, start_ms, end_ms, scope=scope, parent="p", attributes={"span.type": kind})

    assert ends(claude("g", 0, 424, "llm_request"), claude("a", 400, 900, "tool")) == ([400, 900], [])
    assert ends(claude("g", 0, 850, "llm_request"), claude("a", 400, 900, "tool")) == ([850, 900], [])


def test_a_turn_tells_which_calls_were_cut():
    """A reader may want to know."""
    root = vercel("p", 0, 1100, "ai.streamText")
    (turn,) = assemble([root, stream(0, 1010), called("a", 400, 1000)])
    assert [(one.code, one.span_ids) for one in turn.warnings] == [("ended_with_tools", ("g",))]
