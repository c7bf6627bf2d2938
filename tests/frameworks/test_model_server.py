"""The model server of the framework traces: every format, every way to fail, and a true log of both."""

import base64
import http.client
import json
import socket
import struct
import time
from urllib.parse import urlsplit

import pytest

from frameworks.model_server import ModelServer
from frameworks.steps import Step, ToolCall

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
GEMINI = "/v1beta/models/gemini-fake:generateContent"
GEMINI_STREAM = "/v1beta/models/gemini-fake:streamGenerateContent?alt=sse"
WHOLE = [CHAT, RESPONSES, MESSAGES, GEMINI]
STREAMED = [CHAT, RESPONSES, MESSAGES, GEMINI_STREAM]
TOOLS = (ToolCall("weather", {"city": "Oslo"}), ToolCall("tides"))
COUNTED = {
    "input_tokens": 300,
    "output_tokens": 40,
    "cached_tokens": 128,
    "cache_write_tokens": 32,
    "reasoning_tokens": 8,
}


@pytest.fixture
def server():
    with ModelServer() as running:
        yield running


def ask(server, path, **body):
    """The status, headers and body of one request."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
    try:
        connection.request("POST", path, json.dumps({"model": "m", **body}), {"x-stainless-retry-count": "0"})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def value(server, path, **body):
    """The body of an answer that is not streamed."""
    return json.loads(ask(server, path, **body)[2])


def events(server, path, **body):
    """The events of a streamed answer."""
    text = ask(server, path, stream=True, stream_options={"include_usage": True}, **body)[2].decode()
    found = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(data) for data in found if data != "[DONE]"]


def words(path, found):
    """The text and the tools in an answer, whole or streamed."""
    text = json.dumps(found)
    return [word for word in ("Hello", "weather", "tides", "Oslo") if word in text]


@pytest.mark.parametrize("path", WHOLE)
def test_whole_answers(server, path):
    """Text, then tools, in each format; the session answers in order."""
    server.script([Step(text="Hello"), Step(tools=TOOLS)])
    assert words(path, value(server, path)) == ["Hello"]
    assert words(path, value(server, path)) == ["weather", "tides", "Oslo"]
    assert server.left() == {}


@pytest.mark.parametrize("path", STREAMED)
def test_streams(server, path):
    """The pieces come in order and carry what a whole answer would."""
    server.script([Step(text="Hello there", chunks=3), Step(tools=TOOLS)])
    found = events(server, path)
    pieces = [part for part in ("Hell", "o th", "ere") if any(f'"{part}"' in json.dumps(e) for e in found)]
    assert pieces == ["Hell", "o th", "ere"]
    assert words(path, events(server, path)) == ["weather", "tides", "Oslo"]
    first, second = server.settled()
    assert (first.content_chunks, second.content_chunks) == (3, 2)
    assert first.finished
    assert first.stream


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        (CHAT, "usage", {"prompt_tokens": 300, "completion_tokens": 40, "total_tokens": 340}),
        (RESPONSES, "usage", {"input_tokens": 300, "output_tokens": 40, "total_tokens": 340}),
        (
            MESSAGES,
            "usage",
            {"input_tokens": 140, "cache_read_input_tokens": 128, "cache_creation_input_tokens": 32},
        ),
        (
            GEMINI,
            "usageMetadata",
            {
                "promptTokenCount": 300,
                "candidatesTokenCount": 32,
                "thoughtsTokenCount": 8,
                "cachedContentTokenCount": 128,
                "totalTokenCount": 340,
            },
        ),
    ],
)
def test_usage_in_the_words_of_each_provider(server, path, key, expected):
    """What is counted apart and what inside another number is the provider's own way."""
    server.script([Step(**COUNTED)])
    found = value(server, path)[key]
    assert expected.items() <= found.items()
    assert server.settled()[0].usage_sent == found
    assert server.truth()["usage_sent_total"] == {
        "input": 300,
        "output": 40,
        "cached": 128,
        "cache_write": 32,
        "reasoning": 8,
        "requests_with_usage": 1,
        "requests_without_usage": 0,
    }


@pytest.mark.parametrize(("path", "key"), [(CHAT, "usage"), (MESSAGES, "usage"), (GEMINI, "usageMetadata")])
def test_usage_that_is_absent_null_or_zero(server, path, key):
    """No key, null, and counts of 0 are three things; the log knows only the last as said."""
    server.script([Step(usage="absent"), Step(usage="null"), Step(usage="zero")])
    assert key not in value(server, path)
    assert value(server, path)[key] is None
    said = value(server, path)[key].values()
    assert {count for count in said if not isinstance(count, dict)} == {0}
    assert [exchange.tokens is None for exchange in server.settled()] == [True, True, False]
    assert server.truth()["usage_sent_total"]["requests_without_usage"] == 2


def test_a_chat_stream_tells_usage_on_demand_only(server):
    """As the real one: without ``include_usage`` no event has it."""
    server.script([Step(), Step()])
    asked = events(server, CHAT)
    assert [event["usage"] is None for event in asked] == [True] * (len(asked) - 1) + [False]
    unasked = ask(server, CHAT, stream=True)[2].decode()
    assert "usage" not in unasked
    assert [exchange.tokens is None for exchange in server.settled()] == [False, True]


