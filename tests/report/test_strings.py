"""Strings from data: escaped, measured, cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.turns import HOSTILE
from turntrace.report.strings import Data, cells, fit, joined, plain, printable


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain name", "plain name"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202eevil", "\\u202eevil"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("東京", "東京"),
    ],
)
def test_what_cannot_be_seen_is_escaped(raw, shown):
    """Control, bidirectional, invisible and lone surrogate characters show as escapes, others as they are."""
    assert printable(raw) == shown


@given(st.text())
def test_printable_text_is_harmless(raw):
    """No string yields a character that is not printable, or one that UTF-8 cannot hold."""
    shown = printable(raw)
    assert shown.isprintable()
    assert shown.encode().decode() == shown


def test_words_escape_data_and_keep_our_own_text():
    """Only the pieces that came from outside are escaped."""
    assert plain(("after ", Data("a\x1bb"), " · done")) == "after a\\x1bb · done"


def test_joined_puts_the_separator_between_parts():
    """Parts keep their pieces; one part needs no separator."""
    assert joined([("a", Data("b")), ("c",)], ", ") == ("a", Data("b"), ", ", "c")
    assert joined([("a",)]) == ("a",)


def test_cells_count_wide_and_combining_characters():
    """A wide character takes two cells, a combining mark none."""
    assert cells("a東e\u0301") == 4


@given(st.text(), st.integers(0, 30))
def test_fit_never_exceeds_the_width(raw, width):
    """Whatever the text, the result fits, and what fits is unchanged."""
    shown = printable(raw)
    cut = fit(shown, width)
    assert cells(cut) <= width
    if cells(shown) <= width and len(shown) <= 4 * width:
        assert cut == shown
    elif width:
        assert cut.endswith("…")


def test_fit_cuts_a_wide_character_whole():
    """A cut never leaves half a cell."""
    assert fit("東京都", 4) == "東…"


def test_stacked_marks_are_cut():
    """Thousands of combining marks on one letter do not reach the terminal."""
    assert len(fit("e" + "\u0301" * 5000, 10)) <= 41


def test_the_hostile_string_is_hostile():
    """The fixture holds what each renderer must survive."""
    for part in ("[bold", "\x1b", "\u202e", "|", "`", "<script>", "\n", "\t", "@", "=", "*", "\ud800"):
        assert part in HOSTILE
