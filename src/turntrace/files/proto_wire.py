"""The wire format of protobuf: fields with their numbers, read up to any damage.

Source: Protocol Buffers, encoding.
"""

from collections.abc import Iterator
from typing import Final

__all__ = ["FIXED", "LENGTH", "VARINT", "DamagedError", "fields", "parts", "varint"]

_VARINT_BITS: Final = 70
_MORE: Final = 0x80
"""The bit that says: another byte follows."""

FIXED: Final = {1: 8, 5: 4}
"""Bytes of the wire types whose length is known."""

LENGTH, VARINT = 2, 0
"""Wire types: a length and that many bytes; a number."""


class DamagedError(ValueError):
    """The bytes are no message from here on."""


def parts(data: bytes, *, may_be_cut: bool) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field that has a length, the last one as far as it is there or not at all.

    Raises:
        DamagedError: where no field begins.
    """
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == LENGTH:
            length, at = varint(data, at)
            if at + length > len(data) and not may_be_cut:
                break
            yield tag >> 3, data[at : at + length]
            at += length
        elif wire == VARINT:
            _, at = varint(data, at)
        elif wire in FIXED:
            at += FIXED[wire]
        else:
            raise DamagedError("a field of no known type")
    if at != len(data):
        raise DamagedError("the message is cut")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the index after it.

    Raises:
        DamagedError: where the data or the ten bytes that a number takes at most end before it does.
    """
    number = shift = 0
    try:
        while shift < _VARINT_BITS:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            if byte < _MORE:
                return number, at
            shift += 7
    except IndexError:
        pass
    raise DamagedError("a number without an end")


def fields(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Number, wire type and length in bytes of each field, as far as they can be read."""
    at = 0
    try:
        while at < len(data):
            tag, at = varint(data, at)
            wire, start = tag & 7, at
            if wire == VARINT:
                _, at = varint(data, at)
            elif wire == LENGTH:
                length, start = varint(data, at)
                at = start + length
            else:
                at += FIXED.get(wire, len(data))
            yield tag >> 3, wire, at - start
    except DamagedError:
        return
