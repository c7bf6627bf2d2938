"""Zero's reader, fault by fault: each expectation was measured with Go's own packages."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.core.codec.compat import MAX_LINE_BYTES, CompatTrace, read_compat
from turntrace.errors import TraceReadError

HEADER = b'{"type":"trace","started_at":"2026-03-01T12:00:00Z","completed_at":"2026-03-01T12:00:01Z"}\n'
NOON_NS = 1_772_366_400_000_000_000
MIN_INT64 = -(2**63)
NO_HEADER = "parse trace: not a valid NDJSON trace (no type:trace header)"


def span_of(fields: bytes):
    """The one span of a trace whose span line has these fields."""
    [span] = read_compat(HEADER + b'{"type":"span",' + fields + b"}").spans
    return span


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (b"12", 12),
        (b"-0", 0),
        (b"1.5", 1),
        (b"-1.9", -1),
        (b"1e3", 1000),
        (b"9223372036854775807", 2**63 - 1),
        (b"9223372036854775808", MIN_INT64),
        (b"-9223372036854775809", MIN_INT64),
        (b"99999999999999999999999999", MIN_INT64),
        (b"1e400", 0),
        (b"-1e400", 0),
        (b'"12"', 0),
        (b"true", 0),
        (b"null", 0),
        (b"{}", 0),
    ],
)
def test_counter_values(value, count):
    """Integers are exact, floats cut, what does not fit becomes the smallest, anything else 0."""
    trace = read_compat(HEADER + b'{"type":"counter","name":5,"value":' + value + b"}")
    assert (("", count),) == trace.counters


def test_counters_are_all_kept():
    """Equal counters stay, in order; a value that is absent is 0."""
    trace = read_compat(HEADER + b'{"type":"counter","name":"a","value":1}\n{"type":"counter","name":"a"}')
    assert trace.counters == (("a", 1), ("a", 0))


@pytest.mark.parametrize(
    ("fields", "duration_ns", "exclusive_ns"),
    [
        (b'"duration_ms":1.001', 1_000_999, 1_000_999),
        (b'"duration_ms":-5', -5_000_000, -5_000_000),
        (b'"duration_ms":"5"', 0, 0),
        (b'"duration_ms":true', 0, 0),
        (b'"duration_ms":1e13', MIN_INT64, MIN_INT64),
        (b'"duration_ms":5,"exclusive_ms":0', 5_000_000, 0),
        (b'"duration_ms":5,"exclusive_ms":null', 5_000_000, 0),
        (b'"duration_ms":5,"exclusive_ms":"2"', 5_000_000, 0),
        (b'"duration_ms":5,"exclusive_ms":9', 5_000_000, 9_000_000),
        (b'"exclusive_ms":9', 0, 9_000_000),
    ],
)
def test_durations(fields, duration_ns, exclusive_ns):
    """A float product, cut; the duration stands in for the exclusive time only where that key is absent."""
    span = span_of(fields)
    assert (duration_ns, exclusive_ns) == (span.duration_ns, span.exclusive_ns)


def test_747_durations_lose_a_nanosecond():
    """Of 0.000 to 50.000 ms these many are read one nanosecond low, 1.001 first."""
    lines = b"".join(b'{"type":"span","duration_ms":%d.%03d}\n' % divmod(us, 1000) for us in range(50_001))
    low = [us for us, span in enumerate(read_compat(HEADER + lines).spans) if span.duration_ns != us * 1000]
    assert (len(low), low[:3]) == (747, [1001, 1003, 1005])


def test_times():
    """A start alone gives the end; an end alone stays alone; the zero time is unknown."""
    assert times_of(b'"start":"2026-03-01T12:00:00Z","duration_ms":5') == (NOON_NS, NOON_NS + 5_000_000)
    assert times_of(b'"end":"2026-03-01T12:00:00Z","duration_ms":5') == (None, NOON_NS)
    assert times_of(b'"start":5,"end":"0001-01-01T00:00:00Z","duration_ms":5') == (None, None)


def times_of(fields: bytes):
    """Start and end of that span."""
    span = span_of(fields)
    return span.start_ns, span.end_ns


def test_names_and_parents():
    """Names that are no strings are empty, such parents top level; nesting is not derived again."""
    span = span_of(b'"name":1,"parent":2')
    assert (span.name, span.parent) == ("", "")
    assert span_of(b'"parent":"nobody"').parent == "nobody"


def test_header_fields():
    """Fields of the wrong type are empty; a second header replaces every field and keeps the events."""
    first = b'{"type":"trace","run_id":"r","session_id":"s","profile":"p","first_token_at":"2026-03-01T12:00:00Z"}\n'
    counter = b'{"type":"counter","name":"a","value":1}\n'
    trace = read_compat(first + counter)
    assert (trace.run_id, trace.session_id, trace.profile, trace.first_token_ns) == ("r", "s", "p", NOON_NS)
    again = read_compat(first + counter + b'{"type":"trace","run_id":5,"profile":"q"}\n')
    assert (again.run_id, again.session_id, again.profile, again.first_token_ns) == ("", "", "q", None)
    assert trace.counters == again.counters


def test_events():
    """Fields of events that are missing or wrongly typed become empty, 0 or false."""
    trace = read_compat(
        HEADER
        + b'{"type":"output_budget","tool":"grep","original_bytes":"5","retained_bytes":7,"truncated":1}\n'
        + b'{"type":"prefix_hash","tools":"ff","schema":5}\n{"type":"task_state","revision":4.5}\n'
    )
    budget = trace.output_budgets[0]
    assert tuple(budget[key] for key in ("tool", "original_bytes", "retained_bytes", "truncated")) == (
        "grep",
        0,
        7,
        False,
    )
    assert (trace.prefix_hashes[0]["tools"], trace.prefix_hashes[0]["schema"]) == ("ff", "")
    assert (trace.task_states[0]["revision"], trace.task_states[0]["status"]) == (4, "")


def test_empty_events():
    """An event without fields has each of the contract's, empty, 0 or false."""
    trace = read_compat(HEADER + b'{"type":"prefix_hash"}\n{"type":"output_budget"}\n{"type":"task_state"}')
    events = (*trace.prefix_hashes, *trace.output_budgets, *trace.task_states)
    assert [len(event) for event in events] == [9, 9, 14]
    assert not any(value for event in events for value in event.values())


