"""What a receiver refuses, and that it stays up and small while it does."""

import gzip
import json
import os
import random
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from google.rpc.status_pb2 import Status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otlp_receiver import wait_for
from otlp_requests import JSON, PROTOBUF, MemorySink, json_traces, post, raw, traces, until_closed
from turntrace.collect.acceptance import Budget
from turntrace.collect.limits import Limits, RefusedError
from turntrace.collect.receiver import Address, Receiver, Settings

SMALL = Limits(request_bytes=1 << 20, head_s=0.5, request_s=0.6, idle_s=0.7, connections=16)


@pytest.fixture
def sink():
    """A sink that keeps requests."""
    return MemorySink()


@pytest.fixture
def receiver(sink):
    """A receiver on loopback."""
    with Receiver(sink) as running:
        yield running


@pytest.fixture
def small(sink):
    """A receiver with narrow bounds."""
    with Receiver(sink, Settings(limits=SMALL)) as running:
        yield running


def is_up(receiver):
    """Whether a good request is still taken."""
    return post(receiver, traces()).status == 200


def words(reply):
    """What a refusal says, from its Status."""
    return Status.FromString(reply.body).message


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/plain;charset=UTF-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
    ],
)
def test_types_that_a_web_page_can_send_are_refused(receiver, sink, content_type):
    """415 for each type that needs no preflight."""
    reply = post(receiver, json_traces(), content_type=content_type)
    assert reply.status == 415
    assert "application/x-protobuf" in json.loads(reply.body)["message"]
    assert sink.taken == []
    assert receiver.totals.rejected == {"content_type": 1}


@pytest.mark.parametrize("content_type", ["application/JSON; charset=utf-8", " application/json "])
def test_parameters_and_case_of_a_type_do_not_matter(receiver, content_type):
    """A charset is no other type."""
    assert post(receiver, json_traces(), content_type=content_type).status == 200


def test_an_origin_is_refused(receiver, sink):
    """Only web pages send one."""
    reply = post(receiver, traces(), headers={"Origin": f"http://{receiver.address}"})
    assert (reply.status, receiver.totals.rejected) == (403, {"origin": 1})
    assert sink.taken == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:4318", "127.0.0.1", "127.0.0.2:80", ""])
def test_another_host_is_refused(receiver, host):
    """A name that was bound to loopback by somebody else's DNS is not ours."""
    reply = post(receiver, traces(), headers={"Host": host})
    assert (reply.status, receiver.totals.rejected) == (403, {"host": 1})


def test_loopback_may_be_called_by_its_name(receiver):
    """localhost is what most settings say."""
    assert post(receiver, traces(), headers={"Host": f"LocalHost:{receiver.address.port}"}).status == 200


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/traces", {}),
        ("/v1/traces", {"Authorization": "Bearer wrong"}),
        ("/v1/traces", {"Authorization": "Bearer "}),
        ("/v1/traces", {"Authorization": "Basic {token}"}),
        ("/v1/traces", {"Authorization": "{token}"}),
        ("/v1/traces", {"X-Turntrace-Token": "{token}x"}),
        ("/wrong/v1/traces", {}),
        ("//v1/traces", {}),
        ("/v1/traces/{token}", {}),
        ("/v1/traces?token={token}", {}),
    ],
)
def test_without_the_token_nothing_is_taken(receiver, sink, path, headers):
    """Missing, wrong, or in the wrong place: 401, and not a word of the right one."""
    given_headers = {name: value.format(token=receiver.token) for name, value in headers.items()}
    reply = post(receiver, traces(), path.format(token=receiver.token), headers=given_headers, token=False)
    assert (reply.status, receiver.totals.rejected) == (401, {"token": 1})
    assert receiver.token.encode() not in reply.body
    assert sink.taken == []


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/traces", {"Authorization": "Bearer {token}"}),
        ("/v1/traces", {"Authorization": "bearer  {token}"}),
        ("/v1/traces", {"X-Turntrace-Token": "{token}"}),
        ("/{token}/v1/traces", {}),
    ],
)
def test_the_token_may_stand_in_a_header_or_before_the_path(receiver, path, headers):
    """Agents that ignore header settings still have a path."""
    given_headers = {name: value.format(token=receiver.token) for name, value in headers.items()}
    reply = post(receiver, traces(), path.format(token=receiver.token), headers=given_headers, token=False)
    assert reply.status == 200


