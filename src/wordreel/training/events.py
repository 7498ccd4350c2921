"""Curves in TensorBoard's own file format, without TensorBoard: records of protocol-buffer events.

A record is its length (8 bytes), a checksum of the length, the bytes, and a checksum of the bytes; checksums
are CRC-32C, turned by 15 bits and moved by a constant. Nothing else of the format is needed for scalars.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from pathlib import Path

VERSION = b"brain.Event:2"


def _table() -> list[int]:
    made = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        made.append(value)
    return made


TABLE = _table()


def crc32c(data: bytes) -> int:
    """
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    value = crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def varint(number: int) -> bytes:
    """
    >>> varint(300).hex()
    'ac02'
    """
    made = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        made.append(low | (0x80 if number else 0))
        if not number:
            return bytes(made)


def part(field: int, data: bytes) -> bytes:
    """A field of bytes."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def scalars(step: int, values: Mapping[str, float], when: float) -> bytes:
    """One event: `values` by tag at a step."""
    summary = b"".join(
        part(1, part(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value))
        for tag, value in values.items()
    )
    clock = varint(1 << 3 | 1) + struct.pack("<d", when)
    return clock + varint(2 << 3) + varint(step) + part(5, summary)


class Events:
    """A file that grows; TensorBoard reads the folder it lies in."""

    def __init__(self, folder: Path) -> None:
        self.now = time.time()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"events.out.tfevents.{int(self.now * 1000)}.wordreel"
        clock = varint(1 << 3 | 1) + struct.pack("<d", self.now)
        self._append(clock + part(3, VERSION))

    def add(self, step: int, values: Mapping[str, float]) -> None:
        self._append(scalars(step, values, time.time()))

    def _append(self, data: bytes) -> None:
        with self.path.open("ab") as out:
            out.write(record(data))
