"""An agent's own telemetry reaches the backend it had, byte for byte, by HTTP and by grpc."""

import gzip
import json
import threading

import pytest
import requests  # noqa: F401 - here, where its warning of a missing module is no error

from otlp_receiver import GrpcReceiver, HttpReceiver, wait_for
from otlp_requests import PROTOBUF, MemorySink, json_traces, logs, post, traces
from turntrace.collect import pass_on
from turntrace.collect.acceptance import RawRequest
from turntrace.collect.own_telemetry import Forward
from turntrace.collect.pass_on import PassOn
from turntrace.collect.receiver import Receiver, Settings


def forward_to(endpoint, protocol="http/protobuf", signals=("traces",), **fields):
    """Where the agent sent its traces."""
    return Forward(
        endpoints={signal: f"{endpoint}/v1/{signal}" for signal in signals},
        protocols=dict.fromkeys(signals, protocol),
        **fields,
    )


def request_of(body, *, signal="traces", kind="protobuf", encoding="", **headers):
    """A request as a receiver hands it to its hook."""
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return RawRequest(signal=signal, body=body, kind=kind, headers=named, encoding=encoding)


class Posted:
    """Answers with statuses in turn, the last one for ever; an error is raised."""

    def __init__(self, *statuses):
        self.statuses, self.requests = list(statuses), []

    def __call__(self, address, protocol, signal, tls):
        def send(request, headers):
            self.requests.append((address, request.body, headers))
            status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
            if isinstance(status, Exception):
                raise status
            return status

        return send


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(pass_on, "_FIRST_PAUSE_S", 0.001)


@pytest.mark.parametrize("in_path", [False, True], ids=["header", "path"])
def test_the_bytes_are_those_of_the_agent(in_path):
    """Compressed as they came, with the agent's headers, and without our token."""
    body = gzip.compress(traces(3))
    sink, posted = MemorySink(), Posted(200)
    forward = forward_to("http://h", headers={"x-key": "mine"})
    with (
        PassOn(forward, "t", posted) as passing,
        Receiver(sink, Settings(token="t"), hook=passing) as receiver,
    ):
        headers = {"Content-Encoding": "gzip", "X-Team": "a"}
        path = "/t/v1/traces" if in_path else "/v1/traces"
        assert post(receiver, body, path, headers=headers, token=not in_path).status == 200
        passing.stop(5)
    ((address, sent, told),) = posted.requests
    assert (address, sent, passing.lost, len(sink.taken)) == ("http://h/v1/traces", body, 0, 1)
    assert (
        told.items()
        >= {"content-encoding": "gzip", "content-type": PROTOBUF, "x-team": "a", "x-key": "mine"}.items()
    )
    assert not {"authorization", "host", "content-length"} & told.keys()


def test_a_backend_that_speaks_http():
    """What arrives there is what was sent here."""
    with HttpReceiver() as backend, PassOn(forward_to(backend.endpoint), "t") as passing:
        passing(request_of(gzip.compress(traces(3)), content_encoding="gzip", content_type=PROTOBUF))
        passing.stop(5)
    assert (backend.bodies, passing.lost) == ([traces(3)], 0)


def test_what_went_nowhere_goes_nowhere():
    """A signal that the agent did not export is not passed on."""
    posted = Posted(200)
    with PassOn(forward_to("http://h"), "t", posted) as passing:
        passing(request_of(logs(), signal="logs"))
        passing(request_of(b"1", authorization="Bearer t", x_team="a", host="here", content_type=PROTOBUF))
        passing.stop(5)
    assert posted.requests == [("http://h/v1/traces", b"1", {"x-team": "a", "content-type": PROTOBUF})]


