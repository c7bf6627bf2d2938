"""Raw lines to records: what is kept, what is dropped, and what is said about it."""

import pytest

from turntrace.core.codec.records import MAX_LINE_BYTES, read_records


def record_of(raw: bytes):
    """The one record of a line."""
    [record] = read_records([raw])
    return record


def test_lines_and_offsets():
    """Lines count from 1, offsets in bytes; blank lines are counted and left out."""
    raw = [
        b'{"a":1}\r\n',
        b" \t\n",
        b"\r\n",
        b"\n",
        '{"é":2}\n'.encode(),
        b"\xc2\xa0\xe3\x80\x80\n",
        b'{"b":3}',
    ]
    found = [(record.line, record.offset, record.fields) for record in read_records(raw)]
    assert found == [(1, 0, {"a": 1}), (5, 15, {"é": 2}), (7, 30, {"b": 3})]


@pytest.mark.parametrize(
    ("raw", "fields", "codes"),
    [
        (b'{"a":1}\n', {"a": 1}, []),
        (b'{"a":1', None, ["truncated_tail"]),
        (b'{"a":1\n', None, ["bad_json_line"]),
        (b"[1]\n", None, ["bad_json_line"]),
        (b"null\n", None, ["bad_json_line"]),
        (b"null x\n", None, ["bad_json_line"]),
        (b'{"a":NaN}\n', None, ["bad_json_line"]),
        (b'{"a":1} oops\n', {"a": 1}, ["trailing_content"]),
        (b'{"a":1}{"a":2}\n', {"a": 1}, ["trailing_content"]),
        (b'{"a":1}{"b', {"a": 1}, ["trailing_content"]),
        (b'\xef\xbb\xbf{"a":1}\n', {"a": 1}, ["bom"]),
        (b"\xef\xbb\xbf\n", None, ["bom"]),
        (b'\0\0\0{"a":1}\n', {"a": 1}, ["bad_json_line"]),
        (b'\xef\xbb\xbf\0{"a":1}\n', {"a": 1}, ["bom", "bad_json_line"]),
        (b"\0" * 64 + b"\n", None, ["bad_json_line"]),
        (b"\0" * 64, None, ["bad_json_line"]),
        (b'{"a":"\xff"}\n', {"a": "\ufffd"}, ["bad_utf8"]),
        (b'{"a":"\\ud800"}\n', {"a": "\ufffd"}, ["bad_utf8"]),
        (b'\xc2\xa0{"a":1}\xe2\x80\xa8\n', {"a": 1}, []),
        (b'{"a":1e400}\n', {"a": float("inf")}, []),
        (b'{"a":12345678901234567890123}\n', {"a": 1.2345678901234568e22}, []),
        (b'\x1c{"a":1}\n', None, ["bad_json_line"]),
    ],
)
def test_damage(raw, fields, codes):
    """An object that can be told from the damage is kept; the damage is said in any case."""
    record = record_of(raw)
    assert (fields, codes) == (record.fields, [code for code, _ in record.problems])


def test_nesting_beyond_the_fast_parser():
    """Two thousand arrays in an extra key are no reason to drop a line."""
    record = record_of(b'{"a":1,"b":' + b"[" * 2000 + b"]" * 2000 + b"}\n")
    assert (record.fields["a"], record.problems) == (1, ())


def test_a_long_line_is_skipped():
    """A line beyond the limit is reported with its place; the next one is read."""
    long, short = read_records([b'{"a":"' + b"x" * 100 + b'"}\n', b'{"a":1}\n'], 50)
    assert (long.fields, long.problems[0][0], long.offset) == (None, "line_too_long", 0)
    assert (short.fields, short.offset) == ({"a": 1}, 109)


@pytest.mark.parametrize("size", [4_194_302, 4_194_303, 4_194_304, 5_000_000])
def test_zero_s_limit_is_none(size):
    """A line as long as the one that makes zero lose the file is an ordinary line."""
    start = b'{"a":1,"b":"'
    record = record_of(start + b"x" * (size - len(start) - 2) + b'"}\n')
    assert (record.fields["a"], record.problems) == (1, ())
    assert size < MAX_LINE_BYTES


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"v":9007199254740993.0}\n', 9_007_199_254_740_993),
        (b'\xef\xbb\xbf {"v":1e3} x\n', 1000),
        (b'{"v":1.5}\n', None),
        (b'{"v":true}\n', None),
    ],
)
def test_exact_int(raw, value):
    """A number's text decides whether it is an integer, not the float it was read as."""
    assert value == record_of(raw).exact_int("v")
