"""Reading blocks: every kind of damage has its code and its place, and the rest is read."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.codec.generated import encoded
from core.codec.test_encode import TURN
from turntrace.core.codec.compat import read_compat
from turntrace.core.codec.decode import Block, read_blocks, read_strict, verdict_on
from turntrace.core.codec.issues import MAX_ISSUES
from turntrace.core.codec.keys import event_keys
from turntrace.core.model import Mark, Turn, Usage, Warn
from turntrace.errors import ContractError, TraceReadError

NOON_NS = 1_772_366_400_000_000_000
HEADER = b'{"type":"trace","name":"run","started_at":"2026-03-01T12:00:00Z","completed_at":"2026-03-01T12:00:01Z"}\n'
COUNTER = b'{"type":"counter","name":"model_requests","value":1}\n'
FULL = (Path(__file__).parents[2] / "data" / "ndjson" / "valid_full.ndjson").read_bytes()


def blocks_of(data: bytes, *, strict: bool = False, **options) -> list[Block]:
    """The blocks of a file."""
    return list(read_blocks(io.BytesIO(data), strict=strict, **options))


def block_of(data: bytes, **options) -> Block:
    """The one block of a file."""
    [block] = blocks_of(data, **options)
    return block


def codes_of(data: bytes) -> list[str]:
    """The codes of all issues of a file, in order."""
    return [issue.code for block in blocks_of(data) for issue in block.issues]


def lines_of(turn: Turn = TURN) -> list[bytes]:
    """The lines of a block of ours."""
    return encoded(turn)


def edited(line: bytes, **fields) -> bytes:
    """A line with fields replaced."""
    return json.dumps({**json.loads(line), **fields}).encode() + b"\n"


def without(line: bytes, *keys: str) -> bytes:
    """A line with fields left out."""
    return (
        json.dumps({key: value for key, value in json.loads(line).items() if key not in keys}).encode()
        + b"\n"
    )


# -- files ------------------------------------------------------------------------------------------------


def test_a_file_that_zero_wrote():
    """Header, spans, counters and events of a contract trace become a turn."""
    block = block_of(FULL, strict=True, path="full.ndjson")
    turn = block.turn
    assert (block.verdict, block.issues, block.first_line, block.path) == ("accept", (), 1, "full.ndjson")
    assert (
        turn.run_id,
        turn.session_id,
        turn.profile,
        turn.schema_version,
    ) == ("run-1", "sess-1", "cold", None)
    assert (turn.started_ns, turn.completed_ns) == (NOON_NS, NOON_NS + 1_000_000_000)
    assert (turn.first_token_ns, turn.first_useful_ns) == (NOON_NS + 400_000_000, None)
    assert turn.counters == {"input_tokens": 1200, "model_requests": 1, "output_tokens": 80}
    assert [event.type for event in turn.events] == ["prefix_hash", "output_budget", "task_state"]
    assert turn.events[2].fields["revision"] == 4
    generation, connect, _ = turn.spans
    assert (generation.span_id, "containment") == (connect.parent_id, connect.parent_source)
    assert (generation.name, generation.phase) == ("generation", "generation")
    assert block.attribution.attributed_ns == 1_000_000_000


@pytest.mark.parametrize("mode", [True, False])
def test_issues_have_their_place(mode):
    """An issue names its line and the byte its line starts at; both modes list all of them."""
    data = HEADER + b"\n" + b'{"x\n' + COUNTER + b'{"type":"counter","name":"a","value":"1"}\n'
    block = block_of(data, strict=mode)
    expected = [
        ("bad_json_line", 3, len(HEADER) + 1),
        ("counter_value_invalid", 5, len(HEADER) + 5 + len(COUNTER)),
    ]
    assert expected == [(issue.code, issue.line, issue.offset) for issue in block.issues]
    assert ("reject" if mode else "accept_drop", 2) == (block.verdict, block.dropped_lines)


def test_blocks_start_at_headers_with_a_version():
    """A header with schema_version starts a turn; one without is a turn too, and an error."""
    lines = b"".join(lines_of())
    first, second, third = blocks_of(lines + lines + HEADER + COUNTER, strict=True)
    assert first.turn == second.turn
    assert (1, len(lines_of()) + 1) == (first.first_line, second.first_line)
    assert (first.verdict, second.verdict, third.verdict) == ("accept", "accept", "reject")
    assert [issue.code for issue in third.issues] == ["duplicate_header"]
    assert verdict_on([first, second, third], strict=True) == "reject"
    assert verdict_on(blocks_of(lines + HEADER + COUNTER), strict=False) == "accept"


def test_a_lost_start_does_not_lose_the_rest():
    """What comes before the first header is one issue; the next whole block is read."""
    lines = lines_of()
    lost, found = blocks_of(b"".join(lines[1:]) + HEADER + b"".join(lines))
    assert (lost.turn, lost.verdict, [issue.code for issue in lost.issues]) == (None, "reject", ["no_header"])
    assert (found.turn.run_id, found.verdict) == ("r1", "accept")
    assert verdict_on([lost, found], strict=False) == "accept_drop"


def test_empty_input_has_no_line():
    """An empty input is one issue without a line."""
    [issue] = block_of(b"\n \n").issues
    assert (issue.code, issue.line) == ("empty", None)
    assert verdict_on([], strict=False) == "reject"


def test_read_strict_raises_at_the_first_error():
    """Strict reading raises with code, file, line and offset; what came before is returned."""
    lines = b"".join(lines_of())
    blocks = read_strict(io.BytesIO(lines + HEADER + COUNTER), path="f")
    assert next(blocks).turn.run_id == "r1"
    with pytest.raises(ContractError, match=r"^f:23: duplicate_header: ") as error:
        next(blocks)
    assert ("duplicate_header", 23, len(lines)) == (error.value.code, error.value.line, error.value.offset)
    assert len(list(read_strict([HEADER, COUNTER, b'{"type":"future"}\n']))) == 1


def test_one_block_at_a_time():
    """A block is returned before the lines of the block after the next are asked for."""
    lines = lines_of()
    asked = 0

    def endless():
        nonlocal asked
        while True:
            for line in lines:
                asked += 1
                yield line

    next(read_blocks(endless(), strict=True))
    assert len(lines) + 1 == asked


def test_issues_are_bounded():
    """Garbage does not fill the memory: issues beyond a number are counted."""
    block = block_of(HEADER + COUNTER + b"x\n" * (MAX_ISSUES + 5))
    assert (len(block.issues), block.issues_omitted) == (MAX_ISSUES, 5)
    assert block_of(HEADER + COUNTER + b"x\n" * (MAX_ISSUES + 5), strict=True).verdict == "reject"


def test_line_limit():
    """A line beyond the limit is reported and the turn is read without it."""
    long = b'{"type":"counter","name":"' + b"x" * 300 + b'","value":1}\n'
    block = block_of(HEADER + long + COUNTER, max_line_bytes=200)
    assert ([i.code for i in block.issues], block.turn.counters) == (["line_too_long"], {"model_requests": 1})


@pytest.mark.parametrize("size", [4_194_303, 4_194_304])
def test_a_line_of_four_mebibytes(size):
    """Where zero loses the file we read it, in both modes."""
    start, end = b'{"type":"counter","name":"tool_calls","value":1,"x":"', b'"}'
    line = start + b"x" * (size - len(start) - len(end)) + end + b"\n"
    assert tuple(
        getattr(part, name)
        for block in blocks_of(HEADER + line, strict=True)
        for part, name in ((block, "verdict"), (block.turn, "counters"))
    ) == ("accept", {"tool_calls": 1})
    if size > 4_194_303:
        with pytest.raises(TraceReadError):
            read_compat(HEADER + line)


# -- torn blocks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"".join(encoded(TURN)), FULL], ids=["ours", "zero's"])
def test_cut_at_every_byte_of_the_last_line(data):
    """Whatever is missing of the last line, only that line is lost, and it is said."""
    whole = block_of(data)
    start = data.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(data)):
        block = block_of(data[:end])
        codes = {issue.code for issue in block.issues}
        ours = {"block_torn"} if whole.turn.schema_version else set()
        if end == len(data) - 1:
            assert (whole.turn, set()) == (block.turn, codes)
        elif end == start:
            assert ours == codes
        else:
            assert {"truncated_tail", *ours} == codes
            assert (block.verdict, block.complete) == ("accept_drop", False)
        assert whole.turn.spans == block.turn.spans


def test_a_torn_block_is_interrupted():
    """A block with fewer lines than its header counts is there, interrupted, and not complete."""
    torn, whole = blocks_of(b"".join(lines_of()[:5]) + b"".join(lines_of()))
    assert (torn.complete, torn.turn.status, torn.verdict) == (False, "interrupted", "accept_drop")
    assert [(i.code, i.message) for i in torn.issues] == [
        ("block_torn", "4 of the block's 21 lines are there")
    ]
    assert (whole.complete, whole.turn.status, whole.verdict) == (True, "ok", "accept")


def test_a_torn_header_is_no_turn():
    """Of a block without its lines nothing is usable."""
    block = block_of(lines_of()[0])
    assert (block.turn, block.attribution, block.verdict) == (None, None, "reject")
    assert [issue.code for issue in block.issues] == ["block_torn", "no_events"]


def test_a_garbled_line_tears_the_block():
    """A line that cannot be read is a line that is missing; header numbers are then not compared."""
    lines = lines_of()
    lines[1] = b"garbage\n"
    block = block_of(b"".join(lines))
    assert {"bad_json_line", "block_torn"} == {issue.code for issue in block.issues}
    assert not block.complete


def test_more_lines_than_the_header_counts():
    """Foreign lines behind a block are reported against its header."""
    assert codes_of(b"".join(lines_of()) + COUNTER.replace(b"model_requests", b"x")) == ["header_mismatch"]


def test_lines_of_zero_s_files_are_not_counted():
    """Only our own headers count lines."""
    assert codes_of(HEADER.replace(b"{", b'{"lines":7,', 1) + COUNTER) == []


# -- headers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "codes"),
    [
        ({"run_id": 5}, ["field_type"]),
        ({"run_id": None}, []),
        ({"name": "other"}, ["header_name"]),
        ({"completed_at": "2026-03-01T11:00:00Z"}, ["window_negative"]),
        ({"completed_at": "soon"}, ["timestamp_invalid"]),
        ({"first_token_at": "soon"}, ["timestamp_invalid"]),
        ({"started_at": 5}, ["field_type"]),
        ({"trace_id": "x"}, ["id_invalid"]),
        ({"trace_id": "0" * 32}, ["id_invalid"]),
        ({"trace_id": ""}, []),
        ({"span_id": "AA00000000000000"}, ["id_invalid"]),
        ({"span_id": "0" * 16}, ["id_invalid"]),
        ({"labels": ["x"]}, ["field_type"]),
        ({"labels": {"a": 1}}, ["field_type"]),
        ({"labels": None}, []),
        ({"labels": 0}, ["field_type"]),
        ({"rounds": 1.5}, ["field_type"]),
        ({"rounds": 2.0}, []),
        ({"rounds": True}, ["field_type"]),
        ({"sampled": 1}, ["field_type"]),
        ({"status": "fine"}, ["field_type"]),
        ({"turn_source": "nowhere"}, ["field_type"]),
        ({"schema_version": 2}, ["unknown_type"]),
        ({"schema_version": "1"}, ["field_type"]),
        ({"lines": "21"}, ["field_type"]),
        ({"wall_ms": 1000.0019}, []),
        ({"wall_ms": 1000.0025}, ["header_mismatch"]),
        ({"wall_ms": None}, ["header_mismatch"]),
        ({"wall_ms": "1000"}, ["field_type"]),
        ({"attributed_ms": 0}, ["header_mismatch"]),
        ({"coverage": 0.7014}, []),
        ({"coverage": 0.702}, ["header_mismatch"]),
        ({"attribution": 1}, ["header_mismatch"]),
        ({"active_ms": 1}, ["header_mismatch"]),
        ({"unattributed_ms": 1}, ["header_mismatch"]),
        ({"busy_ms": 1}, ["header_mismatch"]),
        ({"critical_path_ms": 1}, ["header_mismatch"]),
        ({"usage_complete": False}, ["header_mismatch"]),
        ({"usage_reports": 1}, ["header_mismatch"]),
        ({"usage_missing": None}, ["header_mismatch"]),
        ({"new_key": [1, {}]}, []),
    ],
)
def test_our_header(fields, codes):
    """Fields are checked for their type, numbers against what the spans give; the turn is read anyway."""
    header, *rest = lines_of()
    block = block_of(edited(header, **fields) + b"".join(rest))
    assert codes == [issue.code for issue in block.issues]
    assert block.verdict == "accept"
    assert {1} == {issue.line for issue in block.issues} | {1}
    assert TURN.spans[0] in block.turn.spans


def test_an_absent_number_is_not_compared():
    """A header that leaves a number out says nothing wrong."""
    header, *rest = lines_of()
    assert codes_of(without(header, "wall_ms", "lines", "status", "usage_complete") + b"".join(rest)) == []


@pytest.mark.parametrize(
    ("fields", "codes"),
    [
        ({"wall_ms": 1000, "attributed_ms": 1000, "coverage": 1, "attribution": 1}, []),
        ({"wall_ms": 1000.01}, ["header_mismatch"]),
        ({"attributed_ms": 1400}, ["header_mismatch"]),
        ({"attributed_ms": 1000.004}, []),
        ({"coverage": 0.9}, ["header_mismatch"]),
        ({"wall_ms": -3600000, "completed_at": "2026-03-01T11:00:00Z"}, ["window_negative"]),
        ({"wall_ms": 0, "coverage": 0, "attribution": 0, "completed_at": ""}, []),
    ],
)
def test_zero_s_header(fields, codes):
    """A header of zero's is compared with zero's own formulas."""
    header, rest = FULL.split(b"\n", 1)
    found = [issue.code for issue in block_of(edited(header, **fields) + rest).issues]
    assert codes == [code for code in found if code != "span_outside_window"]


def test_zero_s_first_revision_divided_by_the_wall():
    """Its attribution may exceed 1: attributed over wall is right as well."""
    spans = b'{"type":"span","name":"a","duration_ms":800,"start":"2026-03-01T12:00:00Z"}\n' * 2
    for ratio, codes in ((0.8, []), (1.6, []), (1.2, ["header_mismatch"])):
        header = edited(HEADER, coverage=0.8, attributed_ms=1600, attribution=ratio)
        assert codes == codes_of(header + spans)


def test_an_empty_window_of_zero_s():
    """A run that took no time covers nothing."""
    header = edited(HEADER, completed_at="2026-03-01T12:00:00Z", wall_ms=0, coverage=0, attribution=0)
    assert codes_of(header + COUNTER) == []


def test_numbers_with_unplaced_spans():
    """Spans without a place count in zero's sum and in no union."""
    header = edited(HEADER, attributed_ms=12.5, coverage=0)
    assert codes_of(header + b'{"type":"span","name":"a","duration_ms":12.5}\n') == ["span_interval_missing"]


