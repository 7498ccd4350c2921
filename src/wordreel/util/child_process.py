"""Worker processes: the one way in which wordreel starts, asks, cancels and ends a process of its own.

A worker is a module that is run with a socket as its standard input:

    worker = ChildProcess("wordreel.some.module", "argument")    # parent: start it
    worker.send({"do": "this"})                                  # any JSON value, also send_bytes
    while "report" not in (event := worker.receive(60.0)):       # TimeoutError, ProcessGone
        ...
    worker.cancel(5.0)                                           # SIGTERM, and SIGKILL after 5 seconds
    worker.close()                                               # SIGKILL, in whatever it is doing

    link = parent_link()                                         # in the module: ends with its parent
    order = link.receive()
    link.send({"report": 1})

To call functions in another process, with events and exceptions, use `wordreel.workers.local_worker`, which
needs no module of its own. A sandbox is what the module sets up before it reads a message: see
`wordreel.media.sandbox.confine`, which also ends the process with its parent.

A message is a length, a JSON header, and a payload of stated length. A parent that does not trust its worker
reads with `receive_header`, `get_int`, … and `fill`: headers are small, and the reader decides where a
payload goes and how long it may be, so nothing makes it run code or reserve memory that it did not choose.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

MAX_HEADER = 65536  # bytes
MAX_MESSAGE = 2**31  # bytes, between processes that trust each other

Header = dict[str, Any]


class ProcessGone(Exception):
    """The process at the other end has ended."""


class ProtocolError(Exception):
    """The bytes received are not a valid message."""


class MessageLink:
    """A socket that carries messages between two processes."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link

    def send(self, message: Any) -> None:
        """Send a JSON value."""
        self.send_bytes(json.dumps(message).encode())

    def receive(self, seconds: float | None = None) -> Any:
        """Return the next JSON value.

        Raises:
            TimeoutError: There is none within so many seconds.
            ProcessGone: The other end is closed.
        """
        return json.loads(self.receive_bytes(seconds))

    def send_bytes(self, content: bytes) -> None:
        """Send bytes that are received as a whole."""
        self.send_header({}, content)

    def receive_bytes(self, seconds: float | None = None) -> bytearray:
        """Return the next bytes; raise like `receive`."""
        self.link.settimeout(seconds)
        try:
            content = bytearray(get_int(self.receive_header(), "bytes", 0, MAX_MESSAGE))
            self.fill(memoryview(content))
        except ProtocolError as error:
            raise ProcessGone(str(error)) from error
        finally:
            with suppress(OSError):
                self.link.settimeout(None)
        return content

    def send_header(self, header: Header, payload: Any = b"") -> None:
        """Send a header and the bytes of a payload, whose length goes into the header."""
        view = memoryview(payload).cast("B")
        text = json.dumps({**header, "bytes": len(view)}).encode()
        head = len(text).to_bytes(4, "big") + text
        try:
            sent = self.link.sendmsg((head, view))  # one call for most messages
            if sent < len(head):
                self.link.sendall(head[sent:])
            if max(0, sent - len(head)) < len(view):
                self.link.sendall(view[max(0, sent - len(head)) :])
        except OSError as error:
            raise ProcessGone(str(error)) from error

    def receive_header(self) -> Header:
        """Return the next header. Its payload, `header["bytes"]` long, is still to be read.

        Raises:
            ProtocolError: It is no header.
        """
        size = bytearray(4)
        self.fill(memoryview(size))
        length = int.from_bytes(size, "big")
        if not 2 <= length <= MAX_HEADER:
            raise ProtocolError(f"a header of {length} bytes")
        text = bytearray(length)
        self.fill(memoryview(text))
        try:
            header = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ProtocolError("a header that is not JSON") from error
        if not isinstance(header, dict):
            raise ProtocolError("a header that is not an object")
        get_int(header, "bytes", 0, 2**40)
        return header

    def fill(self, view: memoryview) -> None:
        """Read exactly `len(view)` bytes."""
        while len(view):
            try:
                count = self.link.recv_into(view)
            except TimeoutError:
                raise
            except OSError as error:
                raise ProcessGone(str(error)) from error
            if count == 0:
                raise ProcessGone("the link was closed")
            view = view[count:]


class ChildProcess(MessageLink):
    """A module that runs in a process of its own.

    Args:
        module: What `python -m` runs.
        arguments: Its arguments.
        environment: All of its environment; this process's by default.
        quiet: Drop what it prints.
        buffer: Bytes of each direction that are sent before the other end reads.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        quiet: bool = False,
        buffer: int = 0,
    ) -> None:
        ours, theirs = socket.socketpair()
        for end in (ours, theirs) if buffer else ():
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        output = subprocess.DEVNULL if quiet else None
        try:
            self._process = subprocess.Popen(
                # -P: a folder of videos may hold a file named av.py, and must not be imported from.
                [sys.executable, "-P", "-m", module, *arguments],
                stdin=theirs.fileno(),
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the process that started this one
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        super().__init__(ours)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def is_idle(self) -> bool:
        """Return whether it runs and has sent nothing that is still to be read."""
        readable, _, _ = select.select([self.link], [], [], 0.0)
        return not readable and self._process.poll() is None

    def exit_status(self, seconds: float) -> int | None:
        """Return how it ended, negative for a signal; None if it still runs after so many seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def cancel(self, seconds: float) -> None:
        """Ask it to stop, and end it after so many seconds."""
        self._process.terminate()
        if self.exit_status(seconds) is None:
            self.kill()

    def kill(self) -> None:
        """End it and the processes of its session, whatever they are doing.

        What it sent before can still be received.
        """
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End it, and the link."""
        self.kill()
        self.link.close()


def parent_link() -> MessageLink:
    """Return, in a worker, the link to its parent. The worker ends when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = socket.socket(fileno=os.dup(0))
    threading.Thread(target=_exit_with_parent, args=(link.fileno(),), name="parent", daemon=True).start()
    return MessageLink(link)


def _exit_with_parent(descriptor: int) -> None:
    ended = select.poll()
    ended.register(descriptor, select.POLLHUP | select.POLLRDHUP)
    ended.poll()
    os._exit(3)


def get_int(header: Header, key: str, low: int, high: int) -> int:
    """Return `header[key]` if it is an integer in `[low, high]`."""
    value = header.get(key)
    if type(value) is not int or not low <= value <= high:
        raise ProtocolError(f"{key} is not a whole number between {low} and {high}")
    return value


def get_float(header: Header, key: str, low: float, high: float) -> float:
    """Return `header[key]` if it is a finite number in `[low, high]`."""
    value = header.get(key)
    if type(value) not in (int, float) or not low <= value <= high:  # type: ignore[operator]
        raise ProtocolError(f"{key} is not a number between {low} and {high}")
    return float(value)  # type: ignore[arg-type]


def get_text(header: Header, key: str, limit: int = 300) -> str:
    """Return `header[key]` if it is text, as one printable line of at most `limit` characters."""
    value = header.get(key)
    if not isinstance(value, str):
        raise ProtocolError(f"{key} is not text")
    line = "".join(c if c.isprintable() else " " for c in value[:limit])
    return " ".join(line.split())
