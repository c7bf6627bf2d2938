"""A stream whose span ended at the headers, while it is recorded: nothing is counted twice or made up, and it is said."""

import time

import turntrace as tt
from recordings import Recorded
from turntrace.files.read import read_paths

CALL = {"logfire.span_type": "span", "gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
RECORD = {
    **CALL,
    "logfire.span_type": "log",
    "duration": 0.02,
    "gen_ai.usage.input_tokens": 9,
    "gen_ai.usage.output_tokens": 4,
}


def test_a_record_of_a_stream_is_no_second_call(tmp_path):
    """One call with unknown tokens, and a warning that names the record."""
    out = tmp_path / "t.ndjson"
    with Recorded(out) as recorded, tt.turn("a"):
        tracer = recorded.tracer("logfire.openai")
        tracer.start_span("Chat Completion", attributes=CALL).end()
        time.sleep(0.02)
        now_ns = time.time_ns()
        record = tracer.start_span("streaming response", attributes=RECORD, start_time=now_ns)
        record.end(now_ns)
    (turn,) = read_paths([str(out)]).turns
    assert turn.counters["model_requests"] == 1
    assert [usage.output_tokens for usage in turn.usage] == [None]
    assert [span.name for span in turn.spans if span.phase == "generation"] == ["Chat Completion"]
    (warned,) = [one for one in turn.warnings if one.code == "ended_at_headers"]
    assert warned.span_ids == (f"{record.get_span_context().span_id:016x}",)


def test_other_spans_of_no_length_are_no_streams(tmp_path):
    """A log line of the application is none."""
    out = tmp_path / "t.ndjson"
    with Recorded(out) as recorded, tt.turn("a"):
        recorded.tracer("logfire").start_span("hello", attributes={"logfire.span_type": "log"}).end()
    (turn,) = read_paths([str(out)]).turns
    assert not [one for one in turn.warnings if one.code == "ended_at_headers"]
