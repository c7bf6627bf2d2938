"""The first JSON value of a text: the same as a JSON parser's, without recursion and with its rest."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.core.codec.json_text import (
    MAX_DEPTH,
    SPACE,
    JsonTextError,
    decoded,
    exact_int,
    first_value,
    number,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values.filter(lambda value: value not in (float("inf"), float("-inf"))), st.text())
def test_any_value_before_any_rest(value, rest):
    """Every value is read as the standard parser reads it, up to where the next text starts."""
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        return
    separator = " "
    found = first_value(text + separator + rest, json.loads)
    assert (value, len(text), False) == found


@given(st.text(alphabet='{}[]",:0123456789eE+-.truefalsn \\ux\t', max_size=20))
def test_what_the_standard_parser_refuses_is_refused(text):
    """Both find the same value, or none."""
    try:
        value, end = json.JSONDecoder(parse_constant=lambda _: 1 / 0).raw_decode(text.lstrip(" \t"))
    except (ValueError, ZeroDivisionError):
        with pytest.raises(JsonTextError):
            first_value(text, json.loads)
    else:
        found = first_value(text, json.loads)
        assert end == found.end - (len(text) - len(text.lstrip(" \t")))
        assert found.repaired or value == found.value


@pytest.mark.parametrize(
    "text", ["", " ", "tr", "nul", "fal", "NaN", "Infinity", "-", "+1", ".5", "x", '"', '"\\x"', '"\t"', "[1,]",
             "[1 2]", "{1:2}", '{"a"}', '{"a":1,}', '{"a":1 "b":2}', '{"a" 1}', "[", "{", "[1", '{"a":', "]"]
)  # fmt: skip
def test_no_value(text):
    """What is no JSON value is an error, wherever it breaks."""
    with pytest.raises(JsonTextError):
        first_value(text, number)


def test_what_follows_does_not_matter():
    """The value ends where its text ends, as in Go's decoder."""
    assert [first_value(text, number)[:2] for text in ("12x", "01", "nullx", "{}}")] == [
        (12, 2),
        (0, 1),
        (None, 4),
        ({}, 2),
    ]


def test_duplicate_keys():
    """Of equal keys the last wins."""
    assert first_value('{"a":1,"a":2}', number).value == {"a": 2}


@pytest.mark.parametrize(
    ("text", "value", "repaired"),
    [
        (r'"\ud83d\ude00"', "\U0001f600", False),
        (r'"\ud800"', "\ufffd", True),
        (r'"\ud800\ud83d\ude00"', "\ufffd\U0001f600", True),
        (r'["\udc00"]', ["\ufffd"], True),
    ],
)
def test_surrogates(text, value, repaired):
    """Pairs are one character; a lone surrogate becomes U+FFFD, which is said."""
    assert (value, repaired) == first_value(text, number)[::2]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth(opening, closing):
    """Nesting up to Go's limit is read without recursion; beyond it is an error."""
    inner = "1" if closing == "}" else ""
    first_value(opening * MAX_DEPTH + inner + closing * MAX_DEPTH, number)
    with pytest.raises(JsonTextError):
        first_value(opening * (MAX_DEPTH + 1) + inner + closing * (MAX_DEPTH + 1), number)


@pytest.mark.parametrize(
    ("raw", "text", "repaired"),
    [
        (b"a", "a", False),
        (b"\xff", "\ufffd", True),
        (b"\xe2\x82x", "\ufffd\ufffdx", True),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", True),
    ],
)
def test_decoded(raw, text, repaired):
    """Each byte that is not UTF-8 becomes one U+FFFD."""
    assert (text, repaired) == decoded(raw)


@given(st.integers(-(2**70), 2**70))
def test_exact_int_of_integers(value):
    """A 64-bit integer is exact, any other is none."""
    expected = value if -(2**63) <= value < 2**63 else None
    assert expected == exact_int(str(value))
    assert expected == exact_int(f"{value}.000")
    assert expected == exact_int(f"{value}00e-2")
    assert expected == exact_int(f"{value}E+0")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000),
        ("12.0", 12),
        ("1.5", None),
        ("12e-1", None),
        ("120e-1", 12),
        ("-0", 0),
        ("0e999999999999999999999", 0),
        ("1e400", None),
        ("1e-400", None),
        ("1e99999999999999999999999999", None),
        ("1e-99999999999999999999999999", None),
        ("1e0000000000000000000000000002", 100),
        ("9223372036854775807.0", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("9007199254740993.0", 9_007_199_254_740_993),
        ("1.0000000000000000000000001", None),
        ("1" + "0" * 5000, None),
        ("x", None),
    ],
)
def test_exact_int(text, value):
    """Integral spellings are integers to the last digit; nothing is rounded to one."""
    assert value == exact_int(text)


def test_number():
    """Short integers are exact, all else is the nearest float."""
    assert [-9223372036854775808, 12.0, float("inf"), 1e25] == [
        number(text) for text in ("-9223372036854775808", "12.0", "1e400", "1" + "0" * 25)
    ]
    assert [int, float, float, float] == [
        type(number(text)) for text in ("-9223372036854775808", "12.0", "1e400", "1" + "0" * 25)
    ]


def test_space_is_go_s():
    """Go's white space and Python's differ by four control characters."""
    python = {chr(code) for code in range(0x110000) if chr(code).isspace()}
    assert set("\x1c\x1d\x1e\x1f") == python ^ set(SPACE)