@pytest.mark.parametrize(("path", "key"), [(CHAT, "usage"), (GEMINI_STREAM, "usageMetadata")])
def test_cumulative_usage_grows(server, path, key):
    """Every piece repeats the count so far; only the last is what the call cost."""
    server.script([Step(text="abcd", chunks=4, usage="cumulative", output_tokens=8)])
    found = [event[key] for event in events(server, path) if event.get(key)]
    name = "completion_tokens" if path == CHAT else "candidatesTokenCount"
    counts = [usage[name] for usage in found]
    assert counts == sorted(counts)
    assert counts[-1] == 8
    assert len(counts) >= 4
    assert server.settled()[0].tokens["output"] == 8


@pytest.mark.parametrize("status", [429, 500, 529])
@pytest.mark.parametrize("path", WHOLE)
def test_refusals(server, path, status):
    """The status, when to come again, and an error in the provider's form."""
    server.script([Step(status=status, retry_after_s=0.5, text="no")])
    got, headers, body = ask(server, path)
    assert (got, headers["retry-after"], headers["retry-after-ms"]) == (status, "0.5", "500")
    assert json.loads(body)["error"]["message"] == "no"
    exchange = server.settled()[0]
    assert (exchange.status, exchange.finished, exchange.retried) == (status, False, True)


def test_times_are_those_of_the_script(server):
    """Latency, time to first content and the pauses between pieces are waited for and logged."""
    server.script([Step(latency_s=0.05), Step(text="abc", chunks=3, ttft_s=0.06, gap_s=0.03, keep_alive=2)])
    began = time.perf_counter()
    ask(server, CHAT)
    assert time.perf_counter() - began >= 0.05
    assert b": keep-alive\n\n" in ask(server, CHAT, stream=True)[2]
    exchange = server.settled()[1]
    assert exchange.first_content_ms - exchange.received_ms >= 59
    assert exchange.last_content_ms - exchange.first_content_ms >= 59
    assert exchange.done_ms >= exchange.last_content_ms


@pytest.mark.parametrize("path", STREAMED)
def test_a_dropped_connection(server, path):
    """Before the answer, or after so many pieces."""
    server.script([Step(drop_after=-1), Step(text="abcd", chunks=4, drop_after=2)])
    for _ in range(2):
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            ask(server, path, stream=True)
    assert [exchange.dropped for exchange in server.settled()] == [True, True]
    assert server.settled()[1].content_chunks == 2
    assert not server.settled()[1].finished


@pytest.mark.parametrize("path", STREAMED)
def test_an_error_in_the_stream(server, path):
    """The status was 200 already; the error comes as an event."""
    server.script([Step(text="abcd", chunks=4, error_after=1)])
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
    connection.request("POST", path, json.dumps({"model": "m", "stream": True}))
    response = connection.getresponse()
    with pytest.raises(http.client.IncompleteRead) as read:
        response.read()
    connection.close()
    assert response.status == 200
    assert b"error" in read.value.partial


def test_a_client_that_goes_away_is_noticed(server):
    """While the server waits, and not only when it next writes."""
    server.script([Step(latency_s=5)])
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port)) as client:
        client.sendall(f"POST {CHAT} HTTP/1.1\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        time.sleep(0.05)
    (exchange,) = server.settled(at_least=1)
    assert exchange.client_gone
    assert exchange.done_ms < 2000


def test_embeddings(server):
    """As numbers or in the form that the client library asks for."""
    server.script([Step(), Step()])
    assert [one["index"] for one in value(server, "/v1/embeddings", input=["a", "b"])["data"]] == [0, 1]
    packed = value(server, "/v1/embeddings", input="a", encoding_format="base64")["data"][0]["embedding"]
    assert struct.unpack("<4f", base64.b64decode(packed)) == (0.5, -0.25, 0.125, 0.0)


def test_sessions_have_scripts_of_their_own(server):
    """The path names the session; what is not scripted is refused and said."""
    server.script([Step(text="one")], "a")
    server.script([Step(text="two")], "b")
    assert "two" in json.dumps(value(server, f"/s/b{CHAT}"))
    assert server.left() == {"a": 1}
    assert ask(server, f"/s/b{CHAT}")[0] == 500
    assert [exchange.scripted for exchange in server.settled()] == [True, False]
    assert ask(server, "/v1/unknown")[0] == 404
    assert len(server.settled()) == 2


def test_a_chunked_request_is_read(server):
    """Some clients do not say how long their request is."""
    server.script([Step(text="Hello")])
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
    connection.request("POST", CHAT, iter([b'{"model"', b':"m"}']), encode_chunked=True)
    assert b'"model": "m"' in connection.getresponse().read()
    connection.close()


def test_a_director_answers_by_what_is_asked():
    """The order of requests does not matter then."""

    def director(asked):
        return Step(text="later" if "later" in json.dumps(asked.body) else "now", input_tokens=7)

    with ModelServer(director) as server:
        for word in ("later", "now", "later"):
            data = ask(server, CHAT, messages=[{"role": "user", "content": word}])[2]
            assert json.loads(data)["choices"][0]["message"]["content"] == word
        assert [one.tokens["input"] for one in server.settled(3)] == [7, 7, 7]
