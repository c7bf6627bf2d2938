"""The small chat client and the answer it puts together, against the real server."""

import socket
import threading
from email.message import Message

import pytest

from turntrace.demo.answer import Answer
from turntrace.demo.chat_client import StreamBrokenError, connect, request_body, retry_after_ms
from turntrace.demo.model_server import ModelServer
from turntrace.demo.script import InOrder, Reply, TokenUsage, ToolCall

BODY = request_body("m-1", [{"role": "user", "content": "hi"}], ["search"])


def ask(server, retries=0):
    with connect(server.base_url, BODY, retries=retries) as response:
        answer = Answer()
        for chunk in response:
            answer.add(chunk)
        return answer


def test_an_answer_is_put_together_from_its_chunks():
    """Text, tool calls and usage of a stream come out as they were scripted."""
    reply = Reply(
        reasoning=("hm",),
        content=("he", "llo"),
        tool_calls=(
            ToolCall(call_id="c1", name="search", arguments=('{"q":', '"x"}')),
            ToolCall(call_id="c2", name="ls"),
        ),
        usage=TokenUsage(input_tokens=10, output_tokens=5, cached_input_tokens=4, reasoning_tokens=2),
    )
    with ModelServer(InOrder((reply,))) as server:
        answer = ask(server)
    assert answer.text == "hello"
    assert [call.parsed() for call in answer.calls.values()] == [{"q": "x"}, {}]
    assert answer.tokens() == {
        "input_tokens": 10,
        "output_tokens": 5,
        "cached_input_tokens": 4,
        "reasoning_tokens": 2,
    }
    assert answer.message() == {
        "role": "assistant",
        "content": "hello",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}},
            {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
        ],
    }


def test_unreported_tokens_are_unknown_and_zero_is_zero():
    """Without usage every count is None; a reported zero is 0."""
    replies = (Reply(content=("x",)), Reply(content=("x",), usage="null"), Reply(usage=TokenUsage()))
    with ModelServer(InOrder(replies)) as server:
        absent, null, zero = ask(server), ask(server), ask(server)
    assert set(absent.tokens().values()) == set(null.tokens().values()) == {None}
    assert (zero.tokens()["input_tokens"], zero.tokens()["cached_input_tokens"]) == (0, None)
    assert absent.message() == {"role": "assistant", "content": "x"}


def test_the_last_report_of_usage_counts():
    """A chunk without usage, or with null, takes nothing back."""
    answer = Answer()
    for usage in ({"prompt_tokens": 1}, {"prompt_tokens": 2}, None):
        answer.add({"choices": [], "usage": usage})
    answer.add({"choices": []})
    assert answer.tokens()["input_tokens"] == 2


@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_a_broken_stream_is_an_error(chunks):
    """A stream that ends before [DONE] raises, however much of it came."""
    script = InOrder((Reply(content=("a", "b"), drop_after_chunks=chunks),))
    with ModelServer(script) as server, pytest.raises(StreamBrokenError, match=r"before \[DONE\]"):
        ask(server)


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\ndata: {"choices":[]}\n\n: bye\n',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\ndata: ",
    ],
)
def test_a_response_that_ends_without_done_is_an_error(answer):
    """A response must reach its [DONE], whether its framing is complete or breaks off inside a chunk."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            client, _ = listener.accept()
            with client:
                received = b""
                while not received.endswith(BODY):
                    received += client.recv(65_536)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with connect(url, BODY, retries=0) as response, pytest.raises(StreamBrokenError):
            list(response)
        thread.join()


def test_a_refusal_says_how_long_to_wait():
    """retry-after-ms goes before Retry-After; without either there is no wait."""
    with ModelServer(InOrder((Reply(status=429, retry_after_ms=500), Reply(status=500)))) as server:
        for status, wait_ms in ((429, 500.0), (500, 0.0)):
            with connect(server.base_url, BODY, retries=0) as response:
                assert (response.status, response.retry_after_ms) == (status, wait_ms)


def test_whole_seconds_count_when_there_is_nothing_better():
    """A plain Retry-After is in seconds."""
    headers = Message()
    headers["Retry-After"] = "2"
    assert retry_after_ms(headers) == 2000.0


def test_a_connection_that_fails_is_closed():
    """Nothing stays open when the server cannot be reached or leaves without an answer."""

    def script(request):
        raise ConnectionResetError

    with ModelServer(script) as server, pytest.raises(ConnectionError):
        connect(server.base_url, BODY, retries=0)
    with pytest.raises(ConnectionRefusedError):
        connect(server.base_url, BODY, retries=0)


def test_equal_arguments_give_equal_requests():
    """A request depends on its arguments alone."""
    assert request_body("m", [{"role": "user", "content": "é"}], ["a"]) == request_body(
        "m", [{"role": "user", "content": "é"}], ["a"]
    )