def test_a_token_is_in_no_repr(receiver):
    """What ends up in a log by accident does not open the receiver."""
    assert receiver.token not in repr(receiver._access)
    assert "secret" not in repr(Settings(token="secret"))


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/traces", 405), ("POST", "/v1/profiles", 404)]
)
def test_other_methods_and_paths_are_told(receiver, method, path, status):
    """404 and 405, in words."""
    reply = post(receiver, None, path, method=method)
    assert reply.status == status
    assert "send" in words(reply)


def test_an_unknown_encoding_is_told(receiver):
    """415 names the encodings there are."""
    reply = post(receiver, traces(), headers={"Content-Encoding": "br"})
    assert (reply.status, receiver.totals.rejected) == (415, {"encoding": 1})
    assert "zstd" in words(reply)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_damaged_compression_is_malformed(receiver, encoding):
    """Garbage, and a body that is cut, are 400 and not stored."""
    from otlp_requests import COMPRESSORS

    packed = COMPRESSORS[encoding](traces(100))
    for body in (b"\x1f\x8b garbage", packed[: len(packed) // 2]):
        assert post(receiver, body, headers={"Content-Encoding": encoding}).status == 400
    assert is_up(receiver)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\xff" * 100, PROTOBUF),
        (traces(100)[:-7], PROTOBUF),
        (b"not json", JSON),
        (b"[1]", JSON),
        (b'{"resourceSpans":{}}', JSON),
        (b'{"resourceSpans":[1]}', JSON),
        (json_traces()[:-1], JSON),
        (b"[" * 100_000, JSON),
    ],
    ids=["noise", "cut", "text", "list", "no list", "no objects", "cut json", "deep"],
)
def test_a_body_that_is_no_request_is_refused(receiver, sink, body, kind):
    """400 in the sender's own encoding."""
    reply = post(receiver, body, content_type=kind)
    assert reply.status == 400
    assert reply.headers["content-type"] == kind
    assert sink.taken == []
    assert is_up(receiver)


def test_a_large_body_is_refused_before_it_is_read(small):
    """413 by its Content-Length, and the sender hears it."""
    reply = post(small, b"\0" * (2 << 20))
    assert (reply.status, small.totals.rejected) == (413, {"too_large": 1})
    assert "1048576" in words(reply)


def test_a_large_chunked_body_is_refused_while_it_is_read(small):
    """413 without a Content-Length."""
    reply = post(small, iter([b"\0" * 65536] * 40))
    assert reply.status == 413
    assert is_up(small)


