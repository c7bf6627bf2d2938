"""Event keys: what a trace is asked for."""

import pytest

from turntrace.core.codec.keys import event_keys, missing_keys


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        (b'{"type":"trace","name":"run"}\r\n', ["trace:run"]),
        (b'{"type":"prefix_hash"}', ["prefix_hash"]),
        (b'{"event":"verify","name":"go-test"}', ["verify:go-test"]),
        (b'{"type":" ","event":"e","name":" x "}', ["e:x"]),
        (b'{"type":5,"event":"e"}', ["e"]),
        (b'{"type":" trace ","name":5}', ["trace"]),
        (b'{"type":"a","name":"\xc2\xa0b\xe2\x80\x80"}', ["a:b"]),
        (b'{"name":"a"}', []),
        (b"null", []),
        (b"[1]", []),
        (b"noise", []),
        (b"", []),
        (b'{"type":"a"', []),
        (b'{"type":"a"} oops', []),
        (b'{"type":"a"}{"type":"b"}', []),
        (b'{"type":"a","v":1e400}', []),
        (b'{"type":"a","v":1e-400}', ["a"]),
        (b'{"type":"a","v":NaN}', []),
        (b'{"type":"\xff"}', ["\ufffd"]),
        (b'{"type":"\\ud800"}', ["\ufffd"]),
        (b'\xc2\xa0{"type":"a"}\xe2\x80\xa9', ["a"]),
        (b'\xef\xbb\xbf{"type":"a"}', []),
        (b'{"type":"a","v":' + b"[" * 2000 + b"]" * 2000 + b"}", ["a"]),
    ],
)
def test_one_line(raw, keys):
    """A line that is one object yields the key of its type, or event, and name, trimmed."""
    assert keys == event_keys([raw])


def test_keys_are_sorted_by_bytes_and_unique():
    """Order and repetition of lines do not matter."""
    lines = [
        b'{"type":"\xf0\x9f\x98\x80"}',
        b'{"type":"b"}',
        b'{"type":"\xef\xbf\xbf"}',
        b'{"type":"b"}',
        b'{"type":"B"}',
    ]
    assert event_keys(lines) == ["B", "b", "\uffff", "\U0001f600"]


def test_missing_keys():
    """Required keys are trimmed, blank ones dropped; nothing missing is an empty list."""
    lines = [b'{"type":"a"}']
    assert missing_keys(["c", " a ", "", "  ", "b", "c "], lines) == ["b", "c"]
    assert missing_keys(["a"], lines) == []
