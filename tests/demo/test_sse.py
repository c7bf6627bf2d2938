"""Server-sent events: encoding, and decoding line by line."""

from hypothesis import given
from hypothesis import strategies as st

from turntrace.demo.sse import KEEP_ALIVE, EventDecoder, encode


def decode(stream):
    decoder = EventDecoder()
    events = (decoder.feed(line) for line in stream.splitlines(keepends=True))
    return [event for event in events if event is not None]


@given(st.lists(st.binary(min_size=1).filter(lambda payload: not {10, 13} & set(payload))))
def test_what_is_encoded_is_decoded(payloads):
    """Encoding and decoding are inverse, with comments in between or not."""
    stream = KEEP_ALIVE.join(encode(payload) for payload in payloads)
    decoder = EventDecoder()
    lines = [line + b"\n" for line in stream.split(b"\n")]
    assert [event for line in lines if (event := decoder.feed(line)) is not None] == payloads


def test_several_data_lines_are_one_event():
    """The lines of one event are joined by line feeds; one space after the colon goes."""
    assert decode(b"data:a\ndata:  b\n\n") == [b"a\n b"]


def test_other_fields_and_empty_events_are_skipped():
    """Comments, event names, ids and blank lines make no event."""
    assert decode(b":c\r\n\r\nevent: message\r\nid: 1\r\nretry: 5\r\n\r\ndata: x\r\n\r\n\r\n") == [b"x"]


def test_an_event_that_never_ended_is_not_delivered():
    """Without its blank line an event is incomplete."""
    assert decode(b"data: x\n") == []
