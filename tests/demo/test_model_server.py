"""The model server over real sockets: every kind of reply, and a truth log that is true."""

import hashlib
import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from turntrace.demo.model_server import ModelServer
from turntrace.demo.script import Conversation, InOrder, Reply, TokenUsage, ToolCall

PATH = "/v1/chat/completions"
ALL_USAGE = TokenUsage(input_tokens=10, output_tokens=5, cached_input_tokens=4, reasoning_tokens=2)
RICH = Reply(
    reasoning=("think ", "hard"),
    content=("he", "llo"),
    tool_calls=(
        ToolCall(call_id="c1", name="search", arguments=('{"q":', '"x"}')),
        ToolCall(call_id="c2", name="ls"),
    ),
    usage=ALL_USAGE,
)


def serve(*replies, **settings):
    return ModelServer(InOrder(replies), **settings)


def connection_to(server):
    return closing(http.client.HTTPConnection(server.base_url.removeprefix("http://"), timeout=10))


def body_of(*, stream=True, include_usage=True, **more):
    body = {"model": "m-1", "messages": [{"role": "user", "content": "hi"}], "stream": stream, **more}
    if include_usage:
        body["stream_options"] = {"include_usage": True}
    return json.dumps(body).encode()


def post(server, body=None, headers=None):
    """Send one request on a connection of its own; return the response and all its bytes."""
    with connection_to(server) as connection:
        connection.request("POST", PATH, body if body is not None else body_of(), headers or {})
        response = connection.getresponse()
        return response, response.read()


