"""Streamed calls whose span ended at the headers: what logfire writes, put right."""

from core.raws import MS, agent, raw
from turntrace.core.late_streams import with_whole_streams
from turntrace.core.turns import assemble
from turntrace.core.usage import total

SCOPE = "logfire.openai"
COMMON = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.provider.name": "openai"}


def request(span_id, start_ms, end_ms, **fields):
    """The span of a call, over when the headers came."""
    attributes = {**COMMON, "logfire.span_type": "span", **fields.pop("attributes", {})}
    return raw(
        span_id, start_ms, end_ms, name="Chat Completion", scope=SCOPE, attributes=attributes, **fields
    )


def record(span_id, at_ms, duration_s, tokens=(40, 10), **fields):
    """What is written when its stream is over."""
    attributes = {**COMMON, "logfire.span_type": "log", "duration": duration_s, "gen_ai.response.id": span_id}
    if tokens is not None:
        attributes |= {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]}
    return raw(span_id, at_ms, at_ms, name="streaming response", scope=SCOPE, attributes=attributes, **fields)


def calls(spans):
    """Start, end (ms) and id of the calls of a turn, its tokens and the spans it warns of."""
    (turn,) = assemble(spans)
    found = [
        (span.start_ns // MS, span.end_ns // MS, span.span_id)
        for span in turn.spans
        if span.phase == "generation"
    ]
    used = total(turn.usage, turn.counters["model_requests"])
    warned = {warning.code: warning.span_ids for warning in turn.warnings}
    return found, (used.input_tokens, used.output_tokens), warned.get("ended_at_headers", ())


def test_a_call_lasts_as_long_as_its_stream_and_has_its_tokens():
    """54 ms until the headers, 406 ms of stream: one call of 463 ms, named in a warning."""
    spans = [agent("r", 0, 500), request("a", 0, 54, parent="r"), record("b", 463, 0.406, parent="r")]
    assert calls(spans) == ([(0, 463, "a")], (40, 10), ("a",))


def test_calls_one_after_another_and_side_by_side_each_have_their_own():
    """Every record finds the call that ended last before its stream began."""
    spans = [
        agent("r", 0, 2000),
        request("a", 0, 50, parent="r"),
        request("b", 5, 60, parent="r"),
        record("x", 300, 0.240, tokens=(1, 1), parent="r"),
        record("y", 400, 0.345, tokens=(2, 2), parent="r"),
        request("c", 500, 550, parent="r"),
        record("z", 900, 0.345, tokens=(4, 4), parent="r"),
    ]
    found, tokens, late = calls(spans)
    assert [span_id for _, _, span_id in found] == ["a", "b", "c"]
    assert sorted(end for _, end, _ in found) == [300, 400, 900]
    assert (tokens, late) == ((7, 7), ("a", "b", "c"))


def test_a_record_whose_call_is_missing_stands_for_it():
    """A sampled or lost span: the call began its duration before the record."""
    assert calls([agent("r", 0, 500), record("b", 463, 0.4, parent="r")]) == (
        [(63, 463, "b")],
        (40, 10),
        ("b",),
    )


def test_what_is_no_stream_stays_as_it_is():
    """Calls that were not streamed, and records of anything else."""
    whole = request(
        "a", 0, 54, attributes={"gen_ai.usage.output_tokens": 3, "gen_ai.usage.input_tokens": 1}, parent="r"
    )
    spans = [agent("r", 0, 500), whole]
    assert with_whole_streams(spans) == (spans, frozenset())
    odd = [
        record("b", 463, "soon", parent="r"),
        record("c", 463, -1, parent="r"),
        record("d", 463, 1e9, parent="r"),
        raw("e", 463, 463, attributes={"logfire.span_type": "log", "duration": 0.4}, parent="r"),
    ]
    assert with_whole_streams([*spans, *odd]) == ([*spans, *odd], frozenset())
    assert calls([*spans, record("z", 400, 0.3, parent="r")])[1] == (41, 13)


def test_a_stream_that_failed_is_a_call_that_failed():
    """The record says how it ended."""
    spans = [
        agent("r", 0, 500),
        request("a", 0, 54, parent="r"),
        record("b", 463, 0.4, None, parent="r", status="error"),
    ]
    (turn,) = assemble(spans)
    (call,) = [span for span in turn.spans if span.phase == "generation"]
    assert (call.status, call.outcome) == ("error", "error")