def test_a_hundred_megabytes_change_nothing(receiver):
    """100 MB are refused, and neither they nor ten such senders cost memory."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    piece = b"\0" * (1 << 20)
    for _ in range(3):
        assert post(receiver, iter([piece] * 100)).status == 413
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 200_000
    assert is_up(receiver)


def bomb(gigabytes):
    """Zeros that gzip packs a thousand times smaller."""
    return gzip.compress(b"\0" * (1 << 30)) * gigabytes


@pytest.mark.slow
def test_a_bomb_costs_what_the_bound_says(tmp_path):
    """A gigabyte in a megabyte is refused while it is inflated; the process stays below the bound."""
    code = """if 1:
        import resource, sys
        from otlp_requests import MemorySink, post, traces
        from turntrace.collect.receiver import Receiver
        bomb = open(sys.argv[1], "rb").read()
        with Receiver(MemorySink()) as receiver:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for _ in range(3):
                reply = post(receiver, bomb, headers={"Content-Encoding": "gzip"})
                assert reply.status == 413, reply
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
            assert post(receiver, traces()).status == 200
    """
    path = tmp_path / "bomb.gz"
    path.write_bytes(bomb(1))
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code, str(path)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 150_000


def test_too_many_requests_a_second_are_told_to_wait(sink):
    """429 with Retry-After; after a while there is room again."""
    limits = Limits(requests_per_s=5)
    with Receiver(sink, Settings(limits=limits)) as receiver:
        replies = [post(receiver, traces()) for _ in range(9)]
        refused = [reply for reply in replies if reply.status == 429]
        assert refused
        assert refused[0].headers["retry-after"] == "1"
        assert "5 requests a second" in words(refused[0])
        time.sleep(1)
        assert is_up(receiver)


def test_requests_that_are_read_together_have_one_bound(sink):
    """429 when the bodies that are being read would be too much together."""
    limits = Limits(request_bytes=1 << 20, memory_bytes=3 << 19)
    with Receiver(sink, Settings(limits=limits)) as receiver:
        release = threading.Event()

        def held():
            yield b"\0" * (1 << 20)
            release.wait(10)

        waiting = threading.Thread(target=post, args=(receiver, held()))
        waiting.start()
        budget = receiver._acceptance.budget
        assert wait_for(lambda: budget._held_bytes >= 1 << 20)
        reply = post(receiver, b"\0" * (1 << 20))
        assert (reply.status, "at once" in words(reply)) == (429, True)
        release.set()
        waiting.join()
        assert wait_for(lambda: budget._held_bytes == 0)
        assert is_up(receiver)


def test_the_rate_is_refilled_by_time():
    """A bucket of requests: a burst, then what a second gives."""
    now_s = [0.0]
    budget = Budget(Limits(requests_per_s=2), lambda: now_s[0])
    budget.admit()
    budget.admit()
    with pytest.raises(RefusedError):
        budget.admit()
    now_s[0] = 0.5
    budget.admit()
    with pytest.raises(RefusedError):
        budget.admit()


def test_more_attributes_than_a_span_may_have_are_cut(receiver, sink):
    """A thousand are kept, the rest is counted in the span and by the receiver."""
    assert post(receiver, traces(2, attributes=1500)).status == 200
    request = ExportTraceServiceRequest.FromString(sink.taken[0][1])
    for span in request.resource_spans[0].scope_spans[0].spans:
        assert (len(span.attributes), span.dropped_attributes_count) == (1000, 501)
        assert span.attributes[0].key == "gen_ai.operation.name"
    assert receiver.totals.dropped == {"attributes": 1002}


def test_more_attributes_in_json_are_cut_too(receiver, sink):
    """The same bound in the other encoding."""
    many = [{"key": f"a{number}", "value": {"intValue": "1"}} for number in range(1500)]
    assert post(receiver, json_traces(attributes=many), content_type=JSON).status == 200
    span = json.loads(sink.taken[0][1])["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert len(span["attributes"]) == 1000
    assert receiver.totals.dropped == {"attributes": 501}


def nested(depth, kind):
    """AnyValues in one another."""
    value = {"stringValue": "x"}
    for _ in range(depth - 1):
        if kind == "array":
            value = {"arrayValue": {"values": [value]}}
        else:
            value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    return {"key": "deep", "value": value}


@pytest.mark.parametrize("kind", ["array", "kvlist"])
@pytest.mark.parametrize(("depth", "is_kept"), [(2, True), (64, True), (65, False), (200, False)])
def test_values_nested_too_deeply_are_dropped(receiver, sink, kind, depth, is_kept):
    """64 values in one another are taken; with more the attribute goes, counted, and the span stays."""
    reply = post(receiver, json_traces(attributes=[nested(depth, kind)]), content_type=JSON)
    assert reply.status == 200
    span = json.loads(sink.taken[0][1])["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert ("deep" in {one["key"] for one in span["attributes"]}) == is_kept
    assert receiver.totals.dropped == ({} if is_kept else {"nesting": 1})


def test_protobuf_nested_too_deeply_is_malformed(receiver):
    """protobuf's own parser refuses a depth that could hurt anybody."""
    request = ExportTraceServiceRequest.FromString(traces())
    value = request.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="deep").value
    for _ in range(5_000):
        value = value.array_value.values.add()
    try:
        body = request.SerializeToString()
    except Exception:  # the encoder refuses as well: build the bytes from inside out
        body = b"\x0a\x00"
        inner = b""
        for _ in range(2_000):
            inner = _field(1, _field(5, inner))
        body = _field(1, _field(2, _field(2, _field(9, _field(2, inner)))))
    assert post(receiver, body).status == 400
    assert is_up(receiver)


def _field(number, data):
    size, head = len(data), bytes([number << 3 | 2])
    while size >= 0x80:
        head += bytes([size & 0x7F | 0x80])
        size >>= 7
    return head + bytes([size]) + data


def test_a_sender_that_never_ends_its_head_is_cut_off(small):
    """Slow loris: a byte now and then does not hold a connection."""
    with socket.create_connection((small.address.host, small.address.port), timeout=5) as peer:
        start_s = time.monotonic()
        peer.sendall(b"POST /v1/traces HTTP/1.1\r\n")
        with pytest.raises(OSError, match=r"."):  # noqa: PT012 - the loop is the sender
            while time.monotonic() - start_s < 5:
                peer.sendall(b"X-A: b\r\n")
                time.sleep(0.1)
        assert time.monotonic() - start_s < 3
    assert small.totals.rejected == {"timeout": 1}