@pytest.mark.parametrize(
    ("line", "known"),
    [
        (b'{"type":"counter"} oops', True),
        (b'{"type":"counter"}{"type":"x"}', True),
        (b'\xe2\x80\xa8{"type":"counter"}\xc2\xa0', True),
        (b'{"type":"counter","name":"\xff"}', True),
        (b'{"type":"counter","v":' + b"[" * 9999 + b"]" * 9999 + b"}", True),
        (b'{"type":"counter","v":' + b"[" * 10_000 + b"]" * 10_000 + b"}", False),
        (b'{"type":" counter"}', False),
        (b'{"Type":"counter"}', False),
        (b'{"type":"counter","v":NaN}', False),
        (b'\x1c{"type":"counter"}', False),
        (b'\xef\xbb\xbf{"type":"counter"}', False),
        (b'[{"type":"counter"}]', False),
        (b"null", False),
        (b'"counter"', False),
        (b'{"type":"cou', False),
    ],
)
def test_lines_after_the_header(line, known):
    """The first value of a line counts; what is no object of a known type is passed over in silence."""
    assert known == (len(read_compat(HEADER + line + b'\n{"type":"counter"}\n').counters) == 2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "parse trace: empty input (no trace emitted)"),
        (b" \n\xc2\xa0\n\t", "parse trace: empty input (no trace emitted)"),
        (b"noise\n" + HEADER, NO_HEADER),
        (b"null\n" + HEADER, NO_HEADER),
        (b'{"type":"counter"}\n' + HEADER, NO_HEADER),
        (b"\xef\xbb\xbf" + HEADER, NO_HEADER),
        (HEADER, "parse trace: header present but no events recovered (corrupt or truncated)"),
        (
            HEADER + b'{"type":"x"}',
            "parse trace: header present but no events recovered (corrupt or truncated)",
        ),
    ],
)
def test_errors(data, message):
    """Zero's errors, word for word."""
    with pytest.raises(TraceReadError) as error:
        read_compat(data)
    assert message == str(error.value)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("size", [MAX_LINE_BYTES - 1, MAX_LINE_BYTES])
def test_long_lines(size, end):
    """A line of 4 MiB fails the whole file, one byte less does not; a CR counts."""
    counter = b'{"type":"counter"}'
    data = HEADER + counter + b" " * (size - len(counter) - (end == b"\r\n")) + end
    if size < MAX_LINE_BYTES:
        assert len(read_compat(data).counters) == 1
    else:
        with pytest.raises(TraceReadError, match=r"^bufio\.Scanner: token too long$"):
            read_compat(data)


def trace_of(*spans: bytes, header: bytes = HEADER) -> CompatTrace:
    """A trace of spans with these fields."""
    return read_compat(header + b"\n".join(b'{"type":"span",' + fields + b"}" for fields in spans))


def test_attributed_and_coverage():
    """Attributed is a sum over the top level; coverage a union, not cut to the window, at most 1."""
    early = b'"start":"2026-03-01T11:59:59Z","end":"2026-03-01T12:00:00.5Z","duration_ms":1500'
    inner = b'"start":"2026-03-01T12:00:00Z","end":"2026-03-01T12:00:00.5Z","duration_ms":500,"parent":"x"'
    backwards = b'"start":"2026-03-01T12:00:01Z","end":"2026-03-01T12:00:00Z","duration_ms":1'
    touching = b'"start":"2026-03-01T12:00:00.5Z","end":"2026-03-01T12:00:00.6Z"'
    trace = trace_of(inner, touching, backwards)
    assert (trace.wall_ns, trace.attributed_ns, trace.coverage) == (1_000_000_000, 1_000_000, 0.6)
    assert trace_of(early, inner).coverage == 1.0
    assert trace_of(backwards).coverage == 0.0
    assert trace_of(inner, header=b'{"type":"trace"}\n').coverage == 0.0


def test_integers_overflow_as_in_go():
    """Sums wrap around, differences of times saturate."""
    late = b'{"type":"trace","started_at":"1500-01-01T00:00:00Z","completed_at":"9999-01-01T00:00:00Z"}\n'
    trace = trace_of(b'"duration_ms":9e12', b'"duration_ms":9e12', header=late)
    assert (trace.wall_ns, trace.attributed_ns) == (2**63 - 1, 18 * 10**18 - 2**64)


@given(st.binary(max_size=60), st.booleans())
def test_only_the_documented_error(noise, headed):
    """Whatever the bytes, the reader returns or raises TraceReadError."""
    with suppress(TraceReadError):
        read_compat(HEADER * headed + noise)