def test_a_lost_counter_hides_no_other_fault():
    """Numbers that come from spans are compared although a counter was dropped; token counts are not."""
    bad = b'{"type":"counter","name":"tool_calls","value":null}\n'
    header = edited(HEADER, coverage=0.5)
    assert codes_of(header + COUNTER + bad) == ["header_mismatch", "counter_value_invalid"]
    lines = lines_of()
    row = next(row for row, line in enumerate(lines) if b"model_requests" in line)
    lines[row] = edited(lines[row], value="2")
    lines[1] = edited(lines[1], exclusive_ms=0)
    assert codes_of(b"".join(lines)) == ["span_exclusive_invalid", "counter_value_invalid"]


# -- spans ------------------------------------------------------------------------------------------------

SPAN = b'{"type":"span","name":"generation","start":"2026-03-01T12:00:00Z","end":"2026-03-01T12:00:00.9Z","duration_ms":900}\n'


@pytest.mark.parametrize(
    ("fields", "codes", "interval_ms"),
    [
        ({}, [], (0, 900)),
        ({"duration_ms": 900.002}, [], (0, 900)),
        ({"duration_ms": 900.003}, ["span_duration_mismatch"], (0, 900)),
        ({"duration_ms": -5}, ["span_duration_invalid"], (0, 900)),
        ({"duration_ms": "900"}, ["span_duration_invalid"], (0, 900)),
        ({"duration_ms": True}, ["span_duration_invalid"], (0, 900)),
        ({"duration_ms": None}, ["span_duration_invalid"], (0, 900)),
        ({"duration_ms": 1e300}, ["span_duration_invalid"], (0, 900)),
        ({"start": None}, [], (0, 900)),
        ({"end": None}, [], (0, 900)),
        ({"start": "soon"}, ["timestamp_invalid"], (0, 900)),
        ({"end": "2026-03-01T11:00:00Z"}, ["span_end_before_start"], (0, 0)),
        ({"end": None, "duration_ms": "x"}, ["span_duration_invalid"], None),
        ({"end": None, "start": None}, ["span_interval_missing"], None),
        ({"end": None, "start": None, "duration_ms": 1, "exclusive_ms": 2}, ["span_interval_missing", "span_exclusive_invalid"], None),
        ({"exclusive_ms": 0}, [], (0, 900)),
        ({"exclusive_ms": 900.002}, [], (0, 900)),
        ({"exclusive_ms": 901}, ["span_exclusive_invalid"], (0, 900)),
        ({"exclusive_ms": -1}, ["span_exclusive_invalid"], (0, 900)),
        ({"exclusive_ms": None}, ["span_exclusive_invalid"], (0, 900)),
        ({"exclusive_ms": "0"}, ["span_exclusive_invalid"], (0, 900)),
        ({"parent": "nobody"}, ["parent_unknown"], (0, 900)),
        ({"parent": ""}, [], (0, 900)),
        ({"parent": 5}, ["field_type"], (0, 900)),
        ({"name": 5}, ["field_type"], (0, 900)),
        ({"name": ""}, ["field_type"], (0, 900)),
        ({"start": "2026-03-01T11:59:59Z", "duration_ms": 1900}, ["span_outside_window"], (-1000, 900)),
        ({"end": "2026-03-01T12:00:02Z", "duration_ms": 2000}, ["span_outside_window"], (0, 2000)),
        ({"start_ns": NOON_NS}, [], (0, 900)),
        ({"start_ns": NOON_NS + 100_000_000, "duration_ms": 800}, ["timestamp_invalid"], (100, 900)),
        ({"start_ns": NOON_NS, "start": "2026-03-01T13:00:00+01:00"}, [], (0, 900)),
        ({"start_ns": NOON_NS, "start": None}, [], (0, 900)),
        ({"start_ns": NOON_NS, "start": "soon"}, ["timestamp_invalid"], (0, 900)),
        ({"start_ns": str(NOON_NS)}, ["field_type"], (0, 900)),
        ({"start_ns": 2**65}, ["field_type"], (0, 900)),
        ({"status": "bad"}, ["field_type"], (0, 900)),
        ({"outcome": "bad"}, ["field_type"], (0, 900)),
        ({"round": "1"}, ["field_type"], (0, 900)),
        ({"attributes": {"a": [1]}}, ["field_type"], (0, 900)),
        ({"attributes": {"a": None, "b": 1}}, [], (0, 900)),
        ({"span_id": "x"}, ["id_invalid"], (0, 900)),
        ({"span_id": "00000000000000ab", "parent_id": "y"}, ["id_invalid"], (0, 900)),
    ],
)  # fmt: skip
def test_a_span(fields, codes, interval_ms):
    """Each field that is wrong has its code; the interval is what the rest of the line tells."""
    block = block_of(HEADER + edited(SPAN, **fields) + COUNTER)
    assert codes == [issue.code for issue in block.issues]
    assert {2} == {issue.line for issue in block.issues} | {2}
    if interval_ms is None:
        assert block.turn.spans == ()
        assert len(block.unplaced) + block.dropped_lines == 1
    else:
        [span] = block.turn.spans
        assert tuple(NOON_NS + value * 1_000_000 for value in interval_ms) == (span.start_ns, span.end_ns)
        assert block.dropped_lines == 0