def events(raw):
    assert raw.endswith(b"data: [DONE]\n\n")
    return [json.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: {")]


def deltas(raw):
    return [choice["delta"] for event in events(raw) for choice in event["choices"]]


def test_a_stream_opens_with_the_role_alone_and_ends_with_usage_and_done():
    """A streamed reply is: role, reasoning, text, tool calls, finish reason, usage, [DONE]."""
    with serve(RICH) as server:
        response, raw = post(server)
    assert response.status == 200
    assert response.getheader("Content-Type") == "text/event-stream"
    assert deltas(raw) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "think "},
        {"reasoning_content": "hard"},
        {"content": "he"},
        {"content": "llo"},
        {
            "tool_calls": [
                {"index": 0, "id": "c1", "type": "function", "function": {"name": "search", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"q":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"x"}'}}]},
        {
            "tool_calls": [
                {"index": 1, "id": "c2", "type": "function", "function": {"name": "ls", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {},
    ]
    *chunks, last = events(raw)
    assert {chunk["usage"] for chunk in chunks} == {None}
    assert [choice["finish_reason"] for choice in chunks[-1]["choices"]] == ["tool_calls"]
    assert {chunk["id"] for chunk in chunks} == {"chatcmpl-0"}
    assert {chunk["model"] for chunk in chunks} == {"m-1"}
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


def test_an_answer_in_one_piece_says_the_same_as_the_stream():
    """Without stream the reply is one JSON document with the same message and usage."""
    with serve(RICH) as server:
        response, raw = post(server, body_of(stream=False))
    document = json.loads(raw)
    assert response.getheader("Content-Type") == "application/json"
    assert document["object"] == "chat.completion"
    assert document["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
    (choice,) = document["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "hello",
        "reasoning_content": "think hard",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}},
            {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
        ],
    }


@pytest.mark.parametrize(
    ("usage", "streamed", "whole"),
    [
        ("absent", [], "nothing"),
        ("null", [None], None),
        (TokenUsage(), [{"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}],
         {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
    ],
)  # fmt: skip
def test_usage_absent_null_and_zero_are_three_things(usage, streamed, whole):
    """Usage can be left out, be null, or be zero, in a stream as in one piece."""
    with serve(Reply(content=("x",), usage=usage)) as server:
        _, stream = post(server)
        _, document = post(server, body_of(stream=False))
        first, second = server.log.wait(2)
    assert [event["usage"] for event in events(stream) if not event["choices"]] == streamed
    assert json.loads(document).get("usage", "nothing") == whole
    expected = usage if isinstance(usage, TokenUsage) else None
    assert (first.usage_sent, second.usage_sent) == (expected, expected)


def test_a_stream_reports_usage_only_when_asked():
    """Without include_usage a stream has no usage, and the log says that none was sent."""
    with serve(RICH) as server:
        _, raw = post(server, body_of(include_usage=False))
        (record,) = server.log.wait(1)
    assert not any("usage" in event for event in events(raw))
    assert record.usage_sent is None


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503, 529])
def test_an_error_status_comes_with_a_json_error(status):
    """Any status but 200 is an error body in JSON, and the connection stays usable."""
    with serve(Reply(status=status), Reply(content=("ok",))) as server, connection_to(server) as connection:
        connection.request("POST", PATH, body_of())
        response = connection.getresponse()
        assert response.status == status
        assert json.loads(response.read())["error"]["code"] == str(status)
        assert response.getheader("Retry-After") is None
        connection.request("POST", PATH, body_of())
        assert connection.getresponse().read().endswith(b"[DONE]\n\n")
        assert [record.status for record in server.log.wait(2)] == [status, 200]


def test_a_refusal_says_when_to_come_back():
    """Retry-After is in whole seconds, rounded up; retry-after-ms is exact."""
    with serve(Reply(status=429, retry_after_ms=1500)) as server:
        response, _ = post(server)
        (record,) = server.log.wait(1)
    assert response.getheader("Retry-After") == "2"
    assert response.getheader("retry-after-ms") == "1500"
    assert (record.first_token_sent_ns, record.last_chunk_sent_ns, record.usage_sent) == (None, None, None)


def test_keep_alives_come_before_the_first_token():
    """Keep-alive comments are spread over the wait for the first content and are no events."""
    with serve(Reply(content=("a", "b"), first_token_ms=30, keep_alives=2)) as server:
        _, raw = post(server)
    before, _, after = raw.partition(b'"content":"a"')
    assert before.count(b": keep-alive\n\n") == 2
    assert b"keep-alive" not in after
    assert len(events(raw)) == 4


def test_keep_alives_are_spread_over_the_wait():
    """A keep-alive is sent when its share of the wait is over, not at once."""
    with (
        serve(Reply(content=("a",), first_token_ms=80, keep_alives=1)) as server,
        connection_to(server) as connection,
    ):
        connection.request("POST", PATH, body_of())
        response = connection.getresponse()
        started = time.monotonic()
        assert next(line for line in response if line.startswith(b":")) == b": keep-alive\n"
        assert time.monotonic() - started > 0.03
        response.read()


def test_the_truth_log_tells_the_scripted_times():
    """Every wait of the script lies between its two stamps, and nobody saw a byte before its stamp."""
    reply = Reply(header_delay_ms=20, first_token_ms=40, chunk_interval_ms=15, content=("a", "b", "c"))
    with serve(reply) as server, connection_to(server) as connection:
        sent_ns = time.time_ns()
        connection.request("POST", PATH, body_of())
        response = connection.getresponse()
        headers_seen_ns = time.time_ns()
        response.read()
        seen_ns = time.time_ns()
        (record,) = server.log.wait(1)
    assert (record.outcome, record.chunks_sent) == ("complete", 6)
    assert sent_ns - 1_000_000 <= record.received_ns  # two clocks: the server's is anchored to this one
    assert record.headers_sent_ns - record.received_ns >= 20_000_000
    assert record.headers_sent_ns <= headers_seen_ns + 1_000_000
    assert record.first_token_sent_ns - record.headers_sent_ns >= 40_000_000
    assert record.last_chunk_sent_ns - record.first_token_sent_ns >= 30_000_000
    assert record.last_chunk_sent_ns <= seen_ns + 1_000_000
    assert seen_ns - sent_ns < 2_000_000_000


def test_an_answer_in_one_piece_takes_as_long_as_its_stream():
    """A whole answer is sent when its last piece is due; its three times are one."""
    reply = Reply(header_delay_ms=10, first_token_ms=20, chunk_interval_ms=15, content=("a", "b", "c"))
    with serve(reply) as server:
        post(server, body_of(stream=False))
        (record,) = server.log.wait(1)
    assert record.headers_sent_ns - record.received_ns >= 60_000_000
    assert record.headers_sent_ns == record.first_token_sent_ns == record.last_chunk_sent_ns


def test_speed_divides_every_delay():
    """At speed 100 a scripted second takes ten milliseconds."""
    reply = Reply(header_delay_ms=1000, first_token_ms=1000, chunk_interval_ms=1000, content=("a", "b"))
    with serve(reply, speed=100) as server:
        started = time.monotonic()
        post(server)
        elapsed_s = time.monotonic() - started
    assert 0.03 <= elapsed_s < 1.5
    with pytest.raises(ValueError, match="speed must be above 0"):
        serve(reply, speed=0)


def test_the_request_is_kept_byte_for_byte_when_asked():
    """The log has the hash of the bytes on the wire, and the bytes themselves only on request."""
    raw = (
        b"POST /v1/chat/completions?v=1 HTTP/1.0\r\nhost: x\r\nX-Odd:   spaced\r\nContent-Length: 2\r\n\r\n{}"
    )
    for keep in (True, False):
        with serve(Reply(), keep_requests=keep) as server:
            port = int(server.base_url.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(raw)
                with client.makefile("rb") as answer:
                    assert answer.read().endswith(b"\r\n\r\n" + server_stream_of_nothing())
            (record,) = server.log.wait(1)
        assert record.request_sha256 == hashlib.sha256(raw).hexdigest()
        assert record.request == (raw if keep else None)
        assert record.path == PATH


def server_stream_of_nothing():
    """What the body of an empty reply to a request without stream is."""
    return json.dumps(
        {
            "id": "chatcmpl-0",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "stop"}
            ],
        },
        separators=(",", ":"),
    ).encode()


def test_http_1_0_gets_a_stream_that_ends_with_the_connection():
    """A client of HTTP/1.0 gets no chunked framing."""
    body = body_of()
    with serve(Reply(content=("x",))) as server:
        port = int(server.base_url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(
                b"POST %b HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (PATH.encode(), len(body), body)
            )
            with client.makefile("rb") as answer:
                head, _, stream = answer.read().partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in head
    assert b"Connection: close" in head
    assert [delta.get("content") for delta in deltas(stream)] == ["", "x", None]


@pytest.mark.parametrize(("chunks", "text"), [(0, ""), (1, ""), (2, "a"), (3, "ab")])
def test_a_dropped_stream_ends_after_the_scripted_number_of_chunks(chunks, text):
    """A dropped connection ends inside the body; the log says how far the answer came."""
    with serve(Reply(content=("a", "b", "c"), usage=ALL_USAGE, drop_after_chunks=chunks)) as server:
        with connection_to(server) as connection:
            connection.request("POST", PATH, body_of())
            with pytest.raises(http.client.IncompleteRead) as broken:
                connection.getresponse().read()
        (record,) = server.log.wait(1)
    seen = [json.loads(line[6:]) for line in broken.value.partial.split(b"\n") if line]
    assert "".join(event["choices"][0]["delta"]["content"] for event in seen) == text
    assert (record.outcome, record.chunks_sent, record.usage_sent) == ("dropped", chunks, None)
    assert (record.first_token_sent_ns is None) == (chunks < 2)
    assert (record.last_chunk_sent_ns is None) == (chunks == 0)


def test_a_dropped_document_loses_its_body():
    """An answer in one piece that is dropped has headers and nothing else."""
    with serve(Reply(content=("a",), drop_after_chunks=1)) as server:
        with pytest.raises(http.client.IncompleteRead):
            post(server, body_of(stream=False))
        (record,) = server.log.wait(1)
    assert (record.outcome, record.first_token_sent_ns) == ("dropped", None)


def test_a_client_that_leaves_is_noted_and_nothing_is_printed(capfd):
    """A client that goes away in the middle of a stream ends its own exchange only."""
    with serve(Reply(content=("x" * 60_000,) * 40, chunk_interval_ms=2), Reply(content=("ok",))) as server:
        with connection_to(server) as connection:
            connection.request("POST", PATH, body_of())
            connection.getresponse().read(100)
        (record,) = server.log.wait(1)
        assert post(server)[0].status == 200
    assert record.outcome == "client_closed"
    assert capfd.readouterr() == ("", "")


def test_a_client_that_resets_an_idle_connection_is_no_error(capfd):
    """A reset between two requests is the client's own business."""
    with serve(Reply()) as server:
        with connection_to(server) as connection:
            connection.request("POST", PATH, body_of())
            connection.getresponse().read()
            linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        assert post(server)[0].status == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /v1/nothing HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 404),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 3\r\n\r\n{]}", 400),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n\xff\xfe", 400),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]", 400),
        (b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 411),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 67108865\r\n\r\n", 413),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(request_bytes, status):
    """What the script cannot answer gets an HTTP error, a place in the log, and the end of its connection."""
    with serve(Reply()) as server:
        port = int(server.base_url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(request_bytes)
            with client.makefile("rb") as answer:
                assert answer.read().startswith(b"HTTP/1.1 %d " % status)
        (record,) = server.log.wait(1)
    assert (record.status, record.outcome) == (status, "complete")


def test_a_get_is_not_supported():
    """The server knows no method but POST."""
    with serve(Reply()) as server, connection_to(server) as connection:
        connection.request("GET", PATH)
        assert connection.getresponse().status == 501


def test_a_script_that_raises_is_reported(capfd):
    """An error of the script is a traceback on stderr, and the exchange has failed."""

    def script(request):
        raise KeyError(request.path)

    with ModelServer(script) as server:
        with pytest.raises(http.client.RemoteDisconnected):
            post(server)
        (record,) = server.log.wait(1)
    assert record.outcome == "failed"
    assert "KeyError: '/v1/chat/completions'" in capfd.readouterr().err


def test_one_connection_serves_many_requests_in_order():
    """A connection is kept alive over streams and documents alike, and the log tells its requests apart."""
    replies = (Reply(content=("a",)), Reply(content=("b",)))
    with serve(*replies, keep_requests=True) as server, connection_to(server) as connection:
        sockets = set()
        for number in range(6):
            connection.request("POST", PATH, body_of(stream=number % 3 > 0))
            sockets.add(connection.sock)
            expected = (b'"content":"a"', b'"content":"b"')[number % 2]
            assert expected in connection.getresponse().read()
        assert len(sockets) == 1
        records = server.log.wait(6)
    assert [record.index for record in records] == list(range(6))
    assert all(record.request.count(b"POST") == 1 for record in records)
    assert records[0].request == records[3].request != records[1].request


def test_many_clients_are_answered_at_once():
    """Fifty clients that each wait 100 ms are done long before fifty times that."""
    with serve(Reply(content=("x",), first_token_ms=100)) as server:
        started = time.monotonic()
        with ThreadPoolExecutor(50) as pool:
            replies = list(pool.map(lambda _: post(server)[1], range(50)))
        assert time.monotonic() - started < 3
        records = server.log.wait(50)
    assert all(raw.endswith(b"[DONE]\n\n") for raw in replies)
    assert sorted(record.index for record in records) == list(range(50))


def test_connections_above_the_limit_wait_for_a_free_one():
    """With two connections allowed the third client waits until one of them is closed."""
    with serve(Reply(content=("x",), first_token_ms=80), max_connections=2) as server:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda _: post(server), range(6)))
        records = server.log.wait(6)
    begun_and_ended = [(record.received_ns, record.last_chunk_sent_ns) for record in records]
    for moment, _ in begun_and_ended:
        assert sum(begun <= moment < ended for begun, ended in begun_and_ended) <= 2


def test_closing_breaks_off_answers_and_idle_connections_at_once():
    """Closing waits for no scripted delay; it leaves no thread and no open connection."""
    before = set(threading.enumerate())
    asked = threading.Event()

    def script(request):
        if request.index == 0:
            return Reply(content=("x",))
        asked.set()
        return Reply(header_delay_ms=60_000)

    server = ModelServer(script)
    with connection_to(server) as idle, connection_to(server) as waiting:
        idle.request("POST", PATH, body_of())
        idle.getresponse().read()
        waiting.request("POST", PATH, body_of())
        assert asked.wait(10)
        started = time.monotonic()
        server.close()
        server.close()
        assert time.monotonic() - started < 2
        with pytest.raises(http.client.RemoteDisconnected):
            waiting.getresponse()
    assert set(threading.enumerate()) == before
    assert [record.outcome for record in server.log.wait(2)] == ["complete", "stopped"]
    with pytest.raises(ConnectionRefusedError):
        post(server)


@pytest.mark.parametrize("delay_ms", [0, 60_000])
def test_closing_does_not_wait_for_clients_in_the_queue(delay_ms):
    """A client that never got a free connection does not keep the server open, be the other idle or served."""
    asked = threading.Event()

    def script(request):
        asked.set()
        return Reply(header_delay_ms=delay_ms)

    server = ModelServer(script, max_connections=1)
    with connection_to(server) as first, connection_to(server) as second:
        first.request("POST", PATH, body_of())
        assert asked.wait(10)
        second.request("POST", PATH, body_of())
        time.sleep(0.1)  # the accept loop takes it up and waits
        started = time.monotonic()
        server.close()
        assert time.monotonic() - started < 2
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            second.getresponse()
    assert len(server.log.records()) == 1


def test_closing_in_the_middle_of_a_fast_stream_counts_as_stopped():
    """A write that fails because the server is closing is the server's doing, not the client's."""
    with serve(Reply(content=("x" * 1_000_000,) * 200)) as server, connection_to(server) as connection:
        connection.request("POST", PATH, body_of())
        connection.getresponse().read(100)
        server.close()
        assert [record.outcome for record in server.log.wait(1)] == ["stopped"]


def test_waiting_for_records_that_never_come_is_an_error():
    """The log gives up after its timeout and says how many requests there were."""
    with serve(Reply()) as server, pytest.raises(TimeoutError, match="0 of 1 requests"):
        server.log.wait(1, timeout_s=0.01)


def test_a_conversation_answers_by_round_and_attempt():
    """The reply depends on the answers in the request and its retry count, on nothing else."""
    script = Conversation(((Reply(content=("1",)),), (Reply(status=429), Reply(content=("2",)))))
    answered = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "1"}]
    again = {"X-Stainless-Retry-Count": "1"}
    with ModelServer(script) as server:
        assert [d.get("content") for d in deltas(post(server)[1])] == ["", "1", None]
        assert post(server, body_of(messages=answered))[0].status == 429
        assert post(server, body_of(messages=answered), {"X-Stainless-Retry-Count": "x"})[0].status == 429
        assert [d.get("content") for d in deltas(post(server, body_of(messages=answered), again)[1])] == [
            "",
            "2",
            None,
        ]
        assert post(server, body_of(messages=answered * 3), {"X-Stainless-Retry-Count": "9"})[0].status == 200
        assert post(server, body_of(messages="none"))[0].status == 200


@pytest.mark.parametrize(
    "script", [lambda: InOrder(()), lambda: Conversation(()), lambda: Conversation(((),))]
)
def test_a_script_without_replies_is_refused(script):
    """A script must have an answer to every request."""
    with pytest.raises(ValueError, match="at least one"):
        script()
