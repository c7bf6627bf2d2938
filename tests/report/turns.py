"""Hand-made turns that the tests of reports and commands share. Times in milliseconds for people."""

from turntrace.core.model import Mark, Span, Turn, Usage

MS = 1_000_000
START_NS = 1_796_072_700_000_000_000


def span(
    span_id,
    phase,
    start,
    end,
    parent="root",
    *,
    name=None,
    attributes=None,
    **more,
):
    """A span from ``start`` to ``end`` in ms after the turn's start."""
    return Span(
        span_id=span_id,
        parent_id=parent,
        name=name or phase or span_id,
        phase=phase,
        start_ns=START_NS + round_ms(start),
        end_ns=START_NS + round_ms(end),
        attributes=attributes or {},
        **more,
    )


def round_ms(ms):
    """Milliseconds, whole or not, as integer nanoseconds."""
    return round(ms * MS)


def turn(spans, wall, **more):
    """A turn of ``wall`` ms."""
    settings = {"run_id": "run-1", "span_id": "root", "root_name": "invoke_agent", "agent": "demo-agent"}
    settings.update(more)
    return Turn(spans=tuple(spans), started_ns=START_NS, completed_ns=START_NS + round_ms(wall), **settings)


_TOKENS = ((4_000, 2_000, 70), (4_500, 3_000, 50), (4_800, 3_500, 44), (4_940, 3_538, 50))


def example(**more):
    """The turn of the command line's golden report: four rounds, three tools, one 429, one approval."""
    reason = {"turntrace.reason": "429"}
    spans = [
        span("pb1", "prompt_build", 0, 16, round=1),
        span("tp1", "tool_partition", 16, 20, round=1),
        span("g1", "generation", 20, 1020, round=1, model="gpt-demo", name="chat gpt-demo"),
        span("c1", "provider_connect", 20, 80, "g1"),
        span("t1", "tool_execution", 1020, 2360, round=1, tool="search", name="execute_tool search"),
        span("t2", "tool_execution", 1020, 1890, round=1, tool="fetch", name="execute_tool fetch"),
        span("pb2", "prompt_build", 2401, 2411, round=2),
        span("tp2", "tool_partition", 2411, 2415, round=2),
        span("g2", "generation", 2415, 4323, round=2, model="gpt-demo", name="chat gpt-demo"),
        span("c2", "provider_connect", 2415, 2419, "g2"),
        span("rw", "retry_wait", 2419, 3419, "g2", attributes=reason),
        span("c3", "provider_connect", 3419, 3423, "g2"),
        span("t3", "tool_execution", 4323, 6195, round=2, tool="edit", name="execute_tool edit"),
        span("tq", "tool_queue", 4323, 4345, "t3"),
        span("pw", "permission_wait", 4365, 5565, "t3"),
        span("ps", "process_wait", 5575, 6175, "t3"),
        span("co", "compaction", 6205, 6715),
        span("pb3", "prompt_build", 6715, 6725, round=3),
        span("tp3", "tool_partition", 6725, 6729, round=3),
        span("g3", "generation", 6729, 7633, round=3, model="gpt-demo", name="chat gpt-demo"),
        span("c4", "provider_connect", 6729, 6733, "g3"),
        span("ve", "verification", 7642, 7662),
        span("pb4", "prompt_build", 7662, 7672, round=4),
        span("tp4", "tool_partition", 7672, 7676, round=4),
        span("g4", "generation", 7676, 8420, round=4, model="gpt-demo", name="chat gpt-demo"),
        span("c5", "provider_connect", 7676, 7680, "g4"),
    ]
    settings = {
        "model": "gpt-demo",
        "session_id": "s1",
        "trace_id": "0" * 31 + "1",
        "rounds": 4,
        "counters": {"model_requests": 4, "tool_calls": 3, "retry_count": 1},
        "usage": tuple(
            Usage(
                span_id=f"g{number}",
                model="gpt-demo",
                input_tokens=tokens_in,
                cached_input_tokens=cached,
                cache_write_tokens=0,
                output_tokens=out,
                reasoning_tokens=0,
            )
            for number, (tokens_in, cached, out) in enumerate(_TOKENS, start=1)
        ),
        "marks": (Mark(name="first_token", at_ns=START_NS + 310 * MS, span_id="g1"),),
        "first_token_ns": START_NS + 310 * MS,
        "first_visible_ns": START_NS + 350 * MS,
        "first_useful_ns": START_NS + 1020 * MS,
    }
    settings.update(more)
    return turn(spans, 8420, **settings)


HOSTILE = "[bold red]x[/]\x1b[31m\u202e|`</pre><script>alert(1)</script>\r\n\t@team =1+1 *b* \u200b\ud800"
"""One string with markup, colour codes, reversed text, line ends, cell separators, HTML and a lone surrogate."""


def hostile():
    """A turn in which every string that data can choose is hostile."""
    spans = [
        span("g1", "generation", 0, 400, round=1, model=HOSTILE, name=HOSTILE),
        span("g2", "generation", 400, 500, round=1, model=HOSTILE + "2", name=HOSTILE),
        span("w1", None, 500, 980, name=HOSTILE, round=1),
        span("t1", "tool_execution", 520, 900, "w1", round=1, tool=HOSTILE, name=HOSTILE),
        span("t2", "tool_execution", 520, 700, "w1", round=1, tool="=" + HOSTILE, name=HOSTILE),
        span("x1", HOSTILE, 910, 970, name=HOSTILE, attributes={"gen_ai.tool.name": HOSTILE}),
        span("rw", "retry_wait", 980, 1000, attributes={"turntrace.reason": HOSTILE}),
    ]
    return turn(
        spans,
        1000,
        run_id=HOSTILE,
        agent=HOSTILE,
        model=HOSTILE,
        session_id=HOSTILE,
        root_name=HOSTILE,
        labels={HOSTILE: HOSTILE},
        counters={"tool_calls": 2},
        rounds=1,
    )