def test_derived_ends_stay_in_range():
    """A length that leads out of the range of times gives no interval."""
    for fields in ({"end": None, "start_ns": 2**64 - 5}, {"start": None, "end_ns": -(2**63)}):
        block = block_of(HEADER + edited(without(SPAN, "start", "end"), **fields))
        assert (block.turn.spans, len(block.unplaced)) == ((), 1)


def test_unplaced_spans_are_named():
    """A span of known length and unknown place is listed apart, and the turn warns of it."""
    block = block_of(
        HEADER + b'{"type":"span","name":"a","duration_ms":12.5,"exclusive_ms":2.5,"parent":"a"}\n'
    )
    [part] = block.unplaced
    assert (part.name, part.duration_ns, part.exclusive_ns, part.parent) == ("a", 12_500_000, 2_500_000, "a")
    [warn] = block.turn.warnings
    assert (
        warn.code,
        warn.message,
    ) == ("span_interval_missing", "a: 12.500 ms at an unknown time, not counted")


def test_a_duration_that_is_missing():
    """Where the interval is known a missing duration follows from it; elsewhere the span is lost."""
    block = block_of(HEADER + without(SPAN, "duration_ms") + without(SPAN, "duration_ms", "end"))
    assert [issue.code for issue in block.issues] == ["span_duration_invalid"] * 2
    assert (len(block.turn.spans), block.dropped_lines) == (1, 1)


