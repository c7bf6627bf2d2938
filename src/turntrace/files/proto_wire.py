"""The wire format of protobuf: fields with their numbers, read up to any damage.

Source: Protocol Buffers, encoding.
"""

from collections.abc import Iterator
from typing import Final

__all__ = ["DamagedError", "fields", "parts", "varint"]

_VARINT_BYTES: Final = 10
_FIXED: Final = {1: 8, 5: 4}
"""Bytes of the wire types whose length is known."""

_LENGTH, _VARINT = 2, 0
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
        if wire == _LENGTH:
            length, at = varint(data, at)
            if at + length > len(data) and not may_be_cut:
                break
            yield tag >> 3, data[at : at + length]
            at += length
        elif wire == _VARINT:
            _, at = varint(data, at)
        elif wire in _FIXED:
            at += _FIXED[wire]
        else:
            raise DamagedError("a field of no known type")
    if at != len(data):
        raise DamagedError("the message is cut")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the index after it."""
    number = 0
    for index, byte in enumerate(data[at : at + _VARINT_BYTES]):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says: another byte follows
            return number, at + index + 1
    raise DamagedError("a number without an end")


def fields(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Number, wire type and length in bytes of each field, as far as they can be read."""
    at = 0
    try:
        while at < len(data):
            tag, at = varint(data, at)
            wire, start = tag & 7, at
            if wire == _VARINT:
                _, at = varint(data, at)
            elif wire == _LENGTH:
                length, start = varint(data, at)
                at = start + length
            else:
                at += _FIXED.get(wire, len(data))
            yield tag >> 3, wire, at - start
    except DamagedError:
        return
