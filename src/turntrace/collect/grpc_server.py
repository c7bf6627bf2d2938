"""OTLP over grpc: the three services, taking messages as they come so that the bounds are ours.

grpc's own decompression is switched off: the pass-through gets a message as it came, and what it is inflated to
counts among all that is held in memory, as with http bodies. grpc also reads the message of a unary call before it hands the call
over; a stream of one message is the same on the wire, and is read after the token was seen, by one of a few
threads. Loaded only where grpc is asked for: the package is slow to load.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc  # type: ignore[import-untyped]  # it has no types

from turntrace.collect.acceptance import Acceptance, RawRequest
from turntrace.collect.access import Access
from turntrace.collect.inflation import encoding_of
from turntrace.collect.limits import Limits, Reason, RefusedError
from turntrace.collect.messages import response
from turntrace.collect.sink import Signal

__all__ = ["GrpcServer"]

_SERVICES: Final[dict[Signal, str]] = {
    "traces": "opentelemetry.proto.collector.trace.v1.TraceService",
    "metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
    "logs": "opentelemetry.proto.collector.logs.v1.LogsService",
}
_WORKERS: Final = 8
_WATCH_S: Final = 0.5
_METADATA_BYTES: Final = 16 << 10
_CODES: Final[dict[Reason, grpc.StatusCode]] = {
    "origin": grpc.StatusCode.PERMISSION_DENIED,
    "token": grpc.StatusCode.UNAUTHENTICATED,
    "too_large": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "rate": grpc.StatusCode.UNAVAILABLE,
    "memory": grpc.StatusCode.UNAVAILABLE,
    "timeout": grpc.StatusCode.DEADLINE_EXCEEDED,
    "storage": grpc.StatusCode.UNAVAILABLE,
    "stopping": grpc.StatusCode.UNAVAILABLE,
    "encoding": grpc.StatusCode.UNIMPLEMENTED,
    "malformed": grpc.StatusCode.INVALID_ARGUMENT,
}


class GrpcServer:
    """Serves ``address`` (HOST:PORT) until ``stop``; ``port`` is the one that it got."""

    def __init__(
        self,
        address: str,
        access: Access,
        acceptance: Acceptance,
        limits: Limits,
        tls: tuple[bytes, bytes] | None,
    ) -> None:
        """Bind; ``tls`` is key and certificate chain in PEM.

        Raises:
            OSError: when the address cannot be bound.
        """
        self._access = access
        self._acceptance = acceptance
        self._request_s = limits.request_s
        self._reading: dict[Any, float] = {}
        self._is_over = threading.Event()
        self._watch = threading.Thread(target=self._cancel_slow, name="turntrace-grpc-watch", daemon=True)
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="turntrace-grpc")
        self._server = grpc.server(
            self._workers,
            maximum_concurrent_rpcs=limits.streams,
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.per_message_decompression", 0),
                ("grpc.max_receive_message_length", limits.request_bytes),
                ("grpc.max_concurrent_streams", limits.streams),
                ("grpc.max_metadata_size", _METADATA_BYTES),
                ("grpc.max_connection_idle_ms", int(limits.idle_s * 1000)),
                ("grpc.server_handshake_timeout_ms", int(limits.head_s * 1000)),
            ],
        )
        self._server.add_generic_rpc_handlers(
            tuple(
                grpc.method_handlers_generic_handler(
                    service, {"Export": grpc.stream_unary_rpc_method_handler(self._exporter(signal))}
                )
                for signal, service in _SERVICES.items()
            )
        )
        try:
            self.port = self._bind(address, tls)
        except RuntimeError as error:
            raise OSError(f"{address} cannot be bound") from error

    def _bind(self, address: str, tls: tuple[bytes, bytes] | None) -> int:
        if tls is None:
            return int(self._server.add_insecure_port(address))
        return int(self._server.add_secure_port(address, grpc.ssl_server_credentials([tls])))

    def start(self) -> None:
        """Accept calls."""
        self._watch.start()
        self._server.start()

    def stop(self, deadline_s: float) -> None:
        """Accept no more, and let what is being read finish for ``deadline_s`` seconds."""
        self._server.stop(deadline_s).wait()
        self._is_over.set()
        self._workers.shutdown(wait=True, cancel_futures=True)

    def _cancel_slow(self) -> None:
        """Cut calls whose message takes too long to come."""
        while not self._is_over.wait(_WATCH_S):
            oldest_s = time.monotonic() - self._request_s
            for context, since_s in list(self._reading.items()):
                if since_s < oldest_s and self._reading.pop(context, None) is not None:
                    self._acceptance.counts.rejected("timeout")
                    context.cancel()

    def _exporter(self, signal: Signal) -> Callable[[Iterator[bytes], Any], bytes]:
        def export(messages: Iterator[bytes], context: Any) -> bytes:
            try:
                return self._export(signal, messages, context)
            except RefusedError as error:
                self._acceptance.counts.rejected(error.reason)
                code = _CODES.get(error.reason, grpc.StatusCode.INTERNAL)
                text = error.message
            except Exception:  # noqa: BLE001 - an error of ours costs one request, not the receiver
                self._acceptance.counts.rejected("error")
                code, text = grpc.StatusCode.INTERNAL, "the receiver failed"
            with contextlib.suppress(ValueError):  # the call was over
                context.set_code(code)
                context.set_details(text)
            return b""

        return export

    def _export(self, signal: Signal, messages: Iterator[bytes], context: Any) -> bytes:
        metadata = {
            key.encode(): value if isinstance(value, bytes) else value.encode()
            for key, value in context.invocation_metadata()
        }
        if b"origin" in metadata:
            raise RefusedError("origin", 403, "requests of web pages (with an Origin) are refused")
        self._access.check_token(metadata, b"")
        self._acceptance.budget.admit()
        body = self._message(messages, context)
        with self._acceptance.share() as share:
            share.meter("message")(len(body))
            request = RawRequest(
                signal=signal, body=body, kind="protobuf", headers=metadata, encoding=encoding_of(body)
            )
            return response(signal, "protobuf", self._acceptance.take(request, share))

    def _message(self, messages: Iterator[bytes], context: Any) -> bytes:
        self._reading[context] = time.monotonic()
        try:
            return next(messages)
        except StopIteration:
            raise RefusedError("malformed", 400, "the call has no message") from None
        except (
            Exception
        ) as error:  # what grpc raises in an iterator when the call is cut has no type of its own
            raise RefusedError("disconnected", 400, "the call was ended") from error
        finally:
            self._reading.pop(context, None)