def test_parents_by_name_are_ambiguous_by_name():
    """With several spans of the parent's name the file does not tell which; the interval decides."""
    other = edited(SPAN, start="2026-03-01T12:00:00.9Z", end="2026-03-01T12:00:01Z", duration_ms=100)
    child = edited(
        SPAN, name="provider_connect", end="2026-03-01T12:00:00.1Z", duration_ms=100, parent="generation"
    )
    assert codes_of(HEADER + SPAN + child) == []
    block = block_of(HEADER + SPAN + other + child + child)
    assert [issue.code for issue in block.issues] == ["parent_ambiguous"]
    assert block.turn.spans[0].span_id == block.turn.spans[2].parent_id


def test_a_lost_line_may_have_been_the_parent():
    """In a block with a line missing an unknown parent is no news."""
    assert codes_of(HEADER + edited(SPAN, parent="x") + b'{"type":"span","name":"x\n') == ["bad_json_line"]


def test_mixed_ids():
    """Ids that are missing beside others are reported and made up, never taken twice."""
    taken = edited(SPAN, span_id="0000000000000001", parent_id="0000000000000002")
    block = block_of(HEADER + taken + SPAN)
    assert [issue.code for issue in block.issues] == ["id_invalid"]
    assert [span.span_id for span in block.turn.spans] == ["0000000000000001", "0000000000000002"]
    assert {"otel"} == {span.parent_source for span in block.turn.spans}


