"""The wire protocol of worker processes: a length, a JSON header, and a raw payload of stated length.

Nothing here can make the reader run code or reserve memory it did not choose: headers are small, and
the reader decides where a payload goes and how long it may be.
"""

from __future__ import annotations

import json
import socket
from typing import Any

HEADER_LIMIT = 65536


class ProtocolError(Exception):
    """The bytes received are not a valid message."""


class ConnectionClosed(Exception):
    """The other side closed the connection."""


def send(link: socket.socket, header: dict[str, Any], payload: Any = b"") -> None:
    """Send `header` and the bytes of `payload`, whose length goes into the header."""
    view = memoryview(payload).cast("B")
    text = json.dumps({**header, "bytes": len(view)}).encode()
    head = len(text).to_bytes(4, "big") + text
    sent = link.sendmsg((head, view))  # one call for most messages
    if sent < len(head):
        link.sendall(head[sent:])
    if max(0, sent - len(head)) < len(view):
        link.sendall(view[max(0, sent - len(head)) :])


def receive(link: socket.socket) -> dict[str, Any]:
    """The next header. Its payload, `header["bytes"]` long, is still to be read."""
    size = bytearray(4)
    fill(link, memoryview(size))
    length = int.from_bytes(size, "big")
    if not 2 <= length <= HEADER_LIMIT:
        raise ProtocolError(f"a header of {length} bytes")
    text = bytearray(length)
    fill(link, memoryview(text))
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("a header that is not JSON") from error
    if not isinstance(header, dict):
        raise ProtocolError("a header that is not an object")
    get_int(header, "bytes", 0, 2**40)
    return header


def fill(link: socket.socket, view: memoryview) -> None:
    """Read exactly `len(view)` bytes."""
    while len(view):
        count = link.recv_into(view)
        if count == 0:
            raise ConnectionClosed
        view = view[count:]


def get_int(header: dict[str, Any], key: str, low: int, high: int) -> int:
    """`header[key]` if it is an integer in `[low, high]`."""
    value = header.get(key)
    if type(value) is not int or not low <= value <= high:
        raise ProtocolError(f"{key} is not a whole number between {low} and {high}")
    return value


def get_float(header: dict[str, Any], key: str, low: float, high: float) -> float:
    """`header[key]` if it is a finite number in `[low, high]`."""
    value = header.get(key)
    if type(value) not in (int, float) or not low <= value <= high:  # type: ignore[operator]
        raise ProtocolError(f"{key} is not a number between {low} and {high}")
    return float(value)  # type: ignore[arg-type]


def get_text(header: dict[str, Any], key: str, limit: int = 300) -> str:
    """`header[key]` if it is text, as one printable line of at most `limit` characters."""
    value = header.get(key)
    if not isinstance(value, str):
        raise ProtocolError(f"{key} is not text")
    line = "".join(c if c.isprintable() else " " for c in value[:limit])
    return " ".join(line.split())
