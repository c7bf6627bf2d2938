"""Passes an agent's own telemetry on to where it went before, byte for byte.

An agent that exported somewhere is made to export to our receiver; its own backend must not miss anything.
Requests leave on a thread of their own: the agent is answered by us and never waits for its backend.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Protocol, Self

from turntrace.collect.acceptance import RawRequest
from turntrace.collect.access import TOKEN_HEADER
from turntrace.collect.own_telemetry import ClientTls, Forward
from turntrace.collect.sink import Signal

__all__ = ["PassOn", "Post", "PostTo"]

_MAX_WAITING_BYTES: Final = 64 << 20
_TRIES: Final = 4
_FIRST_PAUSE_S: Final = 0.25
_TIMEOUT_S: Final = 10.0
_AGAIN: Final = frozenset({429, 502, 503, 504})
_OURS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "expect", "keep-alive", "upgrade"}
)
"""Headers that belong to the connection, not to the request."""

_WITH_TOKEN: Final = frozenset({"authorization", TOKEN_HEADER})
_OK: Final = range(200, 300)


class Post(Protocol):
    """Sends one request and says with which HTTP status it was answered."""

    def __call__(self, request: RawRequest, headers: Mapping[str, str]) -> int:
        """Send the body of ``request``.

        Raises:
            OSError: when there was no answer.
            ValueError: when it cannot be sent at all.
        """
        ...


PostTo = Callable[[str, str, Signal, ClientTls], Post]
"""Makes what sends requests of a signal to an address by a protocol, with files for TLS.

Raises:
    OSError: when a file cannot be read.
"""


class PassOn:
    """``with PassOn(forward, token) as pass_on``: a hook of a receiver.

    ``lost`` counts requests that did not arrive. What waits is bounded; the oldest gives way.
    """

    __slots__ = (
        "_forward",
        "_idle",
        "_is_over",
        "_post_to",
        "_thread",
        "_token",
        "_waiting",
        "_waiting_bytes",
        "lost",
    )

    def __init__(self, forward: Forward, token: str, post_to: PostTo | None = None) -> None:
        """``token`` is the receiver's own, which nobody else is to see."""
        self._forward = forward
        self._token = token
        self._post_to = post_to or _post_to
        self._waiting: deque[RawRequest] = deque()
        self._waiting_bytes = 0
        self._idle = threading.Condition()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="turntrace-pass-on", daemon=True)
        self.lost = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop(0)

    def __call__(self, request: RawRequest) -> None:
        """Take a request; it is sent later."""
        if request.signal not in self._forward.endpoints:
            return
        with self._idle:
            self._waiting.append(request)
            self._waiting_bytes += len(request.body)
            while self._waiting_bytes > _MAX_WAITING_BYTES:
                self._waiting_bytes -= len(self._waiting.popleft().body)
                self.lost += 1
            self._idle.notify_all()

    def stop(self, deadline_s: float) -> None:
        """Send what waits, for at most ``deadline_s`` seconds; what is left is lost. May be called again."""
        with self._idle:
            self._is_over = True
            self._idle.notify_all()
        self._thread.join(deadline_s)
        with self._idle:
            self.lost += len(self._waiting)
            self._waiting.clear()

    @property
    def hosts(self) -> str:
        """Where the requests go."""
        return self._forward.hosts

    def _run(self) -> None:
        posts: dict[Signal, Post] = {}
        while True:
            with self._idle:
                while not self._waiting and not self._is_over:
                    self._idle.wait()
                if not self._waiting:
                    return
                request = self._waiting[0]
            is_sent = self._send(posts, request)
            with self._idle:
                if self._waiting and self._waiting[0] is request:
                    self._waiting.popleft()
                    self._waiting_bytes -= len(request.body)
                    self.lost += not is_sent

    def _send(self, posts: dict[Signal, Post], request: RawRequest) -> bool:
        """Send a request, a few times if need be; whether it was taken."""
        try:
            signal = request.signal
            if signal not in posts:
                forward = self._forward
                address, protocol = forward.endpoints[signal], forward.protocols[signal]
                posts[signal] = self._post_to(address, protocol, signal, forward.tls.get(signal, ClientTls()))
            headers = _headers(request, self._token) | dict(self._forward.headers)
            return _was_taken(posts[signal], request, headers)
        except Exception:  # noqa: BLE001 - whatever one request does to a client, it is lost and the next is sent
            return False


def _was_taken(post: Post, request: RawRequest, headers: Mapping[str, str]) -> bool:
    for number in range(_TRIES):
        if number:
            time.sleep(_FIRST_PAUSE_S * 2 ** (number - 1))
        try:
            status = post(request, headers)
        except OSError:
            continue
        if status not in _AGAIN:
            return status in _OK
    return False


def _headers(request: RawRequest, token: str) -> dict[str, str]:
    """The request's headers without those of its connection, and without our token."""
    pairs = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.items())
    return {
        name: value
        for name, value in pairs
        if name not in _OURS and not (name in _WITH_TOKEN and token and token in value)
    }


def _post_to(address: str, protocol: str, signal: Signal, tls: ClientTls) -> Post:
    """What speaks a protocol; loaded on the thread that needs it."""
    if protocol != "grpc":
        return _HttpPost(address, tls)
    from turntrace.collect.pass_on_grpc import GrpcPost  # noqa: PLC0415 - 70 ms, for those who need it

    return GrpcPost(address, signal, tls)


class _HttpPost:
    """A POST that follows no redirect: the body is for the address that the user gave."""

    __slots__ = ("_address", "_session", "_verify")

    def __init__(self, address: str, tls: ClientTls) -> None:
        import requests  # noqa: PLC0415 - 40 ms, for those who pass something on

        self._address = address
        self._session = requests.Session()
        self._verify: bool | str = tls.certificate or True
        if tls.client_certificate:
            key = tls.client_key
            self._session.cert = (tls.client_certificate, key) if key else tls.client_certificate

    def __call__(self, request: RawRequest, headers: Mapping[str, str]) -> int:
        """See Post."""
        answer = self._session.post(
            self._address,
            data=request.body,
            headers=dict(headers),
            timeout=_TIMEOUT_S,
            allow_redirects=False,
            verify=self._verify,  # of the session it would give way to a variable
        )
        return answer.status_code