def test_duplicate_and_cyclic_spans():
    """Two spans with one id, and parents in a circle, are warnings."""
    lines = lines_of()
    spans = [line for line in lines if b'"type":"span"' in line]
    double = block_of(edited(lines[0], lines=22) + b"".join(lines[1:]) + spans[0])
    assert [(issue.code, issue.line) for issue in double.issues] == [("duplicate_span", 23)]
    circle = [replace(span, parent_id=span.span_id) for span in TURN.spans[:1]]
    assert codes_of(b"".join(lines_of(replace(TURN, spans=tuple(circle))))) == ["cycle"]


def test_exclusive_times_are_recomputed():
    """A written exclusive time that does not follow from the spans is an error at its line."""
    lines = lines_of()
    lines[1] = edited(lines[1], exclusive_ms=100)
    block = block_of(b"".join(lines))
    [issue] = block.issues
    assert (issue.code, issue.line) == ("span_exclusive_invalid", 2)
    assert "off by -260000000 ns" in issue.message
    lines[1] = without(lines[1], "exclusive_ms")
    assert codes_of(b"".join(lines)) == []


def test_structure_without_an_interval_is_lost():
    """Structure is its place; without it nothing is left."""
    lines = lines_of()
    row = next(row for row, line in enumerate(lines) if b'"structure"' in line)
    lines[row] = without(lines[row], "start", "start_ns")
    assert codes_of(b"".join(lines)) == ["span_duration_invalid"]


