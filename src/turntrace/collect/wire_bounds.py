"""How many messages a request holds, before a parser makes objects of them.

An empty span is two bytes on the wire and hundreds in memory: a body within its bound could still fill a
machine. Source: opentelemetry/proto; Protocol Buffers, encoding.
"""

from collections.abc import Mapping
from typing import Any, Final

from turntrace.collect.sink import Signal
from turntrace.files.proto_wire import FIXED, LENGTH, VARINT, DamagedError, varint

__all__ = ["SMALL_BYTES", "holds_more_than"]

SMALL_BYTES: Final = 1 << 20
"""A request of this size is parsed without a look: at worst it is 100 MB for a moment."""

_Schema = Mapping[int, Any]
"""The numbers of the fields that are messages, and what lies in those."""

_VALUE: Final[dict[int, Any]] = {}
_PAIR: Final[_Schema] = {2: _VALUE}
_VALUE[5] = {1: _VALUE}
_VALUE[6] = {1: _PAIR}
_RESOURCE: Final[_Schema] = {1: _PAIR}
_SCOPE: Final[_Schema] = {3: _PAIR}
_SPAN: Final[_Schema] = {9: _PAIR, 11: {3: _PAIR}, 13: {4: _PAIR}, 15: {}}
_EXEMPLAR: Final[_Schema] = {7: _PAIR}
_NUMBER: Final[_Schema] = {7: _PAIR, 5: _EXEMPLAR}
_HISTOGRAM: Final[_Schema] = {9: _PAIR, 8: _EXEMPLAR}
_EXPONENTIAL: Final[_Schema] = {1: _PAIR, 8: {}, 9: {}, 11: _EXEMPLAR}
_SUMMARY: Final[_Schema] = {7: _PAIR, 6: {}}
_METRIC: Final[_Schema] = {
    5: {1: _NUMBER},
    7: {1: _NUMBER},
    9: {1: _HISTOGRAM},
    10: {1: _EXPONENTIAL},
    11: {1: _SUMMARY},
    12: _PAIR,
}
_LOG: Final[_Schema] = {5: _VALUE, 6: _PAIR}
_REQUESTS: Final[Mapping[Signal, _Schema]] = {
    "traces": {1: {1: _RESOURCE, 2: {1: _SCOPE, 2: _SPAN}}},
    "metrics": {1: {1: _RESOURCE, 2: {1: _SCOPE, 2: _METRIC}}},
    "logs": {1: {1: _RESOURCE, 2: {1: _SCOPE, 2: _LOG}}},
}


def holds_more_than(most: int, signal: Signal, body: bytes) -> bool:
    """Whether more than ``most`` messages lie in ``body``; False for what is no message at all."""
    try:
        return _count(body, _REQUESTS[signal], most) > most
    except DamagedError:  # the parser will say so
        return False


def _count(body: bytes, schema: _Schema, most: int) -> int:
    found = 0
    waiting = [(0, len(body), schema)]
    while waiting and found <= most:
        at, end, schema = waiting.pop()
        while at < end and found <= most:
            tag, at = varint(body, at)
            wire = tag & 7
            if wire == LENGTH:
                length, at = varint(body, at)
                inner = schema.get(tag >> 3)
                if inner is not None:
                    found += 1
                    if length and inner:
                        waiting.append((at, min(at + length, end), inner))
                at += length
            elif wire == VARINT:
                _, at = varint(body, at)
            elif wire in FIXED:
                at += FIXED[wire]
            else:
                return 0
    return found
