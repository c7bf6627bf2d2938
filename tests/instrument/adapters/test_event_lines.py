"""Usage is read from the bytes of a stream as they pass, wherever they are cut and however they are compressed."""

import gzip
import json
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turntrace.instrument.adapters.answers import ChatAnswer, MessageAnswer, ResponseAnswer
from turntrace.instrument.adapters.event_lines import EventLines

CHAT = [
    {"id": "c", "model": "m", "choices": [{"delta": {"content": "Grüße"}, "finish_reason": None}]},
    {"id": "c", "model": "m", "choices": [{"delta": {}, "finish_reason": "stop"}]},
    {
        "choices": [],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 3},
        },
    },
]
MESSAGES = [
    {
        "type": "message_start",
        "message": {"id": "c", "model": "m", "usage": {"input_tokens": 6, "output_tokens": 1}},
    },
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "stop"},
        "usage": {"output_tokens": 4, "cache_read_input_tokens": 3},
    },
]
RESPONSES = [
    {"type": "response.created", "response": {"id": "c", "model": "m"}},
    {
        "type": "response.completed",
        "response": {
            "id": "c",
            "model": "m",
            "status": "completed",
            "usage": {
                "input_tokens": 9,
                "output_tokens": 4,
                "input_tokens_details": {"cached_tokens": 3},
            },
        },
    },
]
STREAMS = {
    "chat": (ChatAnswer, CHAT),
    "messages": (MessageAnswer, MESSAGES),
    "responses": (ResponseAnswer, RESPONSES),
}


def body(events, end="\n"):
    """The events as they go over the wire."""
    lines = [f"event: e{end}data: {json.dumps(event, ensure_ascii=False)}{end}{end}" for event in events]
    return (": ping" + end + "".join(lines) + f"data: [DONE]{end}{end}").encode()


def read(answer, data, cuts=(), encoding=""):
    """What the answer says of itself after ``data`` in pieces."""
    lines, start = EventLines(answer, encoding), 0
    for cut in [*sorted(cuts), len(data)]:
        lines.add(data[start:cut])
        start = cut
    return answer


@given(
    st.sampled_from(sorted(STREAMS)),
    st.lists(st.integers(0, 600), max_size=30),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "identity", "gzip", "deflate"]),
)
def test_every_way_to_cut_a_stream_says_the_same(api, cuts, end, encoding):
    """All pieces together bring the usage, whole characters and lines or not."""
    kind, events = STREAMS[api]
    data = body(events, end)
    data = {"gzip": gzip.compress, "deflate": zlib.compress}.get(encoding, bytes)(data)
    answer = read(kind(), data, [cut for cut in cuts if cut < len(data)], encoding)
    assert (answer.response_id, answer.model, answer.is_final) == ("c", "m", True)
    tokens = answer.tokens()
    assert (tokens["input_tokens"], tokens["output_tokens"], tokens["cached_input_tokens"]) == (9, 4, 3)


@pytest.mark.parametrize("api", STREAMS)
def test_a_stream_that_breaks_off_says_nothing_final(api):
    """The last event is missing, or half of it."""
    kind, events = STREAMS[api]
    data = body(events[:-1]).replace(b"data: [DONE]", b"data: " + json.dumps(events[-1]).encode()[:30])
    answer = read(kind(), data)
    assert (
        not any(answer.tokens()[name] for name in ("output_tokens", "cached_input_tokens"))
        or not answer.is_final
    )


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ({"error": {"type": "server_error", "code": None}}, "server_error"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "secret"}}, "overloaded_error"),
        ({"error": "secret words"}, "error"),
    ],
)
def test_an_error_in_the_stream(error, name):
    """Its short name is kept, its text is not."""
    assert read(MessageAnswer(), body([error])).failure == name


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip"])
def test_bytes_that_cannot_be_read_say_nothing(encoding):
    """Another compression, or damage."""
    answer = read(ChatAnswer(), body(CHAT), [5, 9], encoding)
    assert not answer.is_final


def test_other_events_do_not_matter():
    """No JSON, no object, another shape; the usage comes through."""
    data = b'data: no\n\ndata: 7\n\ndata: {"choices":[5]}\n\n' + body(CHAT)
    assert read(ChatAnswer(), data).tokens()["input_tokens"] == 9


def test_memory_is_bounded():
    """A line without an end is dropped; so is what a small piece unpacks to beyond all measure."""
    tracemalloc.start()
    lines, piece = EventLines(ChatAnswer(), ""), b"data: " + b"x" * 1_000_000
    for _ in range(60):
        lines.add(piece)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    answer = ChatAnswer()
    lines = EventLines(answer, "gzip")
    bomb = gzip.compress(b"x" * 100_000_000)
    tracemalloc.reset_peak()
    lines.add(bomb)
    lines.add(bomb)
    assert tracemalloc.get_traced_memory()[1] < 40_000_000
    tracemalloc.stop()
    lines = EventLines(answer, "")
    lines.add(b"x" * 5_000_000 + b"\n" + body(CHAT))
    assert answer.is_final