# -- other lines ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (b"12", 12), (b"1e3", 1000), (b"12.0", 12), (b"9007199254740993.0", 9_007_199_254_740_993),
        (b"-9223372036854775808", -(2**63)), (b"1.5", None), (b"9223372036854775808", None), (b"1e400", None),
        (b"1e300", None), (b'"12"', None), (b"true", None), (b"null", None), (b"[]", None), (b"{}", None),
    ],
)  # fmt: skip
def test_counter_values(value, count):
    """A counter is an exact 64-bit integer or unknown; it is never made up."""
    block = block_of(HEADER + COUNTER + b'{"type":"counter","name":"a","value":' + value + b"}\n")
    assert count == block.turn.counters.get("a")
    assert [issue.code for issue in block.issues] == ["counter_value_invalid"] * (count is None)
    assert block.dropped_lines == (count is None)


@pytest.mark.parametrize("name", [b'""', b'" "', b"5", b"null"])
def test_counter_names(name):
    """A counter without a name is dropped and reported."""
    block = block_of(HEADER + COUNTER + b'{"type":"counter","value":1,"name":' + name + b"}\n")
    assert [issue.code for issue in block.issues] == ["counter_name_missing"]
    assert (len(block.turn.counters), block.dropped_lines, block.verdict) == (1, 1, "accept_drop")


