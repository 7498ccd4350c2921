"""Read the fields of a protocol buffer without its description, as SentencePiece models are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types


def fields(message: bytes | memoryview) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: an integer, or the bytes of everything else.

    Raises:
        ValueError: The message is damaged; an `IndexError` where it ends within a number.

    >>> list(fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69])))
    [(1, 150), (2, b'hi')]
    """
    at, end = 0, len(message)
    while at < end:
        key, at = varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = varint(message, at)
            yield number, value
            continue
        if wire == _BYTES:
            length, at = varint(message, at)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if at + length > end:
            raise ValueError("the file ends early")
        yield number, message[at : at + length]
        at += length


def varint(message: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number that begins at a place, and where it ends.

    >>> varint(bytes([0x96, 0x01]), 0)
    (150, 2)
    """
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number that does not end")