def test_a_body_that_never_ends_is_told_408(small):
    """A request has so long, however it trickles."""
    head = (
        f"POST /v1/traces HTTP/1.1\r\nHost: {small.address}\r\nContent-Type: {PROTOBUF}\r\n"
        f"Authorization: Bearer {small.token}\r\nContent-Length: 1000\r\n\r\n"
    )
    with socket.create_connection((small.address.host, small.address.port), timeout=2) as peer:
        peer.sendall(head.encode() + b"\0")
        assert peer.recv(1000).startswith(b"HTTP/1.1 408 ")
    assert small.totals.rejected == {"timeout": 1}


def test_an_idle_connection_is_closed(small):
    """Between requests as well."""
    body = traces()
    head = (
        f"POST /v1/traces HTTP/1.1\r\nHost: {small.address}\r\nContent-Type: {PROTOBUF}\r\n"
        f"Authorization: Bearer {small.token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    start_s = time.monotonic()
    assert b"HTTP/1.1 200" in raw(small, head.encode() + body)
    assert time.monotonic() - start_s < 3


def test_a_thousand_connections_keep_nobody_out(sink):
    """With too many open connections the one that has waited longest goes; a sender always gets in."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    peers = []
    try:
        with Receiver(sink) as receiver:
            address = (receiver.address.host, receiver.address.port)
            peers += [socket.create_connection(address, timeout=5) for _ in range(1000)]
            assert is_up(receiver)
            assert wait_for(lambda: len(receiver._http._connections) <= 512, timeout_s=5)
            assert receiver.totals.rejected["connections"] >= 488
    finally:
        for peer in peers:
            peer.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_busy_connections_are_not_cut_for_new_ones(small):
    """A connection with a request in it stays; a new one goes instead."""
    peers = []
    for _ in range(SMALL.connections):
        peer = socket.create_connection((small.address.host, small.address.port), timeout=5)
        peer.sendall(
            f"POST /v1/traces HTTP/1.1\r\nHost: {small.address}\r\nContent-Type: {PROTOBUF}\r\n"
            f"Authorization: Bearer {small.token}\r\nContent-Length: 9\r\n\r\n".encode()
        )
        peers.append(peer)
    assert wait_for(lambda: sum(one.is_busy for one in small._http._connections) == SMALL.connections)
    with socket.create_connection((small.address.host, small.address.port), timeout=5) as late:
        assert until_closed(late) == b""
    for peer in peers:
        assert peer.recv(100).startswith(b"HTTP/1.1 408 ")
        peer.close()


def test_what_cannot_be_stored_is_not_acknowledged(sink, receiver):
    """A full disk: 503, to be sent again; then the disk has room."""
    sink.error = OSError(28, "No space left on device")
    reply = post(receiver, traces())
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert receiver.totals.rejected == {"storage": 1}
    assert receiver.totals.items == {}
    sink.error = None
    assert is_up(receiver)


def test_an_error_of_the_receiver_costs_one_request(receiver, sink):
    """500, counted, and the next request is taken."""
    sink.error = ValueError("a bug")
    assert post(receiver, traces()).status == 500
    assert receiver.totals.rejected == {"error": 1}
    sink.error = None
    assert is_up(receiver)


def test_others_can_reach_a_receiver_only_with_a_token(sink):
    """An open port without a token is refused with an explanation."""
    from turntrace.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match="anybody could send: give a token"):
        Receiver(sink, Settings(http=Address("0.0.0.0", 0), token=None))
    with Receiver(sink, Settings(http=Address("0.0.0.0", 0), token="secret")) as receiver:
        body = post(receiver, traces(), headers={"Host": "collector.example:4318"})
        assert body.status == 200


def test_an_address_in_use_is_told(sink):
    """The message names the address."""
    from turntrace.errors import ConfigurationError

    with (
        Receiver(sink) as one,
        pytest.raises(ConfigurationError, match=f"cannot listen at 127.0.0.1:{one.address.port}"),
        Receiver(sink, Settings(http=one.address)),
    ):
        pass


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.binary(max_size=400),
    headers=st.dictionaries(
        st.sampled_from(["Content-Encoding", "Content-Type", "Content-Length", "X-A", "Transfer-Encoding"]),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
        max_size=4,
    ),
    start=st.sampled_from(
        ["POST /v1/traces HTTP/1.1", "POST /{token}/v1/logs HTTP/1.1", "GET / HTTP/1.0", "X"]
    ),
)
def test_no_request_stops_the_receiver(fuzzed, body, headers, start):
    """Any head and any body is answered or cut off; afterwards a good request is taken."""
    lines = [start.format(token=fuzzed.token), f"Host: {fuzzed.address}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    answer = raw(fuzzed, "\r\n".join([*lines, "", ""]).encode() + body, timeout_s=0.05)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 ")
    assert not answer.startswith(b"HTTP/1.1 5")
    assert is_up(fuzzed)


@pytest.fixture(scope="module")
def fuzzed():
    """A receiver for many requests."""
    with Receiver(MemorySink(), Settings(limits=Limits(request_s=0.2, head_s=0.2))) as running:
        yield running


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), cut=st.integers(0, 200), flips=st.integers(1, 20))
def test_damaged_messages_are_refused_or_stored_readable(fuzzed, seed, cut, flips):
    """A message with flipped bytes is 400, or what is stored can be parsed again."""
    chance = random.Random(seed)
    body = bytearray(traces(3, attributes=3)[: -cut or None])
    for _ in range(flips):
        if body:
            body[chance.randrange(len(body))] = chance.randrange(256)
    sink = fuzzed._acceptance._sink
    before = len(sink.taken)
    status = post(fuzzed, bytes(body)).status
    assert status in {200, 400}
    assert len(sink.taken) - before == (status == 200)
    if status == 200:
        ExportTraceServiceRequest.FromString(sink.taken[-1][1])


def test_nothing_is_logged_of_what_comes(receiver, capfd, caplog):
    """Refused and damaged requests write no line, least of all one that quotes them."""
    post(receiver, b"\xff" * 50, headers={"X-Evil": "\x1b[31mred"})
    raw(receiver, b"GARBAGE\r\n\r\n", timeout_s=1)
    raw(
        receiver,
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        timeout_s=1,
    )
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.parametrize("signal", ["traces", "metrics", "logs"])
def test_a_body_of_empty_messages_is_refused_before_it_is_parsed(sink, signal):
    """Two bytes on the wire are hundreds in memory: the number of messages in a request has a bound."""
    with Receiver(sink, Settings(limits=Limits(messages=500_000))) as receiver:
        empty = b"\x12\x00" * 600_000
        body = _field(1, _field(2, empty))
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        reply = post(receiver, body, f"/v1/{signal}")
        assert (reply.status, "smaller batches" in words(reply)) == (413, True)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 20_000


@pytest.mark.parametrize("where", ["attributes", "events", "links", "values"])
def test_messages_inside_a_span_count_too(sink, where):
    """Wherever the empty messages lie."""
    inner = {
        "attributes": b"\x4a\x00" * 600_000,
        "events": b"\x5a\x00" * 600_000,
        "links": b"\x6a\x00" * 600_000,
        "values": _field(9, _field(2, _field(5, b"\x0a\x00" * 600_000))),
    }[where]
    with Receiver(sink, Settings(limits=Limits(messages=500_000))) as receiver:
        assert post(receiver, _field(1, _field(2, _field(2, inner)))).status == 413


def test_large_requests_within_the_bounds_are_taken(receiver, sink):
    """Three megabytes of spans, and a value of twenty megabytes."""
    body = traces(16_000, attributes=12)
    assert len(body) > 3 << 20
    assert post(receiver, body).status == 200
    request = ExportTraceServiceRequest.FromString(traces())
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.attributes.add(key="output").value.string_value = "x" * (20 << 20)
    assert post(receiver, request.SerializeToString()).status == 200
    assert receiver.totals.items == {"traces": 16_001}


def test_large_garbage_is_malformed(receiver):
    """What is no message is left to the parser to refuse, whatever it looks like to who counts."""
    for body in (b"\x0b" * (2 << 20), b"\x0a" + b"\xff" * (2 << 20), b"\x08\x01" * (1 << 20) + b"\x0a"):
        assert post(receiver, body).status == 400


def test_large_json_is_refused(receiver):
    """JSON takes more memory than its size when it is parsed."""
    reply = post(receiver, b" " * (17 << 20), content_type=JSON)
    assert reply.status == 413
    assert "JSON larger" in json.loads(reply.body)["message"]