@pytest.mark.parametrize(
    ("line", "codes", "fields"),
    [
        ({"type": "output_budget", "truncated": "true", "tool": "grep"}, ["field_type"], {"tool": "grep"}),
        ({"type": "output_budget", "original_bytes": 5.0}, [], {"original_bytes": 5.0}),
        ({"type": "output_budget", "original_bytes": 5.5}, ["field_type"], {}),
        ({"type": "output_budget", "original_bytes": True}, ["field_type"], {}),
        ({"type": "output_budget", "truncated": 1}, ["field_type"], {}),
        ({"type": "prefix_hash", "tools": None}, ["field_type"], {}),
        (
            {"type": "task_state", "revision": 4, "extra": "x", "nested": [1]},
            [],
            {"revision": 4, "extra": "x"},
        ),
    ],
)
def test_events(line, codes, fields):
    """A field of an event that has the wrong type is reported and left out; scalars beside are kept."""
    block = block_of(HEADER + json.dumps(line).encode())
    assert codes == [issue.code for issue in block.issues]
    [event] = block.turn.events
    assert (line["type"], fields) == (event.type, event.fields)


def test_usage_marks_and_warnings():
    """The lines beside the spans come back as records, whatever is unknown in them."""
    lines = [
        {"type": "usage", "span_id": "00000000000000ab", "provenance": "missing", "raw": {"a": 1, "b": None}},
        {"type": "mark", "name": "m", "at": "2026-03-01T12:00:00.5Z"},
        {"type": "warning", "code": "c", "message": "m", "span_ids": ["x"]},
        {"type": "warning", "code": "c"},
    ]
    block = block_of(HEADER + COUNTER + b"\n".join(json.dumps(line).encode() for line in lines))
    assert block.issues == ()
    assert (Usage(span_id="00000000000000ab", provenance="missing", raw={"a": 1}),) == block.turn.usage
    assert (Mark(name="m", at_ns=NOON_NS + 500_000_000),) == block.turn.marks
    assert (Warn(code="c", message="m", span_ids=("x",)), Warn(code="c", message="")) == block.turn.warnings