@pytest.mark.parametrize(
    ("statuses", "tries", "lost"),
    [
        ((503, 429, OSError("gone"), 200), 4, 0),
        ((503,), 4, 1),
        ((OSError("gone"),), 4, 1),
        ((400,), 1, 1),
        ((302,), 1, 1),
        ((ValueError("bad address"),), 1, 1),
    ],
)
def test_a_backend_that_fails_is_asked_again(statuses, tries, lost):
    """A few times where it may help; what did not arrive is counted."""
    posted = Posted(*statuses)
    with PassOn(forward_to("http://h"), "t", posted) as passing:
        passing(request_of(b"1"))
        passing.stop(5)
    assert (len(posted.requests), passing.lost) == (tries, lost)


def test_a_backend_that_hangs_costs_the_deadline_only():
    """What still waits at the end is lost, and counted."""
    hanging = threading.Event()
    with PassOn(forward_to("http://h"), "t", lambda *_: lambda *_: hanging.wait(10) or 200) as passing:
        for number in range(3):
            passing(request_of(b"%d" % number))
        passing.stop(0.05)
        assert passing.lost >= 2
        hanging.set()


def test_what_waits_is_bounded(monkeypatch):
    """The oldest gives way."""
    monkeypatch.setattr(pass_on, "_MAX_WAITING_BYTES", 10)
    go = threading.Event()
    got = []

    def post_to(*_):
        def send(request, _):
            go.wait(10)
            got.append(request.body)
            return 200

        return send

    with PassOn(forward_to("http://h"), "t", post_to) as passing:
        for number in range(10):
            passing(request_of(b"%04d" % number))
        go.set()
        passing.stop(5)
    assert got[-2:] == [b"0008", b"0009"]
    assert (len(got) <= 3, passing.lost >= 7) == (True, True)


@pytest.mark.parametrize("kind", ["protobuf", "json"])
def test_a_backend_that_speaks_grpc(kind):
    """The message arrives as it was; JSON becomes the message it stands for. A header may be written anyhow."""
    body = traces(2) if kind == "protobuf" else json_traces(2)
    with GrpcReceiver() as backend:
        forward = forward_to(backend.endpoint, "grpc", headers={"X-Key": "mine"})
        with PassOn(forward, "t") as passing:
            passing(request_of(gzip.compress(body), kind=kind, encoding="gzip", x_team="a", content_type="c"))
            passing.stop(5)
        assert wait_for(lambda: len(backend.spans()) == 2)
    assert passing.lost == 0
    (_, _, span), *_ = backend.spans()
    assert (span.trace_id.hex(), span.span_id.hex()) == (f"{1:032x}", f"{1:016x}")


@pytest.mark.parametrize(
    "request_",
    [
        request_of(b"nonsense", encoding="gzip"),
        request_of(b"[", kind="json"),
        request_of(json.dumps({"resourceSpans": 7}).encode(), kind="json"),
        request_of(
            json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz"}]}]}]}).encode(),
            kind="json",
        ),
    ],
)
def test_nonsense_does_not_reach_a_grpc_backend(request_):
    """It is lost, and what comes after it is not."""
    with GrpcReceiver() as backend:
        with PassOn(forward_to(backend.endpoint, "grpc"), "t") as passing:
            passing(request_)
            passing(request_of(traces(1)))
            passing.stop(5)
        assert wait_for(lambda: len(backend.spans()) == 1)
    assert passing.lost == 1


def test_no_grpc_backend_there():
    """Nobody listens: tried again, then lost."""
    with PassOn(forward_to("http://127.0.0.1:1", "grpc"), "t") as passing:
        passing(request_of(traces(1)))
        passing.stop(5)
    assert passing.lost == 1


def test_no_http_backend_there():
    """Nobody listens, or the address is none."""
    for address in ("http://127.0.0.1:1", "http://["):
        with PassOn(forward_to(address), "t") as passing:
            passing(request_of(traces(1)))
            passing.stop(5)
        assert passing.lost == 1, address


def test_hosts():
    """Where it goes, without what may be a key."""
    signals = ("traces", "logs")
    assert PassOn(forward_to("https://key@b.example:4318/secret", signals=signals), "t").hosts == "b.example"
