"""What is written is read back: every turn, every byte of a block written again, and by zero's reader."""

from dataclasses import replace
from operator import attrgetter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.codec.generated import encoded, only_block, turns
from turntrace.core.codec.compat import read_compat
from turntrace.core.codec.decode import read_blocks
from turntrace.core.codec.encode import encode_block
from turntrace.core.codec.event_fields import EVENT_FIELDS
from turntrace.core.codec.keys import event_keys
from turntrace.core.codec.times import ms, ms_to_ns
from turntrace.core.model import Turn, Usage

by_id = attrgetter("span_id")
slow_to_draw = settings(suppress_health_check=[HealthCheck.too_slow])


def without_raw(usage: Usage) -> str:
    """A key to sort usage by that does not see the order of raw counts."""
    return usage.span_id + repr(replace(usage, raw={})) + repr(sorted(usage.raw.items()))


@given(turns())
@slow_to_draw
def test_rewriting_changes_no_byte(turn: Turn):
    """A block that is read and written again is the same to the byte."""
    lines = encoded(turn)
    block = only_block(lines)
    assert block.turn is not None
    assert lines == encoded(block.turn) == encode_block(block.turn, block.attribution)


@given(turns())
@slow_to_draw
def test_no_turn_is_written_with_an_error(turn: Turn):
    """Strict reading accepts every block we write; at most it warns of what the turn itself holds."""
    block = only_block(encoded(turn))
    assert (block.verdict, block.complete) == ("accept", True)
    assert [issue for issue in block.issues if issue.severity == "error"] == []


@given(turns(inside=True))
@slow_to_draw
def test_spans_in_the_window_give_no_issue(turn: Turn):
    """A block whose spans lie in the window and on no cycle is read without any issue."""
    block = only_block(encoded(turn))
    assert set() == {issue.code for issue in block.issues} - {"cycle"}


@given(turns(inside=True))
@slow_to_draw
def test_what_was_said_of_the_turn_comes_back(turn: Turn):
    """Every field of the turn survives; a span of no phase that has children is structure by then."""
    block = only_block(encoded(turn))
    read = block.turn
    phases = {times.span.span_id: times.phase for times in block.attribution.spans}
    expected = [replace(span, phase=phases[span.span_id]) for span in turn.spans]
    assert sorted(expected, key=by_id) == sorted(read.spans, key=by_id)
    for field in (
        "run_id", "started_ns", "completed_ns", "trace_id", "span_id", "root_name", "parent_run_id",
        "session_id", "profile", "agent", "model", "provider", "source", "turn_source", "status", "labels",
        "first_chunk_ns", "first_token_ns", "first_visible_ns", "first_useful_ns", "rounds", "sampled",
        "dropped", "schema_version",
    ):  # fmt: skip
        assert getattr(turn, field) == getattr(read, field), field
    assert sorted(turn.usage, key=without_raw) == sorted(read.usage, key=without_raw)
    assert sorted(turn.marks, key=repr) == sorted(read.marks, key=repr)
    assert [event for kind in EVENT_FIELDS for event in turn.events if event.type == kind] == [*read.events]
    assert {*turn.warnings} <= {*read.warnings}


@given(turns(inside=True))
@slow_to_draw
def test_zero_reads_what_we_write(turn: Turn):
    """Zero's reader accepts each block: same names, counters and parents, lengths to the microsecond."""
    lines = encoded(turn)
    block = only_block(lines)
    trace = read_compat(b"".join(lines))
    assert (turn.run_id, turn.started_ns, turn.completed_ns) == (
        trace.run_id,
        trace.started_ns,
        trace.completed_ns,
    )
    phase_of = {times.span.span_id: times.phase for times in block.attribution.spans}
    expected = {
        (times.phase, phase_of.get(times.phase_parent_id) or "", times.span.start_ns, times.span.end_ns)
        for times in block.attribution.spans
        if times.phase is not None
    }
    assert expected == {(span.name, span.parent, span.start_ns, span.end_ns) for span in trace.spans}
    for span in trace.spans:
        cut_ns = (span.end_ns - span.start_ns) // 1000 * 1000
        assert span.duration_ns in {cut_ns, cut_ns - 1}  # zero loses a nanosecond of some
    assert block.turn.counters == dict(trace.counters)
    assert {"trace:run", "counter:model_requests", "counter:tool_calls"} <= {*event_keys(lines)}


@given(st.lists(turns(), min_size=2, max_size=3))
@slow_to_draw
def test_a_file_is_its_blocks(several: list[Turn]):
    """Blocks one after the other are read as each alone."""
    alone = [encoded(turn) for turn in several]
    blocks = list(read_blocks([line for lines in alone for line in lines], strict=True))
    assert [only_block(lines).turn for lines in alone] == [block.turn for block in blocks]
    assert alone == [encode_block(block.turn, block.attribution) for block in blocks]


@given(st.integers(0, 50_000_000))
def test_milliseconds_are_stable(us: int):
    """Milliseconds that were read are written with the same digits."""

    assert us * 1000 == ms_to_ns(ms(us * 1000))
