"""Documents out of damaged input: what is whole is read, what is lost is told."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.test_otlp_json import NS, SPAN_ID, document, line, read_otlp, span
from turntrace.core.codec.issues import IssueLog
from turntrace.files import documents
from turntrace.files.documents import Documents


def ids(source):
    """The span ids that were read and the codes that were said, with their lines."""
    spans, issues = read_otlp(source)
    return [int(one.span_id, 16) for one in spans], [(issue.code, issue.line) for issue in issues]


def numbered(*numbers, **fields):
    """A line with spans of these ids."""
    return line(*(span(spanId=f"{number:016x}") for number in numbers), **fields)


def test_records_in_one_line_are_all_read():
    """Two writers without a line feed between them."""
    spliced = numbered(1).strip() + numbered(2).strip() + b" " + numbered(3)
    assert ids(spliced) == ([1, 2, 3], [])
    assert ids(numbered(9) + spliced + numbered(4)) == ([9, 1, 2, 3, 4], [])
    assert ids(spliced + numbered(4)) == ([1, 2, 3, 4], [])


def test_a_torn_record_that_another_continues_gives_its_whole_spans():
    """A writer was killed, the next one appended to its half line."""
    torn = numbered(1, 2, 3)[:-40]
    assert ids(numbered(9) + torn + numbered(4)) == ([9, 1, 2, 4], [("bad_json_line", 2)])
    assert "the spans before the damage are read" in read_otlp(numbered(9) + torn + numbered(4))[1][0].message


def test_a_document_that_is_cut_gives_its_whole_spans():
    """A download that broke off, in one line and in many."""
    spans = [span(spanId=f"{number:016x}", name='}]{[ " spans') for number in range(1, 51)]
    for indent in (None, 2):
        text = json.dumps(document(*spans), indent=indent).encode()
        found, said = ids(text[: len(text) // 2])
        assert found == list(range(1, len(found) + 1))
        assert 20 <= len(found) <= 30
        assert [code for code, _ in said] == ["truncated_tail"]


def test_noise_in_a_document_costs_what_follows_it_there():
    """The spans before it are read, the next record is."""
    text = numbered(1, 2, 3)
    middle = text.index(b"0000000000000003")
    noisy = text[:middle] + b'"\x01noise' + text[middle:]
    assert ids(numbered(9) + noisy + numbered(4)) == ([9, 1, 2, 4], [("bad_json_line", 2)])


def test_bytes_that_are_no_utf8_cost_their_letters_only():
    """A name in another encoding."""
    text = line(span(name="k#se")).replace(b"#", b"\xe9")
    spans, issues = read_otlp(numbered(9) + text)
    assert spans[1].name == "k\ufffdse"
    assert [(issue.code, issue.line, issue.offset) for issue in issues] == [("bad_utf8", 2, len(numbered(9)))]


@pytest.mark.parametrize(
    "text", [b'{"resourceSpans":[{"scopeSpans":[{"spans":[}]}', b'{"resourceSpans"}]', b'{"a', b'{"x":"']
)
def test_a_torn_record_without_a_whole_span_is_lost(text):
    """And said to be."""
    assert ids(numbered(9) + text + b"\n") == ([9], [("bad_json_line", 2)])


def test_a_string_that_never_ends_costs_what_it_is_long():
    """A document that is cut inside a long prompt: the spans before it are read, in a few times its size."""
    text = numbered(1, 2)[:-5] + b',{"name":"' + b"a\\n" * 700_000
    tracemalloc.start()
    try:
        assert ids(text) == ([1, 2], [("truncated_tail", 1)])
        assert tracemalloc.get_traced_memory()[1] < 20 * len(text)
    finally:
        tracemalloc.stop()


def test_arrays_of_documents():
    """Some tools write a list of what they sent."""
    array = json.dumps([document(span()), document(span(spanId="0" * 15 + "2"))], indent=1).encode()
    assert ids(array) == ([int(SPAN_ID, 16), 2], [])
    assert ids(b"[]\n" + numbered(3)) == ([3], [])


def test_what_trace_stores_give_is_unwrapped():
    """Tempo and Jaeger put what OTLP has at the top one level deeper."""
    for wrapper in ("trace", "result"):
        assert ids(json.dumps({wrapper: document(span())}).encode()) == ([int(SPAN_ID, 16)], [])
    assert ids(json.dumps({"batches": document(span())["resourceSpans"]}).encode()) == (
        [int(SPAN_ID, 16)],
        [],
    )


def test_a_document_of_many_lines_is_bounded(monkeypatch):
    """Beyond the bound it is read as far as the bound."""
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 2000)
    spans = [span(spanId=f"{number:016x}") for number in range(1, 51)]
    text = json.dumps(document(*spans), indent=2).encode()
    found, said = ids(text)
    assert 0 < len(found) < 50
    assert said[0][0] == "bad_json_line"


def test_issues_are_bounded_and_the_rest_is_counted():
    """Garbage cannot fill the memory."""
    _, issues = read_otlp(numbered(1) + b"x\n" * 10_005)
    assert len(issues) == 10_001
    assert (issues[-1].code, issues[-1].severity) == ("issues_omitted", "warning")
    assert issues[-1].message.startswith("5 ")


def test_digits_beyond_a_double_are_kept():
    """Times and counts are integers, as text and as numbers."""
    for value in (NS + 1, str(NS + 1)):
        spans, _ = read_otlp(line(span(startTimeUnixNano=value, endTimeUnixNano=str(2**62 + 1))))
        assert (spans[0].start_ns, spans[0].end_ns) == (NS + 1, 2**62 + 1)


PIECES = st.sampled_from(
    [
        b'{"resourceSpans":[',
        b'{"scopeSpans":[{"spans":[',
        b"]",
        b"}",
        b"{",
        b"[",
        b'"',
        b"\\",
        b"\n",
        b"\0",
        b"\xff",
        numbered(7),
        b"1",
    ]
)


@given(st.lists(PIECES, max_size=30))
def test_any_pieces_in_any_order_are_read_to_the_end(pieces):
    """No order of brackets, quotes and records hangs or raises."""
    log = IssueLog()
    for found in Documents(b"".join(pieces).splitlines(keepends=True), log):
        assert isinstance(found.value, dict)