@pytest.mark.parametrize(
    "line",
    [
        {"type": "usage", "input_tokens": "5"},
        {"type": "usage", "provenance": "guessed"},
        {"type": "usage", "raw": {"a": 1.5}},
        {"type": "mark", "name": "m"},
        {"type": "mark", "at": "2026-03-01T12:00:00Z"},
        {"type": "warning"},
        {"type": "warning", "code": "c", "span_ids": "x"},
        {"type": "warning", "code": "c", "span_ids": [1]},
    ],
)
def test_wrong_types_of_other_lines(line):
    """What cannot be read of a usage, mark or warning line is a field_type."""
    block = block_of(HEADER + COUNTER + json.dumps(line).encode())
    assert [issue.code for issue in block.issues] == ["field_type"]
    assert block.dropped_lines == (line["type"] != "usage")


@pytest.mark.parametrize("kind", [b'"future"', b'" span "', b"5", b"null", b"{}", b"[1]"])
def test_unknown_types(kind):
    """A type that is unknown, or none, is news and no error."""
    block = block_of(HEADER + COUNTER + b'{"type":' + kind + b"}\n", strict=True)
    assert ([issue.code for issue in block.issues], block.verdict) == (["unknown_type"], "accept")


def test_two_objects_on_a_line():
    """The first object counts, the rest of the line is reported."""
    block = block_of(HEADER + COUNTER[:-1] + b'{"type":"counter","name":"b","value":2}\n')
    assert (
        [i.code for i in block.issues],
        block.turn.counters,
    ) == (["trailing_content"], {"model_requests": 1})


# -- noise ------------------------------------------------------------------------------------------------


def damaged(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """Bytes with parts cut out and noise put in."""
    for place, length, noise in edits:
        at = place % (len(data) + 1)
        data = data[:at] + noise + data[at + length :]
    return data


edits = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 9), st.binary(max_size=5)), max_size=5)


@given(edits, st.sampled_from([FULL, b"".join(encoded(TURN)), HEADER + SPAN, b""]))
def test_noise_never_raises(changes, data):
    """Whatever happens to the bytes, reading ends with a verdict on each block, and writing again works."""
    data = damaged(data, changes)
    event_keys(data.split(b"\n"))
    for block in blocks_of(data, strict=True):
        assert block.issues or block.verdict == "accept"
        if block.turn is not None:
            lines = encoded(block.turn)
            assert lines == encoded(block_of(b"".join(lines)).turn)


@given(st.binary())
def test_random_bytes(data):
    """Bytes that are no trace have no turn."""
    assert {"reject"} == {block.verdict for block in blocks_of(data)}
